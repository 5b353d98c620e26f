// What a caller writes must have the types that the declarations promise; `tsc` runs over it, nothing else does.

import { Engine, EngineError, capabilities, inspect, models } from "chaski";

const controller = new AbortController();
const engine: Engine = await Engine.create({
  model: new URL("https://example.org/m.gguf"),
  kvType: "q8_0",
  signal: controller.signal,
  onProgress: ({ stage, loaded, total }) => console.log(stage, loaded / (total ?? 1)),
});

let text = "";
for await (const chunk of engine.chat.completions.create({ messages: [{ role: "user", content: "Hi" }], stream: true })) {
  text += chunk.choices[0]?.delta.content ?? "";
}
for await (const chunk of await engine.completions.create({ prompt: [1, 2], stream: true })) {
  text += chunk.choices[0]?.text ?? "";
}
const whole = await engine.chat.completions.create({ messages: [], tools: [], response_format: { type: "json_object" } });
const content: string | null = whole.choices[0]!.message.content;
// @ts-expect-error a whole answer is no stream
for await (const _ of whole) break;
// @ts-expect-error options are checked
await Engine.create({ model: "x", contextLenght: 5 });
// @ts-expect-error there is one n
await engine.completions.create({ prompt: "x", n: 2 });

const total: number = engine.memory().total + (engine.stats()?.tokens ?? 0) + (await engine.tokenize(text)).length;
const fits: boolean = (await inspect("hf:a/b")).fits && (await capabilities()).webgpu && (await models.verify("x"));
try {
  await engine.close();
} catch (error) {
  if (error instanceof EngineError && error.code === "device_lost") console.log(error.hint, content, total, fits);
}
