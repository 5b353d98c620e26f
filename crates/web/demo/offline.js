// The page without a network: its service worker, where the browser has one.

/** A page that may not name scripts as text names this one by a policy of its own. */
function address(url) {
  const { trustedTypes } = globalThis;
  return trustedTypes ? trustedTypes.createPolicy("chaski-page", { createScriptURL: () => url }).createScriptURL(url) : url;
}

/** Starts the service worker; without it, the page needs the network. */
export async function work() {
  try {
    await navigator.serviceWorker?.register(address("sw.js"));
  } catch {
    // Private windows and sites without https have none.
  }
}
