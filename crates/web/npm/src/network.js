// What can be known of a request that got no answer.

import { EngineError } from "./errors.js";

/** Browsers do not say why a request got no answer at all, so it is tried without reading the answer. */
export async function unreachable(url, error) {
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

/** Whether requests to the address are the page's own, which no server has to allow. */
export const isOwn = (url) => new URL(url).origin === globalThis.location?.origin;
