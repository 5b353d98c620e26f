// The chat page, clicked through: load the default model, ask, stop, ask again.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, serve } from "./browser.js";
import { REPOSITORY } from "./page.js";

const SITE = `${REPOSITORY}/target/web-page`;
const RESULTS = fileURLToPath(new URL("../test-results", import.meta.url));
let [server, browser, page] = [];

before(async () => {
  server = await serve({ site: SITE });
  browser = await launch();
  page = await browser.context.newPage();
  page.setDefaultTimeout(120_000);
  page.on("pageerror", (error) => assert.fail(`the page threw ${error}`));
  await page.goto(`${server.origin}/site/index.html`);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

test("the page inspects and loads the default model, and answers", async () => {
  await page.click("#inspect");
  await page.waitForFunction(() => /It fits/.test(document.querySelector("#report").textContent));
  assert.match(await page.textContent("#report"), /llama 6.82M Q4_K_M/);
  await page.click("#load");
  await page.waitForFunction(() => /Ready after|\n/.test(document.querySelector("#report").textContent) && !document.querySelector("#load").disabled);
  assert.match(await page.textContent("#report"), /Ready after/);
  await page.click("#settings summary");
  await page.fill("#temperature", "0");
  await page.fill("#max-tokens", "5");
  await page.fill("#text", "Hi");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /tokens/.test(document.querySelector("#stats").textContent));
  assert.match(await page.textContent("#log li[data-role=assistant]"), /Hello/);
  assert.match(await page.textContent("#stats"), /Answer: 5 tokens/);
});

test("an answer can be stopped, and the conversation is there after a reload", async () => {
  await page.fill("#max-tokens", "400");
  await page.fill("#text", "Tell me a story.");
  await page.click("#send");
  await page.waitForFunction(() => document.querySelectorAll("#log li[data-role=assistant]")[1]?.textContent.length > 12);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => /Stopped/.test(document.querySelector("#stats").textContent));
  await mkdir(RESULTS, { recursive: true });
  await page.screenshot({ path: `${RESULTS}/chat.png`, fullPage: true });
  await page.reload();
  assert.equal(await page.locator("#log li").count(), 4);
  assert.equal(await page.locator("#conversations li").count(), 1);
});

test("the page fits a phone, and every control has a name", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 360, `${wide} pixels wide`);
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input, textarea")].filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map((e) => e.id),
  );
  assert.deepEqual(nameless, []);
  await page.screenshot({ path: `${RESULTS}/phone.png` });
});

test("answers become elements, never HTML", async () => {
  const found = await page.evaluate(async () => {
    const { markdown } = await import("./markdown.js");
    const div = document.createElement("div");
    div.append(markdown("# A\n\n**b** `c` <img src=x onerror=alert(1)>\n\n- d\n- e\n\n```\nf\n```\n[g](javascript:x) [h](https://h.org)"));
    return div.innerHTML;
  });
  assert.match(found, /<h3>A<\/h3>/);
  assert.match(found, /<strong>b<\/strong> <code>c<\/code> &lt;img/);
  assert.match(found, /<ul><li>d<\/li><li>e<\/li><\/ul><pre><code>f<\/code><\/pre>/);
  assert.ok(!/href="javascript/.test(found) && /href="https:\/\/h.org"/.test(found));
});

test("the bench page knows what empty dispatches and readbacks cost", async () => {
  await page.goto(`${server.origin}/site/bench.html`);
  const [one, many] = await page.evaluate(async () => {
    const { floor } = await import("./bench.js");
    return [await floor(1), await floor(500)];
  });
  assert.ok(one > 0 && many > one, `${one} ms and ${many} ms`);
});

test("the bench page measures a model, in llama-bench's words", async () => {
  const rows = await page.evaluate(async () => {
    const { bench } = await import("./bench.js");
    const small = { device: "gpu", chunk: 8, subgroups: false, selfTest: false, kvType: "f16" };
    return bench({ model: "models/storyteller-Q4_K_M.gguf", prompt: 8, answer: 4, runs: 2, ...small });
  });
  assert.deepEqual(rows.map((r) => [r.n_prompt, r.n_gen, r.samples_ts.length]), [[8, 0, 2], [0, 4, 2]]);
  for (const row of rows) {
    assert.deepEqual([row.n_ubatch, row.type_k, row.type_v, row.n_gpu_layers, row.flash_attn], [8, "f16", "f16", 99, true]);
    assert.equal(row.model_type, "llama 6.82M Q4_K_M");
    const rate = ((row.n_prompt || row.n_gen) * 1e9) / row.avg_ns;
    assert.ok(row.avg_ts > rate * 0.5 && row.avg_ts < rate * 2, `${row.avg_ts} and ${rate}`);
    assert.ok(row.load_ms > row.compile_ms && row.floor_ms.token > 0 && row.n_threads > 0);
  }
});

test("the bench page measures the processor where that is the device", async () => {
  await page.goto(`${server.origin}/site/bench.html`);
  for (const [id, value] of [["prompt", "8"], ["answer", "4"], ["runs", "1"]]) await page.fill(`#${id}`, value);
  await page.evaluate(() => (document.getElementById("device").value = "cpu"));
  await page.click("#form button");
  await page.waitForFunction(() => document.getElementById("json").textContent);
  const [state, json] = await page.evaluate(() => ["state", "json"].map((id) => document.getElementById(id).textContent));
  assert.equal(state, "On the processor, on one thread.");
  const rows = JSON.parse(json);
  assert.deepEqual(rows.map((r) => [r.n_prompt, r.n_gen, r.backends, r.n_gpu_layers, r.floor_ms]), [[8, 0, "CPU", 0, null], [0, 4, "CPU", 0, null]]);
  assert.ok(rows.every((r) => r.avg_ts > 0 && r.load_ms > 0), json);
});
