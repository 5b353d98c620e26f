// Several requests at once, answers that go on, and scores of documents.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { text, texts, withEntries } from "./gguf.js";
import { LEFT_FOR_FULL, MODEL, MODEL_FILE, open } from "./page.js";

/** The default model as one that ranks: how much likelier `a` is than `b` behind a template. */
const RERANKER = "/reranker.gguf";
const TEMPLATE = "Question: {query}\nText: {document}\nAnswer:";

let t;
before(async () => {
  const ranks = [text("tokenizer.chat_template.rerank", TEMPLATE), texts("llama.classifier.output_labels", ["a", "b"])];
  const file = withEntries(await readFile(MODEL_FILE), ranks);
  t = await open((request, response, url) => {
    if (url.pathname !== RERANKER) return false;
    response.writeHead(200, { "content-length": file.length }).end(file);
    return true;
  });
  await t.page.evaluate(async ([model, reranker]) => {
    globalThis.engine = await chaski.Engine.create({ model, device: "cpu", contextLength: 256, sequences: 3 });
    globalThis.single = await chaski.Engine.create({ model, device: "cpu", contextLength: 256 });
    globalThis.ranking = await chaski.Engine.create({ model: reranker, device: "cpu", contextLength: 128, sequences: 2 });
    globalThis.PROMPTS = ["Once upon a time", "The king said", "In the evening", "A small dog"];
    globalThis.ask = (prompt, more) => ({ prompt, temperature: 0, max_tokens: 16, ignore_eos: true, ...more });
    /** Answers at once: their texts, and which of them said something, in order. */
    globalThis.together = async (engine, prompts) => {
      const order = [];
      const one = async (prompt, i) => {
        let text = "";
        for await (const chunk of engine.completions.create({ ...ask(prompt), stream: true })) {
          text += chunk.choices[0]?.text ?? "";
          order.push(i);
        }
        return text;
      };
      return { texts: await Promise.all(prompts.map(one)), order };
    };
    globalThis.alone = async (engine, prompts) => {
      const texts = [];
      for (const prompt of prompts) texts.push((await engine.completions.create(ask(prompt))).choices[0].text);
      return texts;
    };
    globalThis.post = async (engine, path, body) => {
      const response = await engine.fetch(`http://localhost${path}`, { method: "POST", body: JSON.stringify(body) });
      return { status: response.status, body: await response.json() };
    };
  }, [MODEL, RERANKER]);
});
after(() => t?.close());

/** How often the speaker changes. */
const changes = (order) => order.filter((i, at) => at > 0 && order[at - 1] !== i).length;

test("as many answers as there are sequences take turns, with the texts that each has alone", async () => {
  const found = await t.page.evaluate(async () => ({ several: await together(engine, PROMPTS), alone: await alone(engine, PROMPTS), single: await together(single, PROMPTS) }));
  assert.ok(found.alone.every((text) => text.length > 20));
  assert.deepEqual(found.several.texts, found.alone);
  assert.deepEqual(found.single.texts, found.alone);
  assert.equal(changes(found.single.order), 3, "one after the other");
  assert.ok(changes(found.several.order) > 20, `${found.several.order}`);
  // Which one waits depends on whose tokens were ready first.
  const { order } = found.several;
  const last = Math.max(...[0, 1, 2, 3].map((i) => order.indexOf(i)));
  assert.ok([0, 1, 2, 3].some((i) => order.lastIndexOf(i) < last), `the last to begin waits for an end: ${order}`);
});


test("an abort ends one answer of several, and what waits for a sequence never begins", async () => {
  const found = await t.page.evaluate(async () => {
    const [controller, waiting] = [new AbortController(), new AbortController()];
    const long = (signal) => engine.completions.create(ask(PROMPTS[0], { max_tokens: 200, signal }));
    const ends = [failure(long(controller.signal)), engine.completions.create(ask(PROMPTS[1])), engine.completions.create(ask(PROMPTS[2]))];
    const late = failure(long(waiting.signal));
    waiting.abort();
    setTimeout(() => controller.abort(), 50);
    const [aborted, second, third] = await Promise.all(ends);
    const after = await engine.completions.create(ask(PROMPTS[3]));
    return { codes: [aborted.code, (await late).code], texts: [second, third, after].map((a) => a.choices[0].text), alone: await alone(engine, PROMPTS.slice(1)) };
  });
  assert.deepEqual(found.codes, ["aborted", "aborted"]);
  assert.deepEqual(found.texts, found.alone);
});

test("what needs the engine alone waits for answers, and texts become tokens beside them", async () => {
  const found = await t.page.evaluate(async () => {
    const order = [];
    const note = (what) => (value) => (order.push(what), value);
    const chat = (content, max_tokens) => engine.chat.completions.create({ messages: [{ role: "user", content }], max_tokens, temperature: 0, ignore_eos: true });
    const answers = [chat("Tell me a story.", 100).then(note("answer")), chat("Hi", 8).then(note("answer"))];
    const saved = engine.save().then(note("saved"));
    const tokens = engine.tokenize("Inti").then(note("tokens"));
    const [a] = await Promise.all([...answers, saved, tokens]);
    return { order, bytes: (await saved).length, text: a.choices[0].message.content };
  });
  assert.deepEqual(found.order, ["tokens", "answer", "answer", "saved"]);
  assert.ok(found.bytes > 1000 && found.text.length > 100);
});

test("sequences are counted in memory, and an odd number is refused", async () => {
  const found = await t.page.evaluate(async (model) => {
    const total = async (sequences) => (await chaski.inspect(model, { device: "cpu", contextLength: 256, sequences })).memory.total;
    const bad = [-1, 1.5, "2"].map((sequences) => failure(chaski.Engine.create({ model, device: "cpu", sequences })));
    return { one: await total(), three: await total(3), bad: (await Promise.all(bad)).map((e) => e.code), loaded: [single.memory().total, engine.memory().total] };
  }, MODEL);
  assert.ok(found.three > found.one, `${found.three} and ${found.one} bytes`);
  assert.deepEqual(found.loaded, [found.one, found.three]);
  assert.deepEqual(found.bad, Array(3).fill("bad_request"));
});

test("several answers share the batches of a GPU", { timeout: 300_000, skip: LEFT_FOR_FULL }, async () => {
  const found = await t.page.evaluate(async (model) => {
    const own = await chaski.Engine.create({ model, device: "gpu", contextLength: 128, sequences: 2 });
    const several = await together(own, PROMPTS.slice(0, 2));
    const one = await alone(own, PROMPTS.slice(0, 2));
    await own.loseDevice();
    const again = await together(own, PROMPTS.slice(0, 2));
    await own.close();
    return { several, one, again };
  }, MODEL);
  assert.deepEqual(found.several.texts, found.one);
  assert.deepEqual(found.again.texts, found.one, "after the device was lost");
  assert.ok(changes(found.several.order) > 4, `${found.several.order}`);
});

test("a last message of the assistant is continued", async () => {
  const found = await t.page.evaluate(async () => {
    const messages = [{ role: "user", content: "Tell me a story." }, { role: "assistant", content: "Once upon a time, a cat" }];
    const prompt = await engine.applyTemplate(messages);
    const asked = { messages, temperature: 0, max_tokens: 12 };
    const chat = await engine.chat.completions.create(asked);
    const plain = await engine.completions.create({ prompt, temperature: 0, max_tokens: 12 });
    const text = (body) => body.choices[0].message.content;
    const byFetch = await post(engine, "/v1/chat/completions", { ...asked, continue_final_message: true, add_generation_prompt: false });
    const begun = await post(engine, "/v1/chat/completions", { ...asked, add_generation_prompt: true });
    const refused = await post(engine, "/v1/chat/completions", { ...asked, continue_final_message: true, add_generation_prompt: true });
    const closed = await engine.applyTemplate(messages, { add_generation_prompt: true });
    return { prompt, closed, chat: text(chat), plain: plain.choices[0].text, byFetch: text(byFetch.body), begun: text(begun.body), used: [chat.usage.prompt_tokens, begun.body.usage.prompt_tokens], refused: [refused.status, refused.body.error.code] };
  });
  assert.ok(found.prompt.endsWith("Once upon a time, a cat"), found.prompt);
  assert.ok(found.closed.startsWith(found.prompt) && found.closed.length > found.prompt.length, found.closed);
  assert.ok(found.chat.length > 10 && found.plain.trimEnd().startsWith(found.chat.trimEnd()), `${found.chat} | ${found.plain}`);
  assert.equal(found.byFetch, found.chat);
  assert.ok(found.used[1] > found.used[0]);
  assert.deepEqual(found.refused, [400, "bad_request"]);
});

test("documents are scored by the answer to each, and come in the order of their scores", async () => {
  const found = await t.page.evaluate(async (template) => {
    const documents = ["The sun is hot.", "a", "Inti was a small, lively boy who ran over the mountains.", "{query}"];
    const query = "Who was Inti?";
    const results = await ranking.rerank(query, documents);
    const expected = [];
    for (const document of documents) {
      const prompt = template.replace("{document}", () => document).replace("{query}", () => query);
      const answer = await ranking.completions.create({ prompt, max_tokens: 1, temperature: 0, logprobs: ranking.info().model.vocabulary });
      const all = answer.choices[0].logprobs.content[0].top_logprobs;
      const p = (word) => Math.exp(all.find((one) => one.token === word).logprob);
      expected.push(p("a") / (p("a") + p("b")));
    }
    const by = await post(ranking, "/v1/rerank", { query, texts: documents.map((text) => ({ text })), top_n: 2, return_documents: true, model: "any" });
    const alike = await ranking.reranking.create({ query, documents });
    const wrong = await Promise.all([failure(ranking.rerank(query, [])), failure(ranking.rerank(1, documents)), failure(ranking.rerank(query, documents, { top_n: 0 })), failure(ranking.rerank(query, ["word ".repeat(200)])), failure(engine.rerank(query, documents))]);
    const stopped = new AbortController();
    stopped.abort();
    wrong.push(await failure(ranking.rerank(query, documents, { signal: stopped.signal })));
    return { results, expected, by, alike, wrong: wrong.map((e) => e.code), hint: (await failure(engine.rerank(query, documents))).hint };
  }, TEMPLATE);
  const scores = found.results.map((one) => one.relevance_score);
  assert.deepEqual(scores, [...scores].sort((a, b) => b - a));
  assert.deepEqual(found.results.map((one) => one.index).sort(), [0, 1, 2, 3]);
  for (const { index, relevance_score } of found.results) {
    assert.ok(Math.abs(relevance_score - found.expected[index]) < 2e-3, `${relevance_score} and ${found.expected[index]}`);
  }
  assert.ok(scores[0] - scores[3] > 1e-3, `${scores}`);
  assert.equal(found.by.status, 200);
  assert.deepEqual(found.by.body.results.map((one) => one.index), found.results.slice(0, 2).map((one) => one.index));
  assert.equal(typeof found.by.body.results[0].document.text, "string");
  assert.ok(found.alike.usage.prompt_tokens > 40 && found.alike.id.startsWith("rerank-"));
  assert.deepEqual(found.wrong, ["bad_request", "bad_request", "bad_request", "context_overflow", "unsupported", "aborted"]);
  assert.match(found.hint, /rank/);
});
