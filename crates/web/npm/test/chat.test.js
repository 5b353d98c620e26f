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
  assert.match(await page.textContent("#report"), /llama 6.82M Q4_K - Medium/);
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

/** An answer's elements, as text. */
const shown = (texts) =>
  page.evaluate(async (texts) => {
    const { Message } = await import("./message.js");
    return texts.map((content) => {
      const message = new Message("assistant");
      message.show({ role: "assistant", content });
      return message.text.innerHTML;
    });
  }, texts);

test("answers become elements, never HTML", async () => {
  const text = "# A\n\n**b** `c` <img src=x onerror=alert(1)>\n\n- d\n- e\n\n```\nf\n```\n[g](javascript:x) [h](https://h.org)";
  const [found] = await shown([text]);
  assert.match(found, /<h3>A<\/h3>/);
  assert.match(found, /<strong>b<\/strong> <code>c<\/code> &lt;img/);
  assert.match(found, /<ul><li>d<\/li><li>e<\/li><\/ul><pre><code>f<\/code><\/pre>/);
  assert.ok(!/href="javascript/.test(found) && /href="https:\/\/h.org"/.test(found));
});

test("Markdown: code has its own fence, in lists too, tables and quotes, and grows in linear time", async () => {
  const begun = performance.now();
  await shown(["```\n".repeat(100_000)]);
  // A search from the beginning for each of them takes ten seconds.
  assert.ok(performance.now() - begun < 3000, `${performance.now() - begun} ms`);
  const texts = {
    "1. A:\n   ```js\n   if (x)\n     y\n   ```\n2. B": '<ol start="1"><li>A:<pre title="js"><code>if (x)\n  y</code></pre></li><li>B</li></ol>',
    "````md\n```\nx\n```\n`````\nB": '<pre title="md"><code>```\nx\n```</code></pre><p>B</p>',
    "A\n```js\nx": '<p>A</p><pre title="js"><code>x</code></pre>',
    "A\r\n\r\n```\r\nx\r\n```\r\n- B\r\n": '<p>A</p><pre><code>x</code></pre><ul><li>B</li></ul>',
    "|a|b|\n|-|-:|\n|1|2|\n\n> c": '<table><thead><tr><th>a</th><th align="right">b</th></tr></thead><tbody><tr><td>1</td><td align="right">2</td></tr></tbody></table><blockquote><p>c</p></blockquote>',
  };
  assert.deepEqual(await shown(Object.keys(texts)), Object.values(texts));
});

test("a File is loaded without an address, and an address forgets it", async () => {
  await page.reload();
  await page.evaluate(async () => {
    const $ = (id) => document.getElementById(id);
    const blob = await (await fetch("models/storyteller-Q4_K_M.gguf")).blob();
    const data = new DataTransfer();
    data.items.add(new File([blob], "mine.gguf"));
    $("source").value = "";
    $("file").files = data.files;
    $("file").dispatchEvent(new Event("change"));
    $("context").value = "1000";
    $("load").focus();
  });
  await page.click("#load");
  await page.waitForFunction(() => /Ready after/.test(document.querySelector("#report").textContent));
  assert.match(await page.textContent("#loaded"), /mine.gguf/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "text");
  await page.fill("#source", "models/storyteller-Q4_K_M.gguf");
  assert.equal(await page.evaluate(() => document.querySelector("#file").files.length), 0);
});

test("text may be dragged into the message, and a file into the page", async () => {
  const refused = await page.evaluate(() =>
    [(data) => data.setData("text/plain", "x"), (data) => data.items.add(new File(["x"], "x.gguf"))].map((fill) => {
      const dataTransfer = new DataTransfer();
      fill(dataTransfer);
      return !document.querySelector("#text").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
    }),
  );
  assert.deepEqual(refused, [false, true]);
  assert.match(await page.textContent("#report"), /^x.gguf/);
});

const set = (id, value) => page.evaluate(([id, value]) => (document.getElementById(id).value = value), [id, value]);
const texts = () => page.evaluate(() => [...document.querySelectorAll("#log li")].map((li) => [li.dataset.role, li.lastChild.textContent.slice(0, 10)]));

test("a question that cannot be answered goes back, and the next one is answered", async () => {
  await page.click("#new");
  const long = "word ".repeat(20_000).trim();
  await set("max-tokens", "5");
  await page.fill("#text", long);
  await page.click("#send");
  await page.waitForFunction(() => /tokens/.test(document.querySelector("#stats").textContent));
  assert.match(await page.textContent("#stats"), /shorten the conversation/);
  assert.equal(await page.evaluate(() => document.querySelector("#text").value), long);
  assert.deepEqual(await texts(), []);
  // Settings that the engine rejects are not sent.
  await page.fill("#text", "Hi");
  await set("seed", "-1");
  await page.click("#send");
  assert.deepEqual([await texts(), await page.evaluate(() => document.querySelector("#settings").open)], [[], true]);
  await set("seed", "");
  await page.click("#send");
  await page.waitForFunction(() => /Answer: /.test(document.querySelector("#stats").textContent));
  assert.deepEqual((await texts()).map(([role]) => role), ["user", "assistant"]);
});

test("the focus stays in the list of conversations, and what is stored wrongly does no harm", async () => {
  await page.evaluate(() => {
    localStorage.clear();
    const question = (content) => ({ role: "user", content });
    const put = (key, begun, messages, id = key) => localStorage.setItem(`chaski.conversation.${key}`, JSON.stringify({ id, begun, messages }));
    put("a", 3, [question("first"), question("second")]);
    put("b", 2, [question("other"), { role: "assistant", content: "answer", reasoning: {} }], "not b");
    put("c", 1, [question("third")]);
  });
  await page.reload();
  assert.deepEqual(await texts(), [["user", "second"]]);
  const press = (at, button) =>
    page.evaluate(([at, button]) => {
      const pressed = document.querySelectorAll("#conversations li")[at].children[button];
      pressed.focus();
      pressed.click();
      return [document.activeElement.textContent, document.querySelectorAll("#conversations li").length];
    }, [at, button]);
  assert.deepEqual(await press(1, 0), ["other", 3]);
  assert.deepEqual(await texts(), [["user", "other"], ["assistant", "answer"]]);
  assert.equal(await page.locator("#log details").count(), 0);
  assert.deepEqual(await press(1, 1), ["third", 2]);
  assert.equal(await page.evaluate(() => document.querySelector("#conversations li:last-child button:last-child").ariaLabel), "Delete “third”");
  await page.reload();
  assert.equal(await page.locator("#conversations li").count(), 2);
  for (let i = 0; i < 3; i++) await page.click("#new");
  assert.equal(await page.locator("#conversations li").count(), 3);
});

test("a question replaces one that has no answer", async () => {
  await page.evaluate(() => document.querySelectorAll("#conversations li button:first-child")[1].click());
  assert.deepEqual(await texts(), [["user", "second"]]);
  await page.click("#load");
  await page.waitForFunction(() => /Ready after/.test(document.querySelector("#report").textContent));
  await set("max-tokens", "5");
  await page.fill("#text", "Hi");
  await page.click("#send");
  await page.waitForFunction(() => /Answer: /.test(document.querySelector("#stats").textContent));
  assert.deepEqual((await texts()).map(([role, text]) => (role === "user" ? text : role)), ["Hi", "assistant"]);
});

test("a conversation longer than the context goes on, and the page says what is left out", async () => {
  await page.click("#new");
  await set("context", "96");
  await page.click("#load");
  await page.waitForFunction(() => /Ready after/.test(document.querySelector("#report").textContent) && !document.querySelector("#load").disabled);
  const ask = async (text, maxTokens) => {
    await set("max-tokens", maxTokens);
    await page.fill("#text", text);
    const before = (await texts()).length;
    await page.click("#send");
    await page.waitForFunction((n) => document.querySelectorAll("#log li").length === n + 2 && !document.querySelector("#send").disabled, before);
    return page.textContent("#stats");
  };
  const question = "Tell me a story about a dog and a cat.";
  let said = "";
  for (let i = 0; i < 5; i++) said = await ask(question, "16");
  assert.match(said, /Answer: .*\nThe context is full: the model no longer sees the \d+ oldest messages\./s);
  assert.match(await ask(`${question} ${question}`, ""), /The answer is cut because the context is full/);
  assert.match(await ask(question, "16"), /Answer: /);
  assert.equal((await texts()).length, 14);
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
    assert.equal(row.model_type, "llama 6.82M Q4_K - Medium");
    const rate = ((row.n_prompt || row.n_gen) * 1e9) / row.avg_ns;
    assert.ok(row.avg_ts > rate * 0.5 && row.avg_ts < rate * 2, `${row.avg_ts} and ${rate}`);
    assert.ok(row.load_ms > row.compile_ms && row.floor_ms.token > 0 && row.n_threads > 0);
  }
});

test("the bench page measures the CPU where that is the device", async () => {
  await page.goto(`${server.origin}/site/bench.html`);
  for (const [id, value] of [["prompt", "8"], ["answer", "4"], ["runs", "1"]]) await page.fill(`#${id}`, value);
  await page.evaluate(() => (document.getElementById("device").value = "cpu"));
  await page.fill("#prompt", "");
  await page.click("#form button");
  assert.equal(await page.textContent("#state"), "", "it runs without a prompt");
  await page.fill("#prompt", "8");
  await page.click("#form button");
  assert.ok(await page.evaluate(() => document.getElementById("run").disabled));
  await page.waitForFunction(() => document.getElementById("json").textContent);
  const [state, json] = await page.evaluate(() => ["state", "json"].map((id) => document.getElementById(id).textContent));
  assert.equal(state, "On the CPU, on one thread.");
  const rows = JSON.parse(json);
  assert.deepEqual(rows.map((r) => [r.n_prompt, r.n_gen, r.backends, r.n_gpu_layers, r.floor_ms]), [[8, 0, "CPU", 0, null], [0, 4, "CPU", 0, null]]);
  assert.ok(rows.every((r) => r.avg_ts > 0 && r.load_ms > 0), json);
});
