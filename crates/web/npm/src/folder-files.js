// Which files of a folder of Hugging Face or of MLC are a model.

import { EngineError } from "./errors.js";
import { send } from "./network.js";

const MLC = "mlc-chat-config.json";
const HF = "config.json";
/** Indexes of weights. */
const CACHES = ["tensor-cache.json", "ndarray-cache.json"];
const INDEX = "model.safetensors.index.json";
/** Configurations, tokenizers and templates. */
const SMALL = /^(?:additional_chat_templates\/)?[^/]+\.(?:json|jinja|model|txt)$/;
/** Further files that a folder at an address may have: nothing lists them. */
const NAMES = ["generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "vocab.txt", "chat_template.jinja", "chat_template.json", "hf_quant_config.json"];

/** The files of the model among those of a folder: weights in the parts that an index names, if there are some. None if it is no model. */
export function inFolder(files) {
  const names = new Set(files.map(({ name }) => name));
  if (!names.has(MLC) && !names.has(HF)) return [];
  const weights = names.has(MLC) ? /^params_shard_\d+\.bin$/ : names.has(INDEX) ? /^[^/]+-\d+-of-\d+\.safetensors$/ : /^model\.safetensors$/;
  return files.filter(({ name }) => SMALL.test(name) || weights.test(name));
}

/** Names of the files of the folder at an address. */
export async function probe(base, { headers = {}, signal }) {
  const asked = async (name, method) => {
    const response = await send(new URL(name, base).href, headers, { signal, method });
    if (method) return response.ok;
    return response.ok ? response.json().catch(() => null) : (response.body?.cancel(), null);
  };
  const first = async (names) => {
    for (const name of names) {
      const json = await asked(name);
      if (json) return [name, json];
    }
    return [];
  };
  const [config] = await first([MLC, HF]);
  if (!config) {
    throw new EngineError("not_found", `${base.href} has no ${MLC} and no ${HF}`, "name a GGUF file, or a folder of MLC or Hugging Face");
  }
  const [index, json] = await first(config === MLC ? CACHES : [INDEX]);
  const named = config === MLC ? json?.records?.map?.(({ dataPath }) => dataPath) : Object.values(json?.weight_map ?? { "": "model.safetensors" });
  const weights = [...new Set(named)].filter((name) => /^[^/\\:]+$/.test(name));
  const there = await Promise.all(NAMES.map((name) => asked(name, "HEAD")));
  return [config, index, ...NAMES.filter((_, i) => there[i]), ...weights].filter(Boolean);
}
