// Requests, and what can be known of those that got no answer or a refusal.

import { EngineError, aborted } from "./errors.js";

/** Browsers do not say why a request got no answer at all, so it is tried without reading the answer. */
async function unreachable(url, error) {
  const host = new URL(url).host;
  if (navigator.onLine !== false) {
    const answer = await fetch(url, { method: "HEAD", mode: "no-cors" }).catch(() => null);
    // Only an answer of another origin is opaque; the page's own is hindered by the network alone.
    if (answer?.type === "opaque") {
      const hint = "the server must send Access-Control-Allow-Origin, or serve the file from the page's own origin";
      return new EngineError("cors", `${host} does not allow this page to read the file`, hint, { url });
    }
  }
  return new EngineError("network", `could not reach ${host}: ${error.message}`, "check the connection", { url });
}

/** True for requests to the page's own origin, which need no CORS. */
export const isOwn = (url) => new URL(url).origin === globalThis.location?.origin;

/** A server's answer, whatever it says. */
export async function send(url, headers, init) {
  try {
    return await fetch(url, { headers, referrerPolicy: "no-referrer", ...init });
  } catch (error) {
    if (init.signal?.aborted) throw aborted();
    throw await unreachable(url, error);
  }
}

/** The error that an answer's status is. */
export function refusal({ status }, url, hint = status === 404 ? "check the address" : "the file needs a permission: hfToken or headers") {
  const passing = status === 408 || status === 429 || status >= 500;
  const [code, what] = [401, 403, 404].includes(status) ? ["not_found", hint] : [passing ? "network" : "download_failed", "try again later"];
  return new EngineError(code, `${url}: ${status}`, what, { status, url });
}
