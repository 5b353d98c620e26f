// The engine's worker: `{ id, method, args }` comes, `{ id, event }`, then `{ id, result }` or `{ id, error }` goes.

import { EngineError } from "./src/errors.js";
import { Host } from "./src/host.js";

const host = new Host();
const running = new Map();

addEventListener("message", async ({ data }) => {
  if (data.abort !== undefined) {
    running.get(data.abort)?.abort();
    return;
  }
  const { id, method, args } = data;
  const controller = new AbortController();
  running.set(id, controller);
  try {
    if (!Host.METHODS.includes(method)) throw new EngineError("internal", `no method ${method}`);
    const emit = (event) => postMessage({ id, event });
    postMessage({ id, result: await host[method](args, { signal: controller.signal, emit }) });
  } catch (error) {
    postMessage({ id, error: EngineError.from(error).toJSON() });
  } finally {
    running.delete(id);
  }
});
