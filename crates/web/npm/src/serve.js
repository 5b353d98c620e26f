// The worker's side of a channel: `{ hello }` goes once; `{ id, method, args }`, `{ abort: id }` or `{ close }` comes, `{ id, event }`, then
// `{ id, result }` or `{ id, error }` goes.

import { EngineError } from "./errors.js";

/** Methods that can be called: `(args, { signal, emit })`. */
const METHODS = ["create", "generate", "tokenize", "detokenize", "applyTemplate", "save", "restore", "embed", "rank", "inspect", "adapter", "download", "verify", "heap", "loseDevice"];

/** Answers what comes over a port by the methods of a host. */
export function serve(port, host) {
  const running = new Map();
  const live = alive(port);
  port.onmessage = async ({ data: { id, method, args, abort, close } }) => {
    if (abort !== undefined) {
      running.get(abort)?.abort();
      return;
    }
    if (close) {
      for (const controller of running.values()) controller.abort();
      port.close();
      live();
      host.close();
      return;
    }
    const controller = new AbortController();
    running.set(id, controller);
    try {
      if (!METHODS.includes(method)) throw new EngineError("internal", `no method ${method}`);
      const emit = (event) => port.postMessage({ id, event });
      port.postMessage({ id, result: await host[method](args, { signal: controller.signal, emit }) });
    } catch (error) {
      port.postMessage({ id, error: EngineError.from(error).toJSON() });
    } finally {
      running.delete(id);
    }
  };
}

/** Greets the page, with the name of a lock that is held while this worker lives; the result gives it back. */
function alive(port) {
  const name = `chaski-worker/${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  let release = () => {};
  const held = (lock) => new Promise((resolve) => {
    release = resolve;
    port.postMessage({ hello: { lock } });
  });
  // Pages without https have no locks: there nobody hears of the end.
  const locks = globalThis.navigator?.locks;
  if (!locks) held(null);
  else locks.request(name, () => held(name)).catch(() => held(null));
  return () => release();
}
