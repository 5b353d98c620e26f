// Grammars: a module of WebAssembly of their own, loaded with the first request that has a rule.

import init, { Grammars } from "../wasm/grammar/chaski_grammar.js";
import { EngineError } from "./errors.js";

let ready = null;

/** Makes grammars for a vocabulary. What does not load is asked for again by the next request. */
export async function grammars(vocabulary, url) {
  ready ??= init(url && { module_or_path: url });
  try {
    await ready;
  } catch (error) {
    ready = null;
    throw new EngineError("wasm_failed", `the module of grammars did not load: ${error.message}`, "serve it beside the package, or say where it is with grammarUrl; requests without a rule need no grammars");
  }
  return new Grammars(vocabulary());
}
