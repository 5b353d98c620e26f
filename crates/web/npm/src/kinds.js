// Validation of options and fields.

import { badRequest } from "./errors.js";

export const isU32 = (v) => Number.isInteger(v) && v >>> 0 === v;

/** Names, what they may be, and a test where that is no list of types and values. */
const KINDS = [
  ["contextLength sequences chunk interval seed max_tokens max_completion_tokens top_logprobs n_keep", "integer from 0 to 4294967295", isU32],
  ["top_n", "integer from 1", (v) => isU32(v) && v > 0],
  ["top_k repeat_last_n", "integer of 32 bits", (v) => (v | 0) === v],
  ["temperature top_p min_p typical_p repeat_penalty frequency_penalty presence_penalty", "number", Number.isFinite],
  ["memoryBudget retryMs", "number from 0", (v) => typeof v === "number" && v >= 0],
  ["logprobs", "boolean or integer from 0", (v) => v === !!v || isU32(v)],
  ["logit_bias", "numbers by token", (v) => Object.entries(v).every(([id, bias]) => isU32(+id) && isFinite(bias))],
  ["offline subgroups selfTest ignore_eos context_drop context_shift add_generation_prompt continue_final_message echo enable_thinking parse_special return_progress return_documents parallel_tool_calls", "boolean"],
  ["kvType inputs hfToken hub grammar reasoning_effort", "string"],
  ["chat_template_kwargs response_format sha256", "object"],
  ["onProgress", "function"],
  ["tools documents texts lora loras", "list", Array.isArray],
  ["headers", "headers", (v) => new Headers(v)],
  ["workerUrl wasmUrl grammarUrl", "address", address],
  ["shared", "boolean or string"],
  ["worker", "boolean or Worker", (v) => v === !!v || v.postMessage],
  ["cache", "opfs or none"],
  ["device", "auto or gpu or cpu"],
  ["n", "1", (v) => v === 1],
  ["tool_choice", "auto, none, required or a function", (v) => ["auto", "none", "required"].includes(v) || typeof v.function.name === "string"],
  ["encoding_format", "float or base64"],
  ["pooling", "none or mean or cls or last"],
];

/** Addresses are meant from the page's place, wherever the engine runs. */
export function address(text) {
  return new URL(text, globalThis.location?.href).href;
}

/** Refuses what has other names, which may be misspelt, or values that they may not have. */
export function allow(values, known) {
  if (values === null || typeof values !== "object") throw badRequest(`expected an object, found ${shown(values)}`);
  const strange = Object.keys(values).find((name) => values[name] != null && !known.includes(name));
  if (strange) throw badRequest(`${strange} is not supported; known are ${known.join(", ")}`);
  verify(values);
}

/** Refuses values that are not what their names may be; null is as good as nothing. */
export function verify(values) {
  for (const [names, what, fits = (v) => what.split(" or ").some((w) => w === v || w === typeof v)] of KINDS) {
    for (const name of names.split(" ")) {
      const value = values[name] ?? undefined;
      let right = value === undefined;
      try {
        right ||= fits(value);
      } catch {
        // So does what no address can be made of.
      }
      if (!right) throw badRequest(`${name}: expected ${what}, found ${shown(value)}`);
    }
  }
}

/** JSON would not have all that a caller may hand over. */
const shown = (v) => (Object(v) === v ? typeof v : typeof v === "string" ? `"${v}"` : String(v));
