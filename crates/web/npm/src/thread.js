// A thread of the CPU: a worker that takes part in what the engine's worker computes.

import { later } from "./later.js";

addEventListener("message", async ({ data: { place, module, memory, failures } }) => {
  const { default: init, work } = await later(new URL(place));
  await init({ module_or_path: module, memory });
  postMessage("ready");
  try {
    work();
  } catch (error) {
    // The engine would wait forever for what this thread has begun.
    Atomics.add(new Int32Array(memory.buffer), failures >> 2, 1);
    throw error;
  }
}, { once: true });
