// State that survives an answer and its device: continued answers, conversations as bytes, embeddings of texts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MODEL, open } from "./page.js";

let t;
before(async () => {
  t = await open();
  await t.page.evaluate(async (model) => {
    // Two pages: a beginning in the cache is copied to a page of its own.
    globalThis.create = () => chaski.Engine.create({ model, device: "gpu", contextLength: 128 });
    globalThis.engine = await create();
    globalThis.tested = [engine.info().device.tested];
    globalThis.request = { prompt: "Once upon a time", temperature: 0, max_tokens: 10, ignore_eos: true };
    globalThis.whole = (await engine.completions.create(request)).choices[0].text;
  }, MODEL);
});
after(() => t?.close());

test("an answer goes on when its device is lost, and so does the engine", async () => {
  const found = await t.page.evaluate(async () => {
    let [text, chunks] = ["", 0];
    for await (const chunk of engine.completions.create({ ...request, stream: true })) {
      text += chunk.choices[0]?.text ?? "";
      if (++chunks === 2) await engine.loseDevice();
    }
    const during = engine.stats().deviceLosses;
    await engine.loseDevice();
    const again = (await engine.completions.create(request)).choices[0].text;
    return { text, during, again, whole, after: engine.stats().deviceLosses };
  });
  assert.ok(found.whole.length > 15, found.whole);
  assert.equal(found.text, found.whole);
  assert.equal(found.again, found.whole);
  assert.deepEqual([found.during, found.after], [1, 1]);
});

test("a conversation is bytes that another engine goes on with", async () => {
  const found = await t.page.evaluate(async () => {
    await engine.completions.create(request);
    const bytes = await engine.save();
    await engine.close();
    globalThis.engine = await create();
    tested.push(engine.info().device.tested);
    const wrong = await failure(engine.restore(bytes.slice(0, 100)));
    const nothing = await failure(engine.restore("session"));
    await engine.restore(bytes);
    const text = (await engine.completions.create(request)).choices[0].text;
    return { wrong, nothing, text, whole, cached: engine.stats().cachedTokens, size: bytes.length };
  });
  assert.deepEqual([found.wrong.code, found.nothing.code], ["bad_request", "bad_request"]);
  assert.ok(found.size > 10_000);
  assert.equal(found.text, found.whole);
  assert.ok(found.cached >= 3, `${found.cached} tokens were in the cache`);
});

test("a device is tested once", async () => {
  assert.deepEqual(await t.page.evaluate(() => tested), [true, false]);
});

test("texts become vectors in OpenAI's shape", async () => {
  const found = await t.page.evaluate(async () => {
    const input = ["The dog ran.", "A dog was running.", "The dog ran."];
    const mean = await engine.embeddings.create({ input, pooling: "mean" });
    const coded = await engine.embeddings.create({ input: input[1], pooling: "mean", encoding_format: "base64" });
    const each = await engine.embeddings.create({ input: input[0], pooling: "none" });
    const bytes = Uint8Array.from(atob(coded.data[0].embedding), (c) => c.charCodeAt(0));
    const errors = [await failure(engine.embeddings.create({ input: [] })), await failure(engine.embeddings.create({ input: "a", pooling: "rank" }))];
    return { mean, decoded: [...new Float32Array(bytes.buffer)], each, errors, width: engine.info().embedding };
  });
  const [a, b, again] = found.mean.data.map((d) => d.embedding);
  assert.equal(a.length, found.width);
  const dot = (x, y) => x.reduce((sum, v, i) => sum + v * y[i], 0);
  assert.ok(Math.abs(dot(a, a) - 1) < 1e-4 && dot(a, b) < 0.9999);
  assert.deepEqual(a, again);
  assert.deepEqual(found.decoded, b);
  assert.equal(found.each.data[0].embedding.length, found.each.usage.prompt_tokens);
  assert.deepEqual(found.errors.map((e) => e.code), ["bad_request", "bad_request"]);
});

test("a full context is shifted if that is asked for", async () => {
  const found = await t.page.evaluate(async () => {
    const long = { ...request, max_tokens: 140 };
    const ended = await engine.completions.create(long);
    const shifted = await engine.completions.create({ ...long, context_shift: true, n_keep: 1 });
    return [ended, shifted].map((answer) => [answer.choices[0].text, answer.usage.completion_tokens]);
  });
  const [[ended, few], [shifted, many]] = found;
  assert.ok(few < 140 && many === 140, `${few} and ${many} tokens`);
  assert.ok(shifted.startsWith(ended) && shifted.length > ended.length);
});

test("a conversation that is longer than the context loses its oldest turns", async () => {
  const found = await t.page.evaluate(async () => {
    const turn = (n) => [{ role: "user", content: `Say ${n}.` }, { role: "assistant", content: `${n}` }];
    const messages = [{ role: "system", content: "Be brief." }, ...Array.from({ length: 14 }, (_, i) => turn(i + 1)).flat(), { role: "user", content: "Say 15." }];
    const asked = { messages, max_tokens: 4, temperature: 0 };
    await engine.chat.completions.create(asked);
    const { droppedMessages, promptTokens } = engine.stats();
    const [system] = messages;
    const kept = await engine.chat.completions.create({ ...asked, messages: [system, ...messages.slice(1 + droppedMessages)] });
    const refused = await engine.chat.completions.create({ ...asked, context_drop: false }).catch((e) => e.code);
    return { droppedMessages, promptTokens, again: kept.usage.prompt_tokens, refused };
  });
  assert.ok(found.droppedMessages >= 2 && found.droppedMessages % 2 === 0, `${found.droppedMessages} messages`);
  assert.ok(found.promptTokens <= 124 && found.again === found.promptTokens, `${found.promptTokens} and ${found.again} tokens`);
  assert.equal(found.refused, "context_overflow");
});
