// The module of `wgsl-pre` with values instead of JSON; it is loaded when this file is imported.

import init, * as wasm from "./wasm/wgsl_pre.js";

const url = new URL("wasm/wgsl_pre_bg.wasm", import.meta.url);
// Node.js fetches no files.
const source = url.protocol === "file:" ? (await import("node:fs/promises")).readFile(url) : url;
await init({ module_or_path: await source });

export function preprocess(source, macros = {}, files = {}) {
  return wasm.preprocess(source, JSON.stringify(macros), JSON.stringify(files));
}

export function render(templates, name, variables = {}) {
  return wasm.render(JSON.stringify(templates), name, JSON.stringify(variables));
}
