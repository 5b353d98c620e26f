// Grammars: a module of WebAssembly of their own, loaded with the first request that has a rule.

import init, { Grammars } from "../wasm/grammar/chaski_grammar.js";
import { EngineError } from "./errors.js";

/** Makes grammars for a vocabulary. A module that does not load is asked for again by the next request. */
export async function grammars(vocabulary, url) {
  try {
    await init(url && { module_or_path: url });
  } catch (error) {
    throw new EngineError("wasm_failed", `the module of grammars did not load: ${error.message}`, "serve it beside the package, or say where it is with grammarUrl");
  }
  return new Grammars(vocabulary());
}
