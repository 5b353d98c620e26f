// How the page calls the engine: in a worker by messages, or directly.

import { EngineError, aborted, check } from "./errors.js";

/** Calls a worker. */
export class WorkerChannel {
  #worker;
  #own;
  #calls = new Map();
  #next = 0;
  #dead = null;

  /** @param {Worker} worker @param {boolean} own whether to end it on close */
  constructor(worker, own) {
    this.#worker = worker;
    this.#own = own;
    worker.addEventListener("message", ({ data }) => this.#answer(data));
    worker.addEventListener("error", (event) => {
      const hint = "serve the package's files from one origin, or say where the worker is with workerUrl";
      this.#fail(new EngineError("worker_failed", `the worker failed: ${event.message ?? "it could not be loaded"}`, hint));
    });
  }

  #answer({ id, event, result, error }) {
    const call = this.#calls.get(id);
    if (!call) return;
    if (event !== undefined) call.emit(event);
    else if (error) call.reject(EngineError.from(error));
    else call.resolve(result);
  }

  #fail(error) {
    this.#dead = error;
    for (const call of this.#calls.values()) call.reject(error);
  }

  async call(method, args, { signal, emit = () => {} } = {}) {
    check(signal);
    if (this.#dead) throw this.#dead;
    const id = this.#next++;
    const abort = () => this.#worker.postMessage({ abort: id });
    signal?.addEventListener("abort", abort);
    try {
      return await new Promise((resolve, reject) => {
        this.#calls.set(id, { emit, resolve, reject });
        this.#worker.postMessage({ id, method, args });
      });
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#calls.delete(id);
    }
  }

  close() {
    this.#fail(new EngineError("closed", "the engine is closed"));
    // Ending the worker gives its GPU memory, file handles and locks back.
    if (this.#own) this.#worker.terminate();
  }
}

/** Calls an engine on the same thread. */
export class DirectChannel {
  #host = null;

  async call(method, args, { signal, emit = () => {} } = {}) {
    check(signal);
    if (!this.#host) {
      const { Host } = await import("./host.js");
      this.#host ??= new Host();
    }
    try {
      return await this.#host[method](args, { signal, emit });
    } catch (error) {
      throw signal?.aborted ? aborted() : EngineError.from(error);
    }
  }

  close() {
    this.#host?.close();
  }
}

/** The channel that the options ask for. */
export function open({ worker = true, workerUrl } = {}) {
  if (worker === false) return new DirectChannel();
  if (typeof worker === "object") return new WorkerChannel(worker, false);
  if (typeof Worker === "undefined") {
    throw new EngineError("webgpu_unavailable", "there are no workers here", "chaski runs in browsers");
  }
  return new WorkerChannel(workerUrl ? start(new URL(workerUrl, location.href)) : bundled(), true);
}

/** Where the worker is beside this module, as it lies in the package. */
const BESIDE = "../worker.js";

/**
 * Bundlers find a worker where it is spelt as in the last line, and there alone: the same address outside of `new Worker`
 * makes them take the file along as it is, without what it imports.
 */
function bundled() {
  const here = new URL(import.meta.url);
  const foreign = here.origin !== location.origin && here.protocol !== "file:" && here.protocol !== "blob:";
  if (foreign) return start(new URL(/* @vite-ignore */ BESIDE, here));
  return new Worker(new URL("../worker.js", import.meta.url), { type: "module" });
}

/** A worker of another origin is refused; one that imports it is not. */
function start(url) {
  if (url.origin === location.origin) return new Worker(url, { type: "module" });
  const source = new Blob([`import ${JSON.stringify(url.href)};`], { type: "text/javascript" });
  const local = URL.createObjectURL(source);
  try {
    return new Worker(local, { type: "module" });
  } finally {
    setTimeout(() => URL.revokeObjectURL(local), 60_000);
  }
}
