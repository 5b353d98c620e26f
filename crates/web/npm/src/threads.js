// The CPU's threads: workers that share the memory of a module of WebAssembly of their own.

import { later } from "./later.js";

let ready = null;

/** Loads the module and starts `n - 1` workers, once. They end with the worker that has started them. */
export async function load(n, url) {
  ready ??= start(n, url);
  try {
    return await ready;
  } catch (error) {
    ready = null;
    throw error;
  }
}

async function start(threads, url) {
  const place = new URL("../wasm/threads/chaski_threads.js", import.meta.url);
  const bindings = await later(place);
  const module_or_path = url ?? new URL("../wasm/threads/chaski_threads_bg.wasm", import.meta.url);
  const { memory } = await bindings.default({ module_or_path });
  bindings.gather(threads);
  const shared = { place: place.href, module: bindings.default.__wbindgen_wasm_module, memory, failures: bindings.failures() };
  // A worker starts only while this one does not compute.
  await Promise.all(Array.from({ length: threads - 1 }, () => begin(shared)));
  return { bindings, memory, threads };
}

function begin(shared) {
  const worker = new Worker(new URL("./thread.js", import.meta.url), { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onmessage = resolve;
    worker.onerror = (event) => reject(new Error(`a thread failed: ${event.message ?? "its worker could not be loaded"}`));
    worker.postMessage(shared);
  });
}
