// How the page calls the engine: in a worker by messages, or directly.

import { EngineError, aborted, badRequest, check } from "./errors.js";

/** Exceptions of the page's listener are reported like those of event listeners, and the call continues. */
export const listener = ({ signal, onProgress }) => ({
  signal,
  emit(event) {
    try {
      onProgress?.(event);
    } catch (error) {
      reportError(error);
    }
  },
});

/** Calls that wait for their answers. */
export class Channel {
  #calls = new Map();
  #next = 0;
  #dead = null;

  /** Calls a method; an abort ends the wait at once, whatever the engine does. */
  async call(method, args, { signal, emit = () => {} } = {}) {
    check(signal);
    if (this.#dead) throw this.#dead;
    const id = this.#next++;
    let abort;
    try {
      return await new Promise((resolve, reject) => {
        this.#calls.set(id, { emit, resolve, reject });
        abort = () => {
          this.abort(id);
          reject(aborted());
        };
        signal?.addEventListener("abort", abort);
        this.send(id, method, args);
      });
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#calls.delete(id);
    }
  }

  /** An event or the end of a call. */
  answer({ id, event, result, error }) {
    const call = this.#calls.get(id);
    if (!call) return;
    if (event !== undefined) call.emit(event);
    else if (error) call.reject(EngineError.from(error));
    else call.resolve(result);
  }

  /** Ends all calls, and those to come. */
  fail(error) {
    this.#dead ??= error;
    for (const call of this.#calls.values()) call.reject(this.#dead);
  }
}

/** How long a worker may take until it answers at all, in milliseconds: one whose files come from the network, and a page's own. */
const OWN_MS = 60_000;
const FOREIGN_MS = 10_000;
const HINT = "serve the package's files from one origin, or say where the worker is with workerUrl; a worker of yours has to import chaski/worker";

export const closed = () => new EngineError("closed", "the engine is closed");

/** Calls a worker, over a port of its own: several engines may share a worker of the caller's. */
export class WorkerChannel extends Channel {
  #worker;
  #own;
  #port;
  #timer;
  #over = new AbortController();

  /** @param {Worker} worker @param {boolean} own whether to end it on close */
  constructor(worker, own) {
    super();
    this.#worker = worker;
    this.#own = own;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = ({ data }) => (data.hello ? this.#greet(data.hello) : this.answer(data));
    const failed = (why) => this.fail(new EngineError("worker_failed", `the worker failed: ${why}`, HINT));
    worker.addEventListener("error", (event) => failed(event.message ?? "it could not be loaded"));
    this.#timer = setTimeout(() => failed("it does not answer"), own ? OWN_MS : FOREIGN_MS);
    worker.postMessage({ chaski: port2 }, [port2]);
  }

  /** The worker is there. While it lives it holds a lock, which this page gets when it has ended, however it did. */
  #greet({ lock }) {
    clearTimeout(this.#timer);
    if (!lock || this.#over.signal.aborted) return;
    const ended = () => this.fail(new EngineError("worker_failed", "the worker ended: the browser may have stopped it for its memory", "create the engine again, with a smaller model or context"));
    navigator.locks.request(lock, { signal: this.#over.signal }, ended).catch(() => {});
  }

  send(id, method, args) {
    try {
      this.#port.postMessage({ id, method, args });
    } catch (error) {
      // A function or an object of the page's that no other thread can have.
      throw badRequest(`${method}: ${error.message}`);
    }
  }

  abort(id) {
    this.#port.postMessage({ abort: id });
  }

  close() {
    this.fail(closed());
    clearTimeout(this.#timer);
    this.#over.abort();
    // Ending the worker gives its GPU memory, file handles and locks back; another one is asked to.
    if (this.#own) this.#worker.terminate();
    else this.#port.postMessage({ close: true });
    this.#port.close();
  }
}

const hostHere = () => import("./host.js").then(({ Host }) => new Host());

/** Calls an engine on the same thread. */
export class DirectChannel extends Channel {
  #make;
  #host = null;
  #running = new Map();

  constructor(make = hostHere) {
    super();
    this.#make = make;
  }

  async send(id, method, args) {
    const { signal } = this.#begin(id);
    try {
      this.#host ??= this.#make();
      const host = await this.#host;
      this.answer({ id, result: await host[method](args, { signal, emit: (event) => this.answer({ id, event }) }) });
    } catch (error) {
      this.answer({ id, error });
    } finally {
      this.#running.delete(id);
    }
  }

  #begin(id) {
    const controller = new AbortController();
    this.#running.set(id, controller);
    return controller;
  }

  abort(id) {
    this.#running.get(id)?.abort();
  }

  close() {
    this.fail(closed());
    for (const controller of this.#running.values()) controller.abort();
    this.#host?.then((host) => host.close(), () => {});
  }
}

/** The channel that the options ask for. */
export function open({ worker, workerUrl } = {}) {
  if (worker === false) return new DirectChannel();
  if (worker?.postMessage) return new WorkerChannel(worker, false);
  if (typeof Worker === "undefined") {
    throw new EngineError("webgpu_unavailable", "there are no workers here", "chaski runs in browsers");
  }
  return new WorkerChannel(workerUrl ? start(new URL(workerUrl, location.href)) : bundled(), true);
}

/** Runs one call in an engine of its own. */
export async function once(options, method, args) {
  const channel = open(options);
  try {
    return await channel.call(method, args, listener(options));
  } finally {
    channel.close();
  }
}

/** Stores the files of a model: in a worker in any case, since only there a browser writes them piece by piece. */
export const download = ({ worker, ...options }, args) =>
  once({ ...options, worker: worker === false ? true : worker }, "download", args);

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
  return trusting(() => new Worker(new URL("../worker.js", import.meta.url), { type: "module" }));
}

/** A worker of another origin is refused; one that imports it is not. */
function start(url) {
  if (url.origin === location.origin) return trusting(() => new Worker(url, { type: "module" }));
  const source = new Blob([`import ${JSON.stringify(url.href)};`], { type: "text/javascript" });
  const local = URL.createObjectURL(source);
  try {
    return trusting(() => new Worker(local, { type: "module" }));
  } finally {
    setTimeout(() => URL.revokeObjectURL(local), 60_000);
  }
}

/** The page's policy of trusted types for the worker's address, once there is one. */
let policy = null;

/**
 * Starts a worker. Where browsers have trusted types, its address is one: `Worker` itself sees to that for the moment, since
 * bundlers know no other spelling.
 */
function trusting(begin) {
  const { Worker: Plain, trustedTypes } = globalThis;
  try {
    policy ??= trustedTypes?.createPolicy("chaski", { createScriptURL: (address) => address });
  } catch {
    // The page allows no policy of this name; it may demand none.
  }
  try {
    if (policy) globalThis.Worker = function (address, options) {
      return new Plain(policy.createScriptURL(String(address)), options);
    };
    return begin();
  } catch (error) {
    throw failure(error);
  } finally {
    globalThis.Worker = Plain;
  }
}

const failure = (error) =>
  new EngineError("worker_failed", `the worker cannot be started: ${error.message}`, "the page's content security policy has to allow it: worker-src, and trusted-types chaski");
