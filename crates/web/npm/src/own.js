// Files of an engine on the page's own thread: only workers write, so one stores them first.

import { download } from "./channel.js";

/** The engine's options once its files are stored; where there is no place for them, they are read from their server. */
export async function stored(options, { options: given, model, draft, loras = [] }) {
  const all = [model, draft, ...loras.map((lora) => lora.model)].filter((one) => typeof one === "string");
  if (all.length === 0 || options.offline) return given;
  try {
    for (const one of all) await download(options, { model: one, options: given });
    return { ...given, offline: true };
  } catch (error) {
    if (error.code !== "storage_unavailable" || options.cache) throw error;
    return { ...given, cache: "none" };
  }
}
