// chaski: language models from GGUF files on WebGPU. Importing this does nothing, so servers can, too.

import { download, once } from "./src/channel.js";
import { choose, isFallback } from "./src/device.js";
import { Engine, forHost, forWorker } from "./src/engine.js";
import { EngineError, badRequest } from "./src/errors.js";
import { locate } from "./src/locate.js";
import * as store from "./src/store.js";

export { Engine, EngineError };

/** Summary of a model file from its header: does it fit, and how much is there to load? */
export async function inspect(model, options = {}) {
  const args = { model: forWorker(model), options: forHost(options) };
  const found = await once(options, "inspect", args);
  const reasons = [];
  if (!found.webgpu && options.device === "gpu") reasons.push("there is no WebGPU adapter");
  const takes = `it takes ${found.memory.total} bytes of memory`;
  if (found.memory.total > (options.memoryBudget ?? Infinity)) reasons.push(`${takes}, the budget is ${options.memoryBudget}`);
  if (found.device === "cpu" && found.memory.total > 2 ** 32) reasons.push(`${takes}, WebAssembly has 4 GiB`);
  const { quota, usage } = (await globalThis.navigator?.storage?.estimate?.()) ?? {};
  if (options.cache !== "none" && quota !== undefined && found.downloadBytes > quota - usage) {
    reasons.push(`storing it takes ${found.downloadBytes} bytes, the browser allows ${quota - usage} more`);
  }
  return { ...found, fits: reasons.length === 0, reasons };
}

/** Capabilities of this browser; never throws. */
export async function capabilities() {
  const gpu = globalThis.navigator?.gpu;
  const adapter = (await gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => null)) ?? null;
  const { vendor, architecture, device, description } = adapter?.info ?? {};
  const names = ["maxBufferSize", "maxStorageBufferBindingSize", "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup"];
  return {
    webgpu: adapter !== null,
    device: (await choose()).device === "cpu" ? "cpu" : "gpu",
    adapter: adapter && { vendor, architecture, device, description, fallback: isFallback(adapter) },
    f16: adapter?.features.has("shader-f16") ?? false,
    subgroups: (adapter?.features.has("subgroups") && gpu.wgslLanguageFeatures?.has("subgroup_id")) ?? false,
    limits: adapter && Object.fromEntries(names.map((name) => [name, adapter.limits[name]])),
    worker: typeof Worker !== "undefined",
    opfs: (await globalThis.navigator?.storage?.getDirectory?.().then(() => true, () => false)) ?? false,
    locks: globalThis.navigator?.locks !== undefined,
  };
}

/** The addresses of a model's files, as far as they can be known without the network. */
async function addresses(model, options) {
  const source = forWorker(model);
  if (typeof source !== "string") throw badRequest("model: a File is not stored");
  return (await locate(source, { ...forHost(options), offline: true })).map((file) => file.url);
}

/** Removes all files of a model; false if none was stored. */
async function remove(model, options = {}) {
  const urls = await addresses(model, options).catch((error) => {
    if (error.code === "not_stored") return [];
    throw error;
  });
  let removed = false;
  for (const url of urls) removed = (await store.remove(url)) || removed;
  return removed;
}

/** The stored files. */
export const models = {
  list: store.list,
  remove,
  usage: store.usage,
  persist: store.persist,
  catalogue: async () => (await import("./src/catalogue.js")).catalogue(),
  download: async (model, options = {}) =>
    (await download(options, { model: forWorker(model), options: forHost(options) })).files,
  verify: async (model, options = {}) =>
    once(options, "verify", { urls: await addresses(model, options), options: forHost(options) }),
};
