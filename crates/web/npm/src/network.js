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

/** Milliseconds that an answer asks to wait for, as a number of seconds or a date; null if it does not. */
function retryAfter({ headers }) {
  const text = headers?.get("retry-after");
  const ms = /^\s*\d+\s*$/.test(text ?? "") ? 1000 * Number(text) : Date.parse(text ?? "") - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

const ACCESS = "the file needs a permission: hfToken or headers; a gated model has to be accepted on its page first";

/** The error that an answer's status is. */
export function refusal(response, url, hint = "check the address") {
  const { status } = response;
  const passing = status === 408 || status === 429 || status >= 500;
  const wait = passing ? retryAfter(response) : null;
  const again = wait === null ? "try again later" : `try again in ${Math.ceil(wait / 1000)} s`;
  const [code, what] = status === 401 || status === 403 ? ["forbidden", ACCESS] : status === 404 || status === 410 ? ["not_found", hint] : [passing ? "network" : "download_failed", again];
  return new EngineError(code, `${url}: ${status}`, what, { status, url, ...(wait !== null && { retryAfterMs: wait }) });
}
