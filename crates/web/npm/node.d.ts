import type { CreateOptions, Engine } from "./index.js";

/** Options of an engine in Node.js. */
export interface NodeOptions extends Omit<CreateOptions, "model" | "worker" | "workerUrl" | "wasmUrl" | "grammarUrl" | "threads" | "threadsUrl" | "cache" | "shared"> {
  /** The path of a GGUF file, those of all files of a split set, or an address or `hf:` name, which is read by ranges. */
  model: string | URL | string[];
  /** WebGPU, such as `create([])` of the package `webgpu`, whose `globals` belong into `globalThis`; without it, the CPU. */
  gpu?: unknown;
}

/** Loads a model. */
export function createEngine(options: NodeOptions): Promise<Engine>;
export { EngineError } from "./index.js";
