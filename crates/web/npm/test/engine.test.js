// The engine in a real browser: one loaded model, everything that can be asked of it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { MODEL, PACKAGE, open } from "./page.js";

/** Greedy text of the default model; the native command prints the same (crates/chaski/tests/whole_model/golden_text.rs). */
const GOLDEN = ", there lived a small, lively boy named Inti. He could not sit still for a minute. Inti was the youngest chaski, a mess";

let t;
before(async () => {
  t = await open();
  await t.page.evaluate(async (model) => {
    globalThis.progress = [];
    globalThis.engine = await chaski.Engine.create({ model, device: "gpu", onProgress: (p) => progress.push(p) });
  }, MODEL);
});
after(() => t?.close());

test("greedy text is the native one, token by token", async () => {
  const found = await t.page.evaluate(async () => {
    const request = { prompt: "Once upon a time", temperature: 0, max_tokens: 16 };
    return [await engine.completions.create(request), engine.stats()];
  });
  assert.ok(GOLDEN.startsWith(found[0].choices[0].text) && found[0].choices[0].text.length > 40, found[0].choices[0].text);
  assert.equal(found[0].choices[0].finish_reason, "length");
  assert.equal(found[0].usage.completion_tokens, 16);
  assert.equal(found[1].onCpu, null, "tokens are chosen on the device");
  assert.ok(found[1].tokensPerSecond > 0 && found[1].timeToFirstTokenMs > 0);
});

test("loading reports stages in order, and bytes up to their total", async () => {
  const progress = await t.page.evaluate(() => progress);
  const stages = [...new Set(progress.map((p) => p.stage))];
  assert.deepEqual(stages, ["resolve", "download", "compile", "upload"]);
  for (const stage of ["download", "upload"]) {
    const last = progress.filter((p) => p.stage === stage).at(-1);
    assert.equal(last.loaded, last.total, stage);
  }
});

test("masks of a grammar are applied on the device", async () => {
  const [found, onCpu] = await t.page.evaluate(async () => {
    const answer = await engine.completions.create({ prompt: "Once upon a time", grammar: 'start: /[a-f]{3}-[0-9]{2}/', temperature: 0, max_tokens: 16 });
    return [answer.choices[0], engine.stats().onCpu];
  });
  assert.match(found.text, /^[a-f]{3}-[0-9]{2}$/);
  assert.deepEqual([found.finish_reason, onCpu], ["stop", null]);
});

test("memory is listed by kind, and the wasm heap stays small", async () => {
  const [memory, heap] = await t.page.evaluate(async () => [engine.memory(), await engine.heap()]);
  const sum = Object.values(memory.items).reduce((a, b) => a + b, 0);
  assert.equal(sum, memory.total);
  assert.ok(memory.items.weights > 4e6);
  assert.ok(heap > 0 && heap < 16 << 20, `${heap} bytes of wasm heap`);
});

test("a chat streams OpenAI's chunks, iterated at once or awaited first", async () => {
  const [direct, awaited, whole] = await t.page.evaluate(async () => {
    const request = { messages: [{ role: "user", content: "Hi" }], temperature: 0, max_tokens: 6, stream: true };
    const direct = [];
    for await (const chunk of engine.chat.completions.create(request)) direct.push(chunk);
    const awaited = [];
    const stream = await engine.chat.completions.create({ ...request, stream_options: { include_usage: true } });
    for await (const chunk of stream) awaited.push(chunk);
    const whole = await engine.chat.completions.create({ ...request, stream: false });
    return [direct, awaited, whole];
  });
  const text = (chunks) => chunks.map((c) => c.choices[0]?.delta.content ?? "").join("");
  assert.equal(direct[0].object, "chat.completion.chunk");
  assert.equal(direct[0].choices[0].delta.role, "assistant");
  assert.equal(direct.at(-1).choices[0].finish_reason, "length");
  assert.ok(text(direct).startsWith("Hello"), text(direct));
  assert.equal(text(awaited), text(direct));
  assert.deepEqual(awaited.at(-1).choices, []);
  assert.equal(awaited.at(-1).usage.completion_tokens, 6);
  assert.ok(awaited.at(-1).usage.prompt_tokens_details.cached_tokens > 0, "the prompt was in the cache");
  assert.equal(whole.choices[0].message.content, text(direct));
});

test("text and tokens go to and fro, and the template makes a prompt", async () => {
  const [tokens, text, prompt] = await t.page.evaluate(async () => {
    const tokens = await engine.tokenize("Once upon a time", { addSpecial: false });
    return [tokens, await engine.detokenize(tokens), await engine.applyTemplate([{ role: "user", content: "Hi" }])];
  });
  assert.ok(tokens.length > 1 && tokens.every(Number.isInteger));
  assert.equal(text.trim(), "Once upon a time");
  assert.ok(prompt.includes("Hi") && prompt.length > 2, prompt);
});

/** Milliseconds until the engine is free for the next request. */
const FREE = `async () => {
  const start = performance.now();
  await engine.tokenize("x");
  return performance.now() - start;
}`;

test("an abort ends the answer within a token, and the next one is right", async () => {
  const found = await t.page.evaluate(async (free) => {
    const controller = new AbortController();
    const request = { prompt: "Once upon a time", temperature: 0, max_tokens: 400, stream: true };
    let [n, first, each] = [0, 0, 0];
    const run = (async () => {
      for await (const _ of engine.completions.create(request, { signal: controller.signal })) {
        if (++n === 1) first = performance.now();
        if (n < 4) continue;
        each = (performance.now() - first) / 3;
        controller.abort();
      }
    })();
    const error = await failure(run);
    const waited = await eval(free)();
    const again = await engine.completions.create({ ...request, stream: false, max_tokens: 8 });
    return { n, error, each, waited, text: again.choices[0].text };
  }, FREE);
  assert.equal(found.error.code, "aborted");
  assert.equal(found.n, 4);
  // The other tokens would take some 400 times as long as one.
  assert.ok(found.waited < 100 * found.each, `${found.waited} ms after the abort, ${found.each} ms a token`);
  assert.ok(GOLDEN.startsWith(found.text) && found.text.length > 5, found.text);
});

test("an abort acts inside a prompt", async () => {
  const found = await t.page.evaluate(async (free) => {
    const ask = (prompt, signal) => engine.completions.create({ prompt, max_tokens: 1 }, { signal });
    await ask("Sami sat by the river");
    const { timeToFirstTokenMs, promptTokens } = engine.stats();
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 100);
    const long = "Inti ran along the mountain path. ".repeat(45);
    const error = await failure(ask(long, controller.signal));
    const waited = await eval(free)();
    return { error, waited, each: timeToFirstTokenMs / promptTokens, tokens: (await engine.tokenize(long)).length };
  }, FREE);
  assert.equal(found.error.code, "aborted");
  assert.ok(found.tokens > 300, `${found.tokens} tokens`);
  // A few pieces of the prompt may be under way, not all of it.
  assert.ok(found.waited < (found.each * found.tokens) / 5, `${found.waited} ms after the abort, ${found.each} ms a token`);
});

test("leaving a stream's loop ends its answer", async () => {
  const found = await t.page.evaluate(async (free) => {
    const request = { prompt: "Once upon a time", temperature: 0, ignore_eos: true, max_tokens: 400 };
    let first = 0;
    for await (const _ of engine.completions.create({ ...request, stream: true })) {
      if (first) break;
      first = performance.now();
    }
    const each = performance.now() - first;
    const waited = await eval(free)();
    const next = await engine.completions.create({ ...request, max_tokens: 4 });
    return { each, waited, text: next.choices[0].text };
  }, FREE);
  assert.ok(found.waited < 100 * Math.max(found.each, 5), `${found.waited} ms after the loop, ${found.each} ms a token`);
  assert.ok(GOLDEN.startsWith(found.text) && found.text.length > 2, found.text);
});

test("the page stays responsive while the engine works", async () => {
  const longest = await t.page.evaluate(async () => {
    let [last, longest, going] = [performance.now(), 0, true];
    const tick = () => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
      if (going) setTimeout(tick, 0);
    };
    tick();
    await engine.completions.create({ prompt: "The chaski ran ".repeat(4), temperature: 0, max_tokens: 2 });
    going = false;
    return longest;
  });
  // All cores are busy being a GPU.
  assert.ok(longest < 2000, `${longest} ms`);
});

test("requests that make no sense are refused by name", async () => {
  const errors = await t.page.evaluate(() =>
    Promise.all(
      [
        async () => engine.chat.completions.create({ messages: "Hi" }),
        async () => engine.chat.completions.create({ messages: [{ content: "Hi" }] }),
        async () => engine.completions.create({ prompt: "x", temprature: 1 }),
        async () => engine.completions.create({ prompt: "x", temperature: "hot" }),
        async () => engine.completions.create({ prompt: "word ".repeat(2000) }),
        async () => chaski.Engine.create({ model: "/model/x.gguf", contextLenght: 5 }),
      ].map((f) => failure(f())),
    ),
  );
  const codes = ["bad_request", "bad_request", "bad_request", "bad_request", "context_overflow", "bad_request"];
  assert.deepEqual(errors.map((e) => e.code), codes);
  assert.ok(errors.every((e) => e.engine && e.message.length > 8));
  assert.match(errors[1].message, /messages\[0\]/);
  assert.match(errors[2].message, /temprature/);
  assert.match(errors[5].message, /contextLenght/);
  assert.equal(errors[4].detail.limit, 512);
});

test("inspect reads the head alone and says what a model takes", async () => {
  const found = await t.page.evaluate(async (model) => {
    const file = new File([await (await fetch(model)).arrayBuffer()], "story.gguf");
    return [await chaski.inspect(model), await chaski.inspect(file, { memoryBudget: 1000 })];
  }, MODEL);
  assert.equal(found[0].architecture, "llama");
  assert.equal(found[0].downloadBytes, 0, "it is stored already");
  assert.ok(found[0].fits && found[0].memory.total > found[0].bytes);
  assert.ok(!found[1].fits && /budget/.test(found[1].reasons[0]));
});

test("what Node imports does nothing, and says what is missing when it is used", async () => {
  const { Engine, EngineError, capabilities } = await import(`${PACKAGE}/index.js`);
  assert.equal((await capabilities()).webgpu, false);
  await assert.rejects(Engine.create({ model: "https://example.org/x.gguf" }), (e) => {
    return e instanceof EngineError && e.code === "webgpu_unavailable";
  });
});

test("the README's example runs as it stands, from a model that stays on its server", async () => {
  const readme = await readFile(`${PACKAGE}/README.md`, "utf8");
  const [, code] = /```js\n([\s\S]*?)```/.exec(readme);
  assert.ok(code.trim().split("\n").length <= 10, "ten lines");
  // Only where things are differs: the package and the model.
  const here = code
    .replace('from "chaski"', `from "${t.server.origin}/npm/index.js"`)
    .replace('"hf:Qwen/Qwen3-0.6B-GGUF:Q8_0"', `"${t.server.origin}${MODEL}", cache: "none"`)
    .replace("max_tokens: 24", "max_tokens: 3, temperature: 0");
  const text = await t.page.evaluate(async (code) => {
    await engine.close();
    await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
    return document.body.textContent;
  }, here);
  assert.match(text, /\w+/);
});
