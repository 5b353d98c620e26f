// Uses of the declared types, checked by `tsc` only.

import { Engine, EngineError, capabilities, inspect, models } from "chaski";
import { SwarmError, work } from "chaski/swarm";
import type { SwarmJob, SwarmStatus } from "chaski/swarm";
import type OpenAI from "openai";

const controller = new AbortController();
const engine: Engine = await Engine.create({
  model: new URL("https://example.org/m.gguf"),
  kvType: "q8_0",
  inputs: "i8",
  device: "auto",
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
await Engine.create({ model: "x", sequences: 4, loras: [{ model: "hf:a/b/lora.gguf", scale: 0.5 }], draft: new URL("https://example.org/draft.gguf") });
await engine.completions.create({ prompt: "x", lora: [{ id: 0, scale: 1 }] });
const [best] = await engine.rerank("query", ["a", { text: "b" }], { top_n: 1 });
const ranked: number = (best?.relevance_score ?? 0) + (await engine.reranking.create({ query: "q", texts: ["a"] })).results[0]!.index;
await engine.chat.completions.create({ messages: [{ role: "assistant", content: "Once" }], continue_final_message: true });
// @ts-expect-error documents are texts
await engine.rerank("query", [1]);
const whole = await engine.chat.completions.create({ messages: [], tools: [], response_format: { type: "json_object" } });
const content: string | null = whole.choices[0]!.message.content;
// @ts-expect-error a whole answer is no stream
for await (const _ of whole) break;
// @ts-expect-error options are checked
await Engine.create({ model: "x", contextLenght: 5 });
// @ts-expect-error a device that there is not
await Engine.create({ model: "x", device: "tpu" });
// @ts-expect-error there is one n
await engine.completions.create({ prompt: "x", n: 2 });

// Our types are assignable to OpenAI's, and OpenAI's messages and tools to ours.
const messages: OpenAI.ChatCompletionMessageParam[] = [];
const tools: OpenAI.ChatCompletionFunctionTool[] = [];
const asked = { messages, tools, signal: controller.signal };
const chat: OpenAI.ChatCompletion = await engine.chat.completions.create(asked);
const plain: OpenAI.Completion = await engine.completions.create({ prompt: "", echo: true, logprobs: 1 });
for await (const chunk of engine.chat.completions.create({ ...asked, stream: true })) {
  const theirs: OpenAI.ChatCompletionChunk = chunk;
  console.log(theirs.id);
}
async function either(stream: boolean) {
  await using own = await Engine.create({ model: "x", worker: false });
  const answer = await own.chat.completions.create({ messages, stream });
  if ("choices" in answer) return answer.choices[0]?.message.content;
  for await (const chunk of answer) return chunk.choices[0]?.delta.content;
}

const total: number = engine.memory().total + (engine.stats()?.tokens ?? 0) + (await engine.tokenize(text)).length;
const fits: boolean = (await inspect("hf:a/b")).fits && (await capabilities()).webgpu && (await models.verify("x")) && (await models.remove(new URL("https://h.org/x")));
try {
  await engine.close();
} catch (error) {
  if (error instanceof EngineError && error.code === "device_lost") console.log(error.hint, ranked, content, total, fits, chat, plain, either);
}

const job: SwarmJob = await work("ws://127.0.0.1:8090", { token: "0".repeat(32), memory: 2 ** 30, onStatus: (status: SwarmStatus) => console.log(status.rate) });
job.stop();
if ((await job.done).state === "failed") console.log(job.status.reason, SwarmError.name);
// @ts-expect-error memory is in bytes
await work("ws://127.0.0.1:8090", { memory: "1G" });
