// LoRAs, and models that draft answers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FLOAT32, entry, text, written } from "./gguf.js";
import { MODEL, open } from "./page.js";

/** Low-rank matrices beside some of the default model's, with values that look random. */
function lora(seed) {
  const value = (i) => Math.sin(seed * 7919 + i * 12.9898) * 0.4;
  const half = (name, sizes) => ({ name, sizes, values: Array.from({ length: sizes[0] * sizes[1] }, (_, i) => value(i + name.length)) });
  const tensors = [2, 5, 7].flatMap((i) => [half(`blk.${i}.attn_output.weight.lora_a`, [256, 2]), half(`blk.${i}.attn_output.weight.lora_b`, [2, 256])]);
  return written([text("general.architecture", "llama"), text("general.type", "adapter"), text("adapter.type", "lora"), entry("adapter.lora.alpha", FLOAT32, 0)], tensors);
}

let t;
before(async () => {
  const files = { "/first.gguf": lora(1), "/second.gguf": lora(2), "/odd.gguf": written([text("general.architecture", "llama"), text("general.type", "adapter")], []) };
  t = await open((request, response, url) => {
    const file = files[url.pathname];
    if (!file) return false;
    response.writeHead(200, { "content-length": file.length }).end(file);
    return true;
  });
  await t.page.evaluate((model) => {
    globalThis.create = (more) => chaski.Engine.create({ model, device: "cpu", contextLength: 128, ...more });
    globalThis.say = async (engine, more) => (await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 12, ignore_eos: true, ...more })).choices[0].text;
    globalThis.LORAS = [{ model: "/first.gguf", scale: 0.75 }, { model: "/second.gguf", scale: 0 }];
  }, MODEL);
});
after(() => t?.close());

test("LoRAs have the scales of the engine or of a request, also beside others", async () => {
  const found = await t.page.evaluate(async () => {
    const [base, engine] = [await create(), await create({ loras: LORAS, sequences: 3 })];
    const plain = await say(base);
    const other = await create({ loras: [{ model: "/first.gguf", scale: 0.25 }, { model: "/second.gguf" }] });
    const requests = [{}, { lora: [] }, { lora: [{ id: 0, scale: 0.25 }, { id: 1, scale: 1 }] }, { lora: [{ id: 0, scale: 0.75 }] }];
    const alone = [];
    for (const request of requests) alone.push(await say(engine, request));
    const together = await Promise.all(requests.map((request) => say(engine, request)));
    const response = await engine.fetch("http://localhost/v1/completions", { method: "POST", body: JSON.stringify({ prompt: "Once upon a time", temperature: 0, max_tokens: 12, lora: [] }) });
    const vectors = async (lora) => (await engine.embeddings.create({ input: "Inti", pooling: "mean", lora })).data[0].embedding;
    const embedded = [await vectors(), await vectors([]), await vectors([{ id: 0, scale: 0.75 }])];
    const wrong = await Promise.all([{ lora: [{ id: 2, scale: 1 }] }, { lora: [{ id: 0 }] }, { lora: 1 }].map((more) => failure(say(engine, more))));
    const result = { plain, alone, together, other: await say(other), byFetch: (await response.json()).choices[0].text, embedded, wrong: wrong.map((e) => e.code) };
    await Promise.all([base, engine, other].map((one) => one.close()));
    return result;
  });
  const [applied, off, both, same] = found.alone;
  assert.equal(off, found.plain);
  assert.ok(found.plain.startsWith(found.byFetch) && found.byFetch.length > 10);
  assert.notEqual(applied, found.plain);
  assert.equal(same, applied);
  assert.equal(both, found.other);
  assert.notEqual(both, applied);
  assert.deepEqual(found.together, found.alone);
  assert.notDeepEqual(found.embedded[0], found.embedded[1]);
  assert.deepEqual(found.embedded[2], found.embedded[0]);
  assert.deepEqual(found.wrong, ["bad_request", "bad_request", "bad_request"]);
});

test("a file that is no LoRA, or is not there, ends the loading", async () => {
  const codes = await t.page.evaluate(async () => {
    const bad = [[{ model: "/odd.gguf" }], [{ model: "/nothing.gguf" }], [{}], "/first.gguf"].map((loras) => failure(create({ loras })));
    return (await Promise.all(bad)).map((e) => [e.code, e.message]);
  });
  assert.deepEqual(codes.map(([code]) => code), ["bad_request", "not_found", "bad_request", "bad_request"]);
  assert.match(codes[0][1], /the LoRA `odd.gguf`/);
});

test("drafts change nothing but the number of steps, for several answers, too", async () => {
  const found = await t.page.evaluate(async (model) => {
    const [base, engine] = [await create(), await create({ draft: model, sequences: 2 })];
    const prompts = ["Once upon a time", "The king said"];
    const expected = [];
    for (const prompt of prompts) expected.push(await say(base, { prompt }));
    const alone = await say(engine);
    const { drafted, accepted, tokens } = engine.stats();
    const together = await Promise.all(prompts.map((prompt) => say(engine, { prompt })));
    const chat = await engine.chat.completions.create({ messages: [{ role: "user", content: "Hi" }], max_tokens: 12, temperature: 0 });
    const plain = base.stats();
    await Promise.all([base, engine].map((one) => one.close()));
    return { expected, alone, together, drafted, accepted, tokens, timings: chat.timings, plain: [plain.drafted, plain.accepted] };
  }, MODEL);
  assert.equal(found.alone, found.expected[0]);
  assert.deepEqual(found.together, found.expected);
  assert.ok(found.drafted >= 4 && found.accepted > 0.8 * found.drafted - 4, `${found.accepted} of ${found.drafted}, ${found.tokens} tokens`);
  assert.ok(found.timings.draft_n > 0 && found.timings.draft_n_accepted <= found.timings.draft_n);
  assert.deepEqual(found.plain, [0, 0]);
});
