// The engine on the CPU: what browsers without a GPU get.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MODEL, open } from "./page.js";

/** Greedy text of the default model, as on any device. */
const GOLDEN = ", there lived a small, lively boy named Inti. He could not sit still for a minute. Inti was the youngest chaski, a mess";

let t;
before(async () => {
  t = await open();
  await t.page.evaluate(async (model) => {
    globalThis.engine = await chaski.Engine.create({ model, device: "cpu" });
  }, MODEL);
});
after(() => t?.close());

test("greedy text is that of other devices", async () => {
  const found = await t.page.evaluate(async (model) => {
    const request = { prompt: "Once upon a time", temperature: 0, max_tokens: 24 };
    const answer = await engine.completions.create(request);
    const { device, loading, memory } = engine.info();
    const told = await chaski.inspect(model, { device: "cpu" });
    const small = await failure(chaski.Engine.create({ model, device: "cpu", memoryBudget: memory.total - 1 }));
    const enough = await chaski.Engine.create({ model, device: "cpu", memoryBudget: memory.total });
    await enough.close();
    return { text: answer.choices[0].text, device, loading, memory, told: told.memory, small: small.code, stats: engine.stats() };
  }, MODEL);
  assert.ok(GOLDEN.startsWith(found.text) && found.text.length > 60, found.text);
  assert.equal(found.device.kind, "cpu");
  assert.deepEqual([found.device.caps, found.device.fallback, found.device.tested], [null, null, false]);
  assert.ok(found.loading.totalMs > 0 && found.memory.total > 4e6);
  assert.deepEqual(found.told, found.memory, "known before it is loaded");
  assert.equal(found.small, "out_of_memory");
  assert.ok(found.stats.tokensPerSecond > 0);
});

test("inputs are taken as asked for, or refused", async () => {
  const found = await t.page.evaluate(async (model) => {
    const own = await chaski.Engine.create({ model, device: "cpu", inputs: "f32", contextLength: 64 });
    const answer = await own.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 8 });
    await own.close();
    const odd = await failure(chaski.Engine.create({ model, device: "cpu", inputs: "i4" }));
    return { text: answer.choices[0].text, odd: [odd.code, odd.message] };
  }, MODEL);
  assert.ok(GOLDEN.startsWith(found.text) && found.text.length > 5, found.text);
  assert.equal(found.odd[0], "bad_request");
  assert.match(found.odd[1], /i16 or i8, found `i4`/);
});

test("without a GPU it is taken by itself, and says why", async () => {
  const found = await t.page.evaluate(async (model) => {
    const own = await chaski.Engine.create({ model, contextLength: 64 });
    const { device } = own.info();
    await own.close();
    return { device, can: await chaski.capabilities() };
  }, MODEL);
  // Chromium without a GPU has an adapter that says so.
  const software = found.can.adapter === null || found.can.adapter.fallback;
  assert.equal(found.device.kind, software ? "cpu" : "gpu");
  assert.equal(found.can.device, found.device.kind);
  if (software) assert.match(found.device.fallback, /WebGPU/);
});

/** Milliseconds until the engine is free for the next request. */
const FREE = `async () => {
  const start = performance.now();
  await engine.tokenize("x");
  return performance.now() - start;
}`;

test("an abort acts inside a prompt, and inside an answer that nobody reads piece by piece", async () => {
  const found = await t.page.evaluate(async (free) => {
    const ask = (prompt, n, signal) => engine.completions.create({ prompt, max_tokens: n, temperature: 0, ignore_eos: true }, { signal });
    const aborted = async (prompt, n, after) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), after);
      const error = await failure(ask(prompt, n, controller.signal));
      return [error?.code, await eval(free)()];
    };
    const long = "Inti ran along the mountain path. ".repeat(45);
    const timed = async (...args) => {
      const start = performance.now();
      await ask(...args);
      return performance.now() - start;
    };
    const all = [await timed(`So ${long}`, 1), await timed("Once", 400)];
    return { all, found: [await aborted(long, 1, all[0] / 5), await aborted("Once upon a time", 400, all[1] / 5)] };
  }, FREE);
  found.found.forEach(([code, waited], i) => {
    assert.equal(code, "aborted");
    // The remaining work takes 0.8 of it.
    assert.ok(waited < 0.6 * found.all[i], `${waited} ms after the abort, of ${found.all[i]}`);
  });
  const text = await t.page.evaluate(async () => {
    const answer = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 8 });
    return answer.choices[0].text;
  });
  assert.ok(GOLDEN.startsWith(text) && text.length > 5, text);
});

test("a conversation can be saved and goes on, and texts are embedded", async () => {
  const found = await t.page.evaluate(async () => {
    await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 4 });
    const bytes = await engine.save();
    await engine.completions.create({ prompt: "Another one", temperature: 0, max_tokens: 4 });
    await engine.restore(bytes);
    const answer = await engine.completions.create({ prompt: "Once upon a time, there lived", temperature: 0, max_tokens: 4 });
    const vectors = await engine.embeddings.create({ input: ["sun", "moon"], pooling: "mean" });
    return { cached: answer.usage.prompt_tokens_details.cached_tokens, vectors: vectors.data.map((d) => d.embedding.length) };
  });
  assert.ok(found.cached > 3, `${found.cached} tokens were there`);
  assert.ok(found.vectors[0] > 0 && found.vectors[0] === found.vectors[1]);
});

/** Calls that are refused: each with its code, and words of the message. */
const bad = (make, values, words = (value) => `^${/\w+/.exec(value)}: expected`) => values.map((value) => [make(value), "bad_request", words(value)]);
const text = (field) => `engine.completions.create({ prompt: "x", ${field} })`;
const chat = (field) => `engine.chat.completions.create({ messages: [{ role: "user", content: "Hi" }], ${field} })`;
const embed = (field) => `engine.embeddings.create({ input: "hi", ${field} })`;
const load = (option) => `chaski.Engine.create({ model, ${option} })`;
const WRONG = [
  ...bad((value) => `engine.tokenize(${value})`, ["5", "{}", "", "null"], () => "text"),
  ...bad((value) => `engine.detokenize(${value})`, ["5", '"abc"', "[1e6, -1]", "[300.7]", "[1e6]", "[5n]", ""], () => "tokens"),
  ...bad(text, ["seed: -1", "seed: 5e9", "seed: 5n", "max_tokens: -1", "max_tokens: 1e15", "top_k: 1.5", "logprobs: -1", "n_keep: -1"]),
  ...bad(text, ['ignore_eos: "yes"', 'temperature: "hot"', "temperature: NaN", "grammar: 5", "n: 2", 'logit_bias: { "-1": 5 }', 'stop: [""]']),
  ...bad(text, ["prompt: [5n]", "prompt: [-1]"]),
  ...bad(chat, ['top_logprobs: "3"', 'tools: "x"', 'tool_choice: "some"', 'response_format: "json"', "enable_thinking: 5"]),
  ...bad(chat, ["chat_template_kwargs: { enable_thinking: 5 }"], () => "^enable_thinking: expected"),
  ...bad((field) => `engine.applyTemplate([], { ${field} })`, ["enable_thinking: 5", "tools: 5"]),
  ...bad(embed, ["pooling: 5", 'pooling: "rank"', "encoding_format: Symbol()"]),
  ...bad((signal) => `engine.completions.create({ prompt: "x" }, { ${signal} })`, ['signal: "x"', "signal: {}"]),
  ...bad((signal) => `engine.completions.create({ prompt: "x", stream: true, ${signal} })[Symbol.asyncIterator]().next()`, ['signal: "x"', "signal: {}"]),
  ...bad((signal) => `chaski.inspect(model, { ${signal} })`, ['signal: "x"', "signal: {}"]),
  ...bad(load, ['contextLength: "2048"', "contextLength: -1", "chunk: 1.5", 'memoryBudget: "1GB"', "kvType: 5", 'cache: "x"', 'signal: "x"']),
  ...bad(load, ['worker: "x"', "worker: {}", 'workerUrl: "http://["', 'wasmUrl: "http://["', "onProgress: 5", 'headers: { "bad header": "x" }']),
  ["chaski.Engine.create()", "bad_request", "object"],
  ["chaski.inspect(model, null)", "bad_request", "object"],
  ['engine.applyTemplate([{ role: "user", content: [{ type: "image_url" }] }])', "unsupported", "^messages\\[0\\].*image_url"],
];

test("what makes no sense is refused by name, and the engine goes on", async () => {
  const found = await t.page.evaluate(
    async ([wrong, model]) => {
      const errors = [];
      for (const [call] of wrong) errors.push(await failure(new Function("model", `return ${call}`)(model)));
      const { choices } = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 8, ignore_eos: null, seed: null });
      return { errors, text: choices[0].text };
    },
    [WRONG, MODEL],
  );
  WRONG.forEach(([call, code, words], i) => {
    const error = found.errors[i];
    assert.deepEqual([error?.engine, error?.code], [true, code], `${call}: ${error?.message}`);
    assert.match(error.message, new RegExp(words), call);
  });
  assert.ok(GOLDEN.startsWith(found.text) && found.text.length > 5, found.text);
});

test("half a pair of surrogates is read as a replacement, and null as nothing", async () => {
  const found = await t.page.evaluate(async (model) => {
    const { usage } = await engine.completions.create({ prompt: "\ud83d", max_tokens: 1 });
    const [half, whole] = [await engine.tokenize("\ud83d", null), await engine.tokenize("\ufffd", null)];
    const prompt = await engine.applyTemplate([{ role: "user", content: "a\ud83d" }], null);
    const own = await chaski.Engine.create({ model, device: "cpu", worker: null, onProgress: null, signal: null, cache: null, kvType: null });
    await own.close();
    return { n: usage.prompt_tokens, half, whole, prompt, text: await engine.detokenize(whole, null) };
  }, MODEL);
  assert.deepEqual(found.half, found.whole);
  assert.equal(found.n, found.whole.length);
  assert.ok(found.prompt.includes("a\ufffd") && found.text.includes("\ufffd"));
});

test("a listener that throws is reported, and the model loads, with a worker and without", async () => {
  const found = await t.page.evaluate(async (model) => {
    const out = [];
    for (const worker of [true, false]) {
      const errors = [];
      const onerror = (event) => {
        errors.push(event.message);
        event.preventDefault();
      };
      addEventListener("error", onerror);
      const onProgress = () => {
        throw new Error("mine");
      };
      const own = await chaski.Engine.create({ model, device: "cpu", worker, onProgress });
      removeEventListener("error", onerror);
      await own.close();
      out.push(errors.length > 1 && errors.every((message) => message.includes("mine")));
    }
    return out;
  }, MODEL);
  assert.deepEqual(found, [true, true]);
});

test("without pooling there is a list of vectors, also for a text of one token alone", async () => {
  const found = await t.page.evaluate(async () => {
    const input = "";
    const [each] = (await engine.embeddings.create({ input, pooling: "none" })).data;
    const [coded] = (await engine.embeddings.create({ input, pooling: "none", encoding_format: "base64" })).data;
    const [mean] = (await engine.embeddings.create({ input: "a", pooling: "mean", encoding_format: null })).data;
    const all = (await engine.embeddings.create({ input: [input, "The dog ran."], pooling: "none" })).data;
    return { each: each.embedding, coded: coded.embedding, mean: mean.embedding, all: all.map((d) => d.embedding.map((v) => v.length)) };
  });
  const width = found.mean.length;
  assert.ok(width > 1);
  assert.deepEqual(found.each.map((vector) => vector.length), [width]);
  assert.deepEqual(found.coded.map((text) => typeof text), ["string"]);
  assert.ok(found.all[1].length > found.all[0].length && found.all.flat().every((n) => n === width));
});

test("a browser that knows no WebGPU runs it, and refuses what insists on a GPU", async () => {
  const found = await t.page.evaluate(async (model) => {
    await engine.close();
    Object.defineProperty(Navigator.prototype, "gpu", { get: () => undefined, configurable: true });
    const own = await chaski.Engine.create({ model, worker: false });
    const answer = await own.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 8 });
    const { device } = own.info();
    await own.close();
    const refused = await failure(chaski.Engine.create({ model, worker: false, device: "gpu" }));
    const odd = await failure(chaski.Engine.create({ model, device: "tpu" }));
    const inspected = await chaski.inspect(model, { worker: false });
    const can = await chaski.capabilities();
    return { text: answer.choices[0].text, device, codes: [refused.code, odd.code], fits: inspected.fits, can: [can.webgpu, can.device] };
  }, MODEL);
  assert.ok(GOLDEN.startsWith(found.text) && found.text.length > 5, found.text);
  assert.equal(found.device.kind, "cpu");
  assert.match(found.device.fallback, /no WebGPU/);
  assert.deepEqual(found.codes, ["webgpu_unavailable", "bad_request"]);
  assert.ok(found.fits);
  assert.deepEqual(found.can, [false, "cpu"]);
});
