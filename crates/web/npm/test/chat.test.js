// The chat page, clicked through: load the default model, ask, stop, ask again.

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launch, sendFile, serve } from "./browser.js";
import { MODEL_FILE, OTHER_BROWSER, REPOSITORY, webkitLacks } from "./page.js";

const SITE = `${REPOSITORY}/target/web-page`;
let [server, browser, page] = [];

/** The model under another name. */
async function own(request, response, url) {
  if (url.pathname !== "/mine.gguf") return false;
  sendFile(request, response, MODEL_FILE, (await stat(MODEL_FILE)).size);
  return true;
}

before(async () => {
  server = await serve({ site: SITE }, own);
  browser = await launch();
  page = await browser.context.newPage();
  page.setDefaultTimeout(30_000);
  page.on("pageerror", (error) => assert.fail(`the page threw ${error}`));
  await page.goto(`${server.origin}/site/index.html`);
  await page.waitForSelector("#welcome .card");
});
after(async () => {
  await browser?.close();
  await server?.close();
});

const ready = () => page.waitForFunction(() => document.querySelector("#busy").hidden && document.querySelector("#loaded").textContent !== "No model is loaded.");
const set = (id, value) =>
  page.evaluate(([id, value]) => {
    const field = document.getElementById(id);
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }, [id, value]);
const texts = () => page.evaluate(() => [...document.querySelectorAll("#log > .message")].map((m) => [m.dataset.role, m.querySelector(".text").textContent]));
const answered = () => page.waitForFunction(() => document.querySelector("#stop").hidden && !document.querySelector(".waiting"));

test("the page says what a model is, loads it, and answers", async () => {
  await page.click("#open-models");
  await page.fill("#source", "models/storyteller-Q4_K_M.gguf");
  await page.click("#inspect");
  await page.waitForFunction(() => /It fits/.test(document.querySelector("#report").textContent));
  assert.match(await page.textContent("#report"), /llama 6.82M Q4_K - Medium/);
  await page.keyboard.press("Escape");
  await page.click("#welcome [aria-label='Use: Storyteller']");
  await ready();
  assert.match(await page.textContent("#loaded"), /storyteller.*llama 6.82M/);
  await set("temperature", "0");
  await set("max-tokens", "5");
  await page.fill("#text", "Hi");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /tokens/.test(document.querySelector("#stats").textContent));
  assert.match((await texts())[1][1], /Hello/);
  assert.match(await page.textContent("#stats"), /Answer: 5 tokens/);
});

test("an answer can be stopped, and the conversation and the model are there after a reload", async () => {
  await set("max-tokens", "400");
  await page.fill("#text", "Tell me a story.");
  await page.click("#send");
  await page.waitForFunction(() => document.querySelectorAll("#log [data-role=assistant] .text")[1]?.textContent.length > 12);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => /Stopped/.test(document.querySelector("#stats").textContent));
  await page.reload();
  await ready();
  assert.equal((await texts()).length, 4);
  assert.equal(await page.locator("#conversations .open").count(), 1);
});

test("a File is loaded without an address, and an address forgets it", async () => {
  await page.click("#open-models");
  await page.evaluate(async () => {
    const $ = (id) => document.getElementById(id);
    const blob = await (await fetch("models/storyteller-Q4_K_M.gguf")).blob();
    const data = new DataTransfer();
    data.items.add(new File([blob], "mine.gguf"));
    $("source").value = "";
    $("file").files = data.files;
    $("file").dispatchEvent(new Event("change"));
    $("context").value = "1000";
  });
  await page.click("#load");
  await page.waitForFunction(() => /mine.gguf/.test(document.querySelector("#loaded").textContent));
  await page.click("#open-models");
  await page.fill("#source", "models/storyteller-Q4_K_M.gguf");
  assert.equal(await page.evaluate(() => document.querySelector("#file").files.length), 0);
  await page.keyboard.press("Escape");
});

test("text may be dragged into the message, and files into the page: models are offered, others attached", async () => {
  const refused = await page.evaluate(() =>
    [(data) => data.setData("text/plain", "x"), (data) => data.items.add(new File(["x"], "x.gguf")), (data) => data.items.add(new File(["x"], "x.txt"))].map((fill) => {
      const dataTransfer = new DataTransfer();
      fill(dataTransfer);
      return !document.querySelector("#text").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
    }),
  );
  assert.deepEqual(refused, [false, true, true]);
  assert.match(await page.textContent("#report"), /^x.gguf/);
  await page.keyboard.press("Escape");
  await page.click("#attached [aria-label='Remove x.txt']");
});

test("a question that cannot be answered can be changed, and the next one is answered", async () => {
  await page.click("#new");
  const long = "word ".repeat(20_000).trim();
  await set("max-tokens", "5");
  await page.fill("#text", long);
  await page.click("#send");
  await page.waitForSelector("#log [role=alert]");
  assert.match(await page.textContent("#log [role=alert]"), /shorten the conversation/);
  // Settings that the engine rejects are not sent.
  await page.fill("#text", "Hi");
  await set("seed", "-1");
  await page.click("#send");
  assert.ok(await page.evaluate(() => document.querySelector("#settings-dialog").open && document.querySelector("#seed").matches(":invalid")));
  await set("seed", "");
  await page.keyboard.press("Escape");
  await page.click("#send");
  await page.waitForFunction(() => /Answer: /.test(document.querySelector("#stats").textContent));
  assert.deepEqual((await texts()).map(([role, text]) => (role === "user" ? text : role)), ["Hi", "assistant"]);
});

test("a conversation longer than the context goes on, and the page says what is left out", async () => {
  await page.click("#new");
  await page.click("#open-models");
  await page.fill("#context", "96");
  await page.fill("#source", "models/storyteller-Q4_K_M.gguf");
  await page.click("#load");
  await ready();
  const ask = async (text, maxTokens) => {
    await set("max-tokens", maxTokens);
    await page.fill("#text", text);
    const before = (await texts()).length;
    await page.click("#send");
    await page.waitForFunction((n) => document.querySelectorAll("#log > .message").length === n + 2, before);
    await answered();
    return page.textContent("#log > :last-child");
  };
  const question = "Tell me a story about a dog and a cat.";
  let said = "";
  for (let i = 0; i < 5; i++) said = await ask(question, "16");
  assert.match(said, /The context is full: the model no longer sees the \d+ oldest messages\./s);
  assert.match(await ask(`${question} ${question}`, ""), /The answer is cut because the context is full/);
  await ask(question, "16");
  assert.match(await page.textContent("#stats"), /Answer: /);
  assert.equal((await texts()).length, 14);
});

test("a stored model can be checked and removed", { skip: webkitLacks("storage that workers write") }, async () => {
  await page.evaluate(async () => {
    const { models } = await import("./chaski/index.js");
    await models.download(new URL("/mine.gguf", location.href));
  });
  await page.reload();
  await ready();
  await page.click("#open-models");
  await page.click("[aria-label='Check the file of mine']");
  await page.waitForFunction(() => /is what came from the network/.test(document.querySelector("#report").textContent));
  await page.click("[aria-label='Remove mine']");
  await page.waitForFunction(() => !document.querySelector("[aria-label='Remove mine']"));
  await page.keyboard.press("Escape");
});

test("without a network the page starts, loads its model and answers", async () => {
  if (OTHER_BROWSER) return;
  await page.evaluate(async () => {
    const { active } = await navigator.serviceWorker.ready;
    if (active.state !== "activated") await new Promise((resolve) => active.addEventListener("statechange", () => active.state === "activated" && resolve()));
  });
  await page.reload();
  await ready();
  assert.ok(await page.evaluate(() => crossOriginIsolated), "the service worker isolates the page");
  const isKept = await page.evaluate(async () => {
    const { models } = await import("./chaski/index.js");
    return (await models.list()).some((m) => m.complete && /storyteller/.test(m.name));
  });
  assert.ok(isKept);
  await server.close();
  await page.reload();
  await ready();
  await page.click("#new");
  await set("max-tokens", "5");
  await page.fill("#text", "Hi");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /Answer: 5 tokens/.test(document.querySelector("#stats").textContent));
  server = await serve({ site: SITE }, own, Number(new URL(server.origin).port));
});

test("the bench page knows what empty dispatches and readbacks cost", { skip: OTHER_BROWSER }, async () => {
  await page.goto(`${server.origin}/site/bench.html`);
  const [one, many] = await page.evaluate(async () => {
    const { floor } = await import("./measure.js");
    return [await floor(1), await floor(500)];
  });
  assert.ok(one > 0 && many > one, `${one} ms and ${many} ms`);
});

test("the bench page measures a model, in llama-bench's words", { skip: OTHER_BROWSER }, async () => {
  await page.goto(`${server.origin}/site/bench.html`);
  const rows = await page.evaluate(async () => {
    const { bench } = await import("./measure.js");
    const small = { device: "gpu", chunk: 8, subgroups: false, selfTest: false, kvType: "f16" };
    return bench({ model: "models/storyteller-Q4_K_M.gguf", prompt: 8, answer: 4, runs: 2, ...small });
  });
  assert.deepEqual(rows.map((r) => [r.n_prompt, r.n_gen, r.samples_ts.length]), [[8, 0, 2], [0, 4, 2]]);
  for (const row of rows) {
    assert.deepEqual([row.n_ubatch, row.type_k, row.type_v, row.n_gpu_layers, row.flash_attn, row.n_depth], [8, "f16", "f16", 99, true, 0]);
    assert.equal(row.model_type, "llama 6.82M Q4_K - Medium");
    const rate = ((row.n_prompt || row.n_gen) * 1e9) / row.avg_ns;
    assert.ok(row.avg_ts > rate * 0.5 && row.avg_ts < rate * 2, `${row.avg_ts} and ${rate}`);
    assert.ok(row.load_ms > row.compile_ms && row.floor_ms.token > 0 && row.n_threads > 0);
    assert.equal(row.peak_gpu_bytes, Object.values(row.memory).reduce((a, b) => a + b));
  }
});

test("the bench page sweeps over lists, measures at depths, and what each ablation costs", async () => {
  await page.goto(`${server.origin}/site/bench.html`);
  const [rows, states] = await page.evaluate(async () => {
    const { bench } = await import("./measure.js");
    const states = [];
    const model = ["models/storyteller-Q4_K_M.gguf", new URL("/mine.gguf", location.href).href];
    const rows = await bench({ model, prompt: [8, 16], answer: 8, depth: [0, 32], kvType: ["f16", "q8_0"], device: "cpu", runs: 1, ablations: true, onState: (text) => states.push(text) });
    return [rows, states];
  });
  const plain = rows.filter((r) => !r.ablation);
  const key = (r) => [r.model_filename, r.type_k, r.n_prompt, r.n_gen, r.n_depth].join();
  assert.equal(new Set(plain.map(key)).size, 2 * 2 * 2 * 3, "each with all others");
  assert.equal(plain.length, 24);
  const ablated = rows.filter((r) => r.ablation);
  assert.equal(ablated.length, 4 * 8);
  assert.ok(ablated.every((r) => r.n_gen === 8 && r.n_depth === 0 && r.avg_ts > 0));
  const memory = ({ memory }) => Object.values(memory).reduce((a, b) => a + b);
  for (const row of rows) assert.ok(row.n_ctx >= 32 + 16 && memory(row) > 4e6 && row.heap_bytes > memory(row), JSON.stringify(row));
  const of = (type) => memory(plain.find((r) => r.type_k === type));
  assert.ok(of("q8_0") < of("f16"), `${of("q8_0")} and ${of("f16")}`);
  assert.ok(states.some((text) => /mine\.gguf: pp16 @ d32: run 1 of 1/.test(text)), states.join("\n"));
});

test("the form of the bench page takes lists, refuses what is none, and fills its tables", async () => {
  await page.goto(`${server.origin}/site/bench.html`);
  for (const [id, value] of [["prompt", "8, x"], ["answer", "4"], ["depth", "0, 16"], ["runs", "1"]]) await page.fill(`#${id}`, value);
  await page.evaluate(() => (document.getElementById("device").value = "cpu"));
  await page.click("#run");
  assert.equal(await page.textContent("#state"), "", "it does not run with a word for a number");
  await page.fill("#prompt", "8");
  await page.click("#run");
  assert.ok(await page.evaluate(() => document.getElementById("run").disabled));
  await page.waitForFunction(() => document.getElementById("json").textContent);
  const found = await page.evaluate(() => {
    const cells = (id) => [...document.getElementById(id).tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    return { state: document.getElementById("state").textContent, json: document.getElementById("json").textContent, speeds: cells("table"), memory: cells("memory") };
  });
  assert.equal(found.state, "On the CPU, on one thread.");
  const rows = JSON.parse(found.json);
  assert.deepEqual(rows.map((r) => [r.n_prompt, r.n_gen, r.n_depth, r.backends, r.n_gpu_layers, r.floor_ms]), [[8, 0, 0, "CPU", 0, null], [0, 4, 0, "CPU", 0, null], [8, 0, 16, "CPU", 0, null], [0, 4, 16, "CPU", 0, null]]);
  assert.ok(rows.every((r) => r.avg_ts > 0 && r.load_ms > 0), found.json);
  assert.deepEqual(found.speeds.map((row) => row[2]), ["pp8", "tg4", "pp8 @ d16", "tg4 @ d16"]);
  assert.match(found.memory[0].join(" | "), /^llama .* \| \d+ \| .*weights .* MB.* \| .* MB \| .* s$/);
  await page.fill("#prompt", "");
  await page.fill("#answer", "");
  await page.click("#run");
  await page.waitForFunction(() => /nothing to measure/.test(document.getElementById("state").textContent));
});
