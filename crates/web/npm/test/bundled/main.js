// A page that a bundler builds: what comes back was said by the worker, so it and the wasm modules were found.

import { Engine, models } from "chaski";

globalThis.found = models.download("/nothing.gguf").then(
  () => "stored",
  (error) => error.code,
);

globalThis.answer = async (model, worker) => {
  const engine = await Engine.create({ model, device: "cpu", contextLength: 256, worker });
  const { choices } = await engine.completions.create({ prompt: "Inti", grammar: 'start: " ran" | " slept"' });
  await engine.close();
  return choices[0].text;
};
