// The engine's module of WebAssembly: its own, or where the CPU computes and the page is isolated, the one with threads.

import init, * as bindings from "../wasm/chaski_web.js";
import { hasWebGPU } from "./device.js";
import { EngineError } from "./errors.js";

/** Threads by default, at most: more of them wait for memory. */
const THREADS = 8;

let ready = null;

/** Loads the module for a device, once: `{ bindings, memory, threads, notes }`. */
export async function load({ wasmUrl, threadsUrl, threads }, device) {
  if (device === "gpu" && !hasWebGPU()) {
    const hint = "use a browser with WebGPU (Chrome or Edge 113, Safari 26, Firefox 141, or later), over https or on localhost";
    throw new EngineError("webgpu_unavailable", "this browser offers no WebGPU here", hint);
  }
  const notes = [];
  try {
    const n = Math.min(globalThis.navigator?.hardwareConcurrency ?? 1, threads ?? THREADS);
    // A module that lies elsewhere does so for both; only workers may wait for each other.
    if (device === "cpu" && n > 1 && globalThis.crossOriginIsolated && globalThis.WorkerGlobalScope && (threadsUrl || !wasmUrl)) {
      try {
        return { ...(await (await import("./threads.js")).load(n, threadsUrl)), notes };
      } catch (error) {
        // Whoever asks for threads wants to know; others get an answer without.
        if (threads || threadsUrl) throw error;
        notes.push(`there is one thread: ${error.message}`);
      }
    }
    ready ??= init(wasmUrl && { module_or_path: wasmUrl });
    return { bindings, memory: (await ready).memory, threads: 1, notes };
  } catch (error) {
    ready = null;
    throw new EngineError("wasm_failed", `the wasm module did not load: ${error.message}`, "serve it beside the package, or say where it is with wasmUrl and threadsUrl");
  }
}
