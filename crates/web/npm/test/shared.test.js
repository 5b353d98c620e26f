// One engine for several tabs: who has it, what the others get, and what happens when that tab ends.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { LEFT_FOR_FULL, MODEL, open } from "./page.js";

/** Greedy text of the default model. */
const GOLDEN = ", there lived a small, lively boy named Inti. He could not sit still for a minute. Inti was the youngest chaski, a mess";

let t;
let tabs = [];
before(async () => (t = await open()));
after(() => t?.close());
afterEach(async () => {
  await Promise.all(tabs.map((tab) => tab.close()));
  tabs = [];
});

/** Another tab of the origin. */
async function tab() {
  const page = await t.browser.context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(`${t.server.origin}/`);
  await page.evaluate(async (model) => {
    globalThis.chaski = await import("/npm/index.js");
    globalThis.failure = (promise) => promise.then(() => null, (e) => ({ engine: e instanceof chaski.EngineError, code: e.code, message: e.message, hint: e.hint }));
    globalThis.create = (options) => chaski.Engine.create({ model, device: "cpu", contextLength: 1024, shared: true, ...options });
    globalThis.ask = (n = 16, more) => engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: n, ignore_eos: true, ...more });
    // An answer that is read piece by piece: its text so far, and how it ended.
    globalThis.read = (n) => {
      const found = { text: "", end: null };
      (async () => {
        for await (const { choices } of ask(n, { stream: true })) found.text += choices[0]?.text ?? "";
      })().then(() => (found.end = "whole"), (e) => (found.end = e.code));
      return found;
    };
  }, MODEL);
  tabs.push(page);
  return page;
}

/** Tabs that share an engine, which the first of them has. */
async function sharing(n) {
  const pages = [];
  for (let i = 0; i < n; i++) {
    const page = await tab();
    await page.evaluate(async () => void (globalThis.engine = await create()));
    pages.push(page);
  }
  return pages;
}

const workers = (pages) => pages.map((page) => page.workers().length);
const text = (page) => page.evaluate(async () => (await ask()).choices[0].text);
const isGolden = (found) => assert.ok(GOLDEN.startsWith(found) && found.length > 40, found);
const until = (page, condition) => page.waitForFunction(condition);

test("three tabs have one engine, which answers all of them", async () => {
  const pages = await sharing(3);
  assert.deepEqual(workers(pages), [1, 0, 0]);
  for (const found of await Promise.all(pages.map(text))) isGolden(found);
  const found = await pages[2].evaluate(async () => ({ tokens: await engine.tokenize("Inti"), info: engine.info().device.kind, total: engine.memory().total, stats: engine.stats().tokens }));
  assert.ok(found.tokens.length > 0 && found.total > 4e6);
  assert.deepEqual([found.info, found.stats], ["cpu", 16]);
});

test("a stream crosses tabs, and an abort does", async () => {
  const [, page] = await sharing(2);
  const found = await page.evaluate(async () => {
    const controller = new AbortController();
    const long = failure(ask(5000, { signal: controller.signal, context_shift: true }));
    setTimeout(() => controller.abort(), 300);
    const error = await long;
    const start = performance.now();
    const pieces = [];
    for await (const chunk of ask(8, { stream: true })) pieces.push(chunk.choices[0]?.text ?? "");
    return { error, ms: performance.now() - start, pieces };
  });
  assert.equal(found.error.code, "aborted");
  assert.ok(found.ms < 20_000, `${found.ms} ms until the engine was free`);
  assert.ok(found.pieces.length > 3 && GOLDEN.startsWith(found.pieces.join("")), found.pieces.join(""));
});

test("the next tab takes over: what has begun fails, what waits is answered", async () => {
  const [first, second, third] = await sharing(3);
  await second.evaluate(() => void (globalThis.stream = read(100_000)));
  await until(second, () => stream.text.length > 20);
  // One answer after the other: this one waits.
  await third.evaluate(() => void (globalThis.waiting = ask().then((a) => a.choices[0].text)));
  await third.evaluate(() => new Promise((done) => setTimeout(done, 200)));
  await first.close();
  await until(second, () => stream.end !== null);
  assert.equal(await second.evaluate(() => stream.end), "leader_closed");
  isGolden(await third.evaluate(() => waiting));
  isGolden(await text(second));
  assert.deepEqual(workers([second, third]), [1, 0]);
});

test("a tab that crashes is no leader any more", async () => {
  const [first, second] = await sharing(2);
  const session = await t.browser.context.newCDPSession(first);
  const crashed = new Promise((done) => first.on("crash", done));
  session.send("Page.crash").catch(() => {});
  await crashed;
  isGolden(await text(second));
  assert.deepEqual(workers([second]), [1]);
});

test("an engine that is closed goes to another tab, and comes back", { skip: LEFT_FOR_FULL }, async () => {
  const [first, second] = await sharing(2);
  const error = await first.evaluate(async () => {
    await engine.close();
    return failure(ask());
  });
  assert.equal(error.code, "closed");
  isGolden(await text(second));
  await first.evaluate(async () => void (globalThis.engine = await create()));
  assert.deepEqual(workers([first, second]), [0, 1]);
  await second.close();
  isGolden(await text(first));
});

test("an engine is free again when the tab that asked is gone", { skip: LEFT_FOR_FULL }, async () => {
  const [first, second] = await sharing(2);
  await second.evaluate(() => void (globalThis.stream = read(100_000)));
  await until(second, () => stream.text.length > 20);
  await second.close();
  isGolden(await text(first));
});

test("a worker that ends takes nothing but its answer along", { skip: LEFT_FOR_FULL }, async () => {
  const [first, second] = await sharing(2);
  await second.evaluate(() => void (globalThis.stream = read(100_000)));
  await until(second, () => stream.text.length > 20);
  // As the browser ends one for its memory.
  const [worker] = first.workers();
  await worker.evaluate(() => self.close());
  await until(second, () => stream.end !== null);
  assert.match(await second.evaluate(() => stream.end), /^(worker_failed|leader_closed)$/);
  isGolden(await text(second));
  isGolden(await text(first));
});

test("what cannot be shared is refused", async () => {
  const [, page] = await sharing(2);
  const errors = await page.evaluate(async () => [
    await failure(create({ contextLength: 512 })),
    await failure(create({ model: new Blob([new Uint8Array(8)]) })),
    await failure(create({ worker: false })),
    await failure(create({ shared: 5 })),
    await failure(engine.save()),
    await failure(engine.restore(new Uint8Array(4))),
    await failure(create({ model: "/model/nothing.gguf" })),
  ]);
  const codes = ["bad_request", "bad_request", "bad_request", "bad_request", "unsupported", "unsupported", "not_found"];
  assert.deepEqual(errors.map((e) => [e?.engine, e?.code]), codes.map((code) => [true, code]), JSON.stringify(errors));
  assert.match(errors[0].message, /other options/);
  isGolden(await text(page));
});
