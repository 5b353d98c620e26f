// Facts that a page learns before bytes come, and workers that are not there.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { MODEL_FILE, OTHER_BROWSER, PACKAGE, open } from "./page.js";
import { sendFile, serve } from "./browser.js";
import { synthetic } from "./synthetic.js";

const ISOLATED = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; require-trusted-types-for 'script'; trusted-types";

let [t, large, sent, first] = [];

/** The large model with another architecture, or as it is. */
function bytes(name, from, to) {
  const out = large.bytes(from, to);
  if (name === "strange.gguf" && from === 0) out.write("xlama", out.indexOf("llama"));
  return out;
}

/** Answers of a server with ranges, or without; counts the bytes that go. */
function answer(request, response, url) {
  const [, kind, name] = url.pathname.split("/");
  if (kind === "limited") return limited(request, response, name);
  if (kind !== "ranges" && kind !== "whole") return false;
  const range = /^bytes=(\d+)-(\d+)?$/.exec(request.headers.range ?? "");
  const [from, to] = range && kind === "ranges" ? [Number(range[1]), Math.min(Number(range[2] ?? large.size - 1) + 1, large.size)] : [0, large.size];
  const head = { etag: '"v1"', "content-length": to - from };
  response.writeHead(range && kind === "ranges" ? 206 : 200, range && kind === "ranges" ? { ...head, "content-range": `bytes ${from}-${to - 1}/${large.size}` } : head);
  let at = from;
  const more = () => {
    while (at < to && !response.destroyed) {
      const end = Math.min(to, at + (1 << 20));
      sent += end - at;
      const ready = response.write(bytes(name, at, end));
      at = end;
      if (!ready) return void response.once("drain", more);
    }
    response.end();
  };
  more();
  return true;
}

/** A server that wants to be left alone at first, for the number of seconds that the name says. */
function limited(request, response, name) {
  const { size } = first;
  if (name === "forbidden.gguf") response.writeHead(403).end();
  else if (!first.asked.has(name)) {
    first.asked.set(name, performance.now());
    response.writeHead(429, { "retry-after": name.split(".")[0] }).end();
  } else sendFile(request, response, MODEL_FILE, size);
  return true;
}

before(async () => {
  const file = await readFile(MODEL_FILE);
  large = synthetic(file, 4);
  first = { size: file.length, asked: new Map() };
  t = await open(answer);
});
after(() => t?.close());

const create = (options) => t.page.evaluate((options) => failure(chaski.Engine.create({ device: "cpu", retryMs: 10, ...options })), options);
const stored = () => t.page.evaluate(async () => (await chaski.models.list()).map(({ url }) => new URL(url).pathname).filter((path) => /^.(ranges|whole)/.test(path)));

test("a model that cannot be used is known by its head, and nothing of it is stored", async () => {
  assert.ok(large.size > 20e6, `${large.size} bytes`);
  for (const [options, code] of [
    [{ model: "/ranges/strange.gguf" }, "unsupported_arch"],
    [{ model: "/ranges/large.gguf", memoryBudget: 10e6 }, "out_of_memory"],
  ]) {
    sent = 0;
    assert.equal((await create(options))?.code, code);
    assert.ok(sent < 10e6, `${sent} bytes were sent`);
    assert.deepEqual(await stored(), []);
  }
});

test("a model that has no room is known by its head", async () => {
  sent = 0;
  const error = await t.page.evaluate(async () => {
    // Browsers need not say how much room there is; this one does.
    const script = `import "${location.origin}/npm/worker.js"; StorageManager.prototype.estimate = async () => ({ quota: 2e7, usage: 1e7 });`;
    const worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), { type: "module" });
    const error = await failure(chaski.Engine.create({ model: "/ranges/large.gguf", device: "cpu", worker }));
    worker.terminate();
    return error;
  });
  assert.deepEqual([error.code, error.detail.available], ["quota_exceeded", 1e7]);
  assert.ok(error.detail.needed > 5e7 && sent < 10e6, `${sent} bytes were sent`);
  assert.deepEqual(await stored(), []);
});

test("where a server has no ranges, a model of no use does not stay", async () => {
  assert.equal((await create({ model: "/whole/strange.gguf" })).code, "unsupported_arch");
  assert.deepEqual(await stored(), []);
});

test("a server that asks to wait is waited for, if somebody would, and a refusal is one", async () => {
  const download = (name) => t.page.evaluate((name) => failure(chaski.models.download(`/limited/${name}`, { retryMs: 10 })), name);
  const begun = performance.now();
  assert.equal(await download("1.gguf"), null);
  assert.ok(performance.now() - begun >= 1000);
  const error = await download("3600.gguf");
  assert.deepEqual([error.code, error.detail.retryAfterMs, error.hint], ["network", 3_600_000, "try again in 3600 s"]);
  const forbidden = await download("forbidden.gguf");
  assert.equal(forbidden.code, "forbidden");
  assert.match(forbidden.hint, /hfToken/);
  assert.equal((await create({ model: "/limited/forbidden.gguf" })).code, "forbidden");
});

test("calls to a worker that ends, or that never answers, fail", async () => {
  const found = await t.page.evaluate(async () => {
    const worker = new Worker("/npm/worker.js", { type: "module" });
    const engine = await chaski.Engine.create({ model: "/model/storyteller-Q4_K_M.gguf", device: "cpu", worker });
    const before = (await engine.tokenize("a")).length > 0;
    const long = failure(engine.completions.create({ prompt: "Once", max_tokens: 100000, ignore_eos: true }));
    setTimeout(() => worker.terminate(), 100);
    const [first, second] = [await long, await failure(engine.tokenize("a"))];
    await engine.close();
    const silent = new Worker(URL.createObjectURL(new Blob([""])));
    const third = await failure(chaski.Engine.create({ model: "/model/storyteller-Q4_K_M.gguf", worker: silent }));
    return [before, first.code, first.message, second.code, third.code, third.message];
  });
  assert.deepEqual(found, [true, "worker_failed", "the worker ended: the browser may have stopped it for its memory", "worker_failed", "worker_failed", "the worker failed: it does not answer"]);
});

test("a page that demands trusted types allows the worker by name", { skip: OTHER_BROWSER }, async (context) => {
  for (const [names, expected] of [["chaski", /^not_found/], ["'none'", /^worker_failed: the worker cannot be started/]]) {
    const server = await serve({ npm: PACKAGE }, (request, response, url) => {
      response.setHeader("content-security-policy", `${ISOLATED} ${names}`);
      if (url.pathname !== "/") return false;
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>chaski</title>");
      return true;
    });
    context.after(() => server.close());
    const page = await t.browser.context.newPage();
    await page.goto(server.origin);
    const found = await page.evaluate(async () => {
      const { models } = await import("/npm/index.js");
      return models.download("/nothing.gguf").then(() => "stored", (error) => `${error.code}: ${error.message}`);
    });
    assert.match(found, expected);
    await page.close();
  }
});

test("the catalogue has what a page shows, and asks nobody", async () => {
  const list = await t.page.evaluate(() => chaski.models.catalogue());
  assert.ok(list.length >= 8);
  for (const { model, file, sha256, bytes, memory, licence, name } of list) {
    assert.match(model, /^hf:[\w.-]+\/[\w.-]+\/[\w.-]+\.gguf$/);
    assert.ok(model.endsWith(`/${file}`) && /^[0-9a-f]{64}$/.test(sha256) && licence && name);
    const all = Object.values(memory);
    assert.ok(bytes > 1e8 && all.every((n, i) => n > bytes && n >= (all[i - 1] ?? 0)));
  }
});
