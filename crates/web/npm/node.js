// The engine in Node.js: on WebGPU by Dawn (the package `webgpu`), or on the CPU.

import { openAsBlob } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { Engine, EngineError } from "./index.js";
import { badRequest } from "./src/errors.js";

/** Defines the globals by which bindings of WebGPU know a page. */
function asPage(gpu) {
  globalThis.navigator ??= { userAgent: `Node.js/${process.versions.node}` };
  if (navigator.gpu !== gpu) Object.defineProperty(navigator, "gpu", { value: gpu, configurable: true });
  globalThis.Window ??= class Window {};
}

/** A module of WebAssembly as an address: `fetch` reads no files here. */
async function module(path) {
  const bytes = await readFile(fileURLToPath(new URL(path, import.meta.url)));
  return `data:application/wasm;base64,${bytes.toString("base64")}`;
}

/** A file that is read piece by piece. */
async function opened(path) {
  try {
    return new File([await openAsBlob(path)], basename(path));
  } catch (error) {
    throw new EngineError("not_found", `${path}: ${error.message}`);
  }
}

let modules = null;

/** Loads a model: files by their paths, all of a split set, or what a page can name. On the CPU, unless there is a `gpu`. */
export async function createEngine({ model, gpu, ...options } = {}) {
  const paths = [model].flat();
  if (paths.length === 0 || !paths.every((path) => typeof path === "string" || path instanceof URL)) {
    throw badRequest("model: expected the path of a GGUF file, or those of a split set, or an address");
  }
  const remote = /^(?:https?|hf):/.test(String(paths[0]));
  const files = remote ? String(paths[0]) : await Promise.all(paths.map(opened));
  if (gpu) asPage(gpu);
  modules ??= Promise.all(["wasm/chaski_web_bg.wasm", "wasm/grammar/chaski_grammar_bg.wasm"].map(module));
  const [wasmUrl, grammarUrl] = await modules;
  const device = gpu ? "gpu" : "cpu";
  return Engine.create({ device, ...options, wasmUrl, grammarUrl, model: files, worker: false, cache: "none" });
}

export { EngineError };
