// A page that a bundler builds: what comes back was said by the worker, so it and the wasm module were found.

import { models } from "chaski";

globalThis.found = models.download("/nothing.gguf").then(
  () => "stored",
  (error) => error.code,
);
