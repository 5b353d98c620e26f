// The chat page of `chaski serve`: a process of its own, with the built-in model on the CPU, and a browser.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, before, test } from "node:test";
import { launch } from "./browser.js";
import { LEFT_FOR_FULL, MODEL_FILE, REPOSITORY } from "./page.js";

const PROGRAM = process.env.CHASKI_PROGRAM ?? `${REPOSITORY}/target/debug/chaski`;

/** Starts a server, and waits until it answers. */
async function start(...args) {
  const child = spawn(PROGRAM, ["serve", "--device", "cpu", "--port", "0", "--log-format", "none", "--drain-delay", "0", ...args], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const words = [];
  let url;
  const begun = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`the server ended: ${words.join("\n")}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      words.push(line);
      url ??= /a page to chat: (\S+)$/.exec(line)?.[1];
      if (url) resolve();
    });
  });
  await begun;
  while ((await fetch(`${url}health`)).status !== 200) await new Promise((resolve) => setTimeout(resolve, 50));
  return {
    url,
    async stop(signal = "SIGTERM") {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill(signal);
      await ended;
    },
  };
}

let [server, browser, page, asked, told] = [];

before(async () => {
  browser = await launch();
});
after(() => browser?.close());
afterEach(async () => {
  await page?.close();
  await server?.stop("SIGKILL");
});

/** A server of its own, and the page on it, as somebody sees it who comes for the first time. */
async function open(...args) {
  server = await start(...args);
  page = await browser.context.newPage();
  page.setDefaultTimeout(30_000);
  [asked, told] = [[], []];
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => told.push(`${error}`));
  page.on("console", (message) => told.push(message.text()));
  await page.goto(server.url);
}

const text = (selector) => page.textContent(selector);
const log = () => page.locator("#log > .message").evaluateAll((all) => all.filter((m) => !m.matches(".failed")).map((m) => [m.dataset.role, m.querySelector(".text").textContent]));
const ready = () => page.waitForFunction(() => document.querySelector("#loaded")?.textContent.match(/context|^(one|two)/) && document.querySelector("#stop").hidden && !document.querySelector(".waiting"));
const failure = (expected) => page.waitForFunction((e) => new RegExp(e).test(document.querySelector("#log > :last-child [role=alert]")?.textContent), expected.source);
const stats = (expected) => page.waitForFunction((e) => new RegExp(e).test(document.querySelector("#stats").textContent), expected.source);
const set = (id, value) =>
  page.evaluate(([id, value]) => {
    const field = document.getElementById(id);
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }, [id, value]);

async function send(words, maxTokens = "5") {
  await set("temperature", "0");
  await set("max-tokens", maxTokens);
  await page.fill("#text", words);
  await page.keyboard.press("Enter");
}

/** An answer of which some words are there, while more come. */
async function begin(n = 1) {
  await send("Tell me a story.", "400");
  await page.waitForFunction((n) => document.querySelectorAll("#log [data-role=assistant] .text")[n - 1]?.textContent.length > 4, n);
  assert.ok(await page.isVisible("#stop"), "it is still being written");
}

/** Requests that run. */
const running = async () => (await (await fetch(`${server.url}slots`)).json()).filter((slot) => slot.is_processing).length;

test("a question is answered as a stream, stopped, and asked again", async () => {
  await open();
  await ready();
  assert.match(await text("#loaded"), /^storyteller.*, a context of \d+ tokens$/);
  assert.equal(await page.isVisible("#key-field"), false);
  await send("Hi");
  await stats(/Answer: 5 tokens/);
  assert.match(await text("#stats"), /^Prompt: \d+ tokens \(\d+ in the cache\), \d+\.\d\/s\. Answer: 5 tokens, \d+\.\d\/s\. First after \d+ ms\.$/);
  assert.deepEqual((await log()).map(([role, words]) => [role, role === "user" ? words : /Hello/.test(words)]), [["user", "Hi"], ["assistant", true]]);
  await begin(2);
  const before = (await log())[3][1];
  await page.waitForFunction((n) => document.querySelector("#log > :last-child .text").textContent.length > n + 20, before.length);
  await page.keyboard.press("Escape");
  await stats(/Stopped/);
  for (let i = 0; (await running()) > 0; i++) {
    assert.ok(i < 50, "the server goes on");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const [, , , [, stopped]] = await log();
  assert.ok(stopped.startsWith(before), `${stopped} goes on from ${before}`);
  await set("max-tokens", "5");
  await page.locator("[aria-label='Answer again']").last().click();
  await stats(/Answer: 5 tokens/);
  await page.reload();
  await ready();
  assert.equal((await log()).length, 4);
  // Everything came from the server, and the browser had nothing to refuse.
  assert.deepEqual(asked.filter((url) => !url.startsWith(server.url) && url !== "data:,"), []);
  assert.deepEqual(told, []);
  assert.equal(await page.evaluate(() => document.querySelector("a[href='bench.html']")), null);
});

test("a server that is gone is told, before an answer and within one", async () => {
  await open();
  await ready();
  await begin();
  const [, [, before]] = await log();
  await server.stop("SIGKILL");
  await failure(/broke off before the end of the answer/);
  const part = await page.textContent("#log > :last-child .text");
  assert.ok(before.length > 0 && part.startsWith(before), `${part} goes on from ${before}`);
  await send("Are you there?");
  await failure(/cannot be reached.*Try again/);
  await page.click("#open-models");
  await page.click("#connect");
  await page.waitForFunction(() => /cannot be reached/.test(document.querySelector("#report").textContent));
  await page.keyboard.press("Escape");
  await page.fill("#text", "Hello?");
  assert.ok(await page.isDisabled("#send"));
  assert.match(await text("#trouble"), /cannot be reached/);
});

test("a model that is being loaded is waited for, and errors are said in the server's words", { skip: LEFT_FOR_FULL }, async () => {
  await open();
  await ready();
  const json = { "content-type": "application/json" };
  const events = { "content-type": "text/event-stream" };
  const chunk = (delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
  const error = (message, code) => ({ error: { message, type: "x", param: null, code } });
  let responses = [];
  await page.route("**/v1/chat/completions", (route) => {
    const response = responses.shift();
    return response ? route.fulfill(response) : route.continue();
  });
  responses = [{ status: 503, headers: { ...json, "retry-after": "1" }, json: error("Loading model", "model_loading") }];
  await send("Hi");
  await stats(/Answer: 5 tokens/);
  assert.equal(responses.length, 0);
  // While it is waited for, it can be stopped.
  responses = Array.from({ length: 9 }, () => ({ status: 503, headers: { ...json, "retry-after": "60" }, json: error("Loading model", "model_loading") }));
  await send("Hi");
  await page.waitForFunction(() => !document.querySelector("#stop").hidden);
  await page.click("#stop");
  await stats(/^Stopped\.$/);
  assert.equal(responses.length, 8);
  for (const [response, expected] of [
    [{ status: 429, headers: { ...json, "retry-after": "7" }, json: error("the queue is full", "server_overloaded") }, /The server says: the queue is full\. Try again in 7 s\./],
    [{ status: 502, headers: { "content-type": "text/html" }, body: "<h1>Bad gateway</h1>" }, /The server answers with status 502\./],
    [{ headers: events, body: chunk({ content: "Once" }) + `data: ${JSON.stringify(error("the device is lost", "device_lost"))}\n\n` }, /The server says: the device is lost\./],
    [{ headers: events, body: chunk({ content: "Once" }) }, /broke off before the end of the answer/],
    [{ status: 401, headers: json, json: error("the key is not valid", "invalid_api_key") }, /wants a key/],
  ]) {
    responses = [response];
    await page.click("#new");
    await send("Hi");
    await failure(expected);
    assert.ok(await page.isHidden("#stop"));
  }
  assert.ok(await page.isVisible("#key-field"));
});

test("a function that the model calls is shown as it is written, and its result goes back", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "chaski-template-"));
  t.after(() => rm(folder, { recursive: true }));
  const template = join(folder, "template.jinja");
  await writeFile(template, "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n");
  await open("--chat-template-file", template);
  await ready();
  const bodies = [];
  // The built-in model calls nothing unless it has to.
  await page.route("**/v1/chat/completions", (route) => {
    const body = route.request().postDataJSON();
    bodies.push(body);
    return route.continue({ postData: JSON.stringify({ ...body, tool_choice: bodies.length === 1 ? "required" : "none" }) });
  });
  const parameters = { type: "object", properties: { city: { enum: ["Lima", "Cusco"] } }, required: ["city"], additionalProperties: false };
  await set("tools", JSON.stringify([{ type: "function", function: { name: "weather", parameters } }]));
  await send("How is the weather?", "60");
  await page.waitForFunction(() => document.querySelector("#text").placeholder === "Result of weather");
  const called = await text(".call-text");
  assert.match(called, /^weather\(\{\s*"city"\s*:\s*"(Lima|Cusco)"\s*\}\)$/);
  await send("rain", "5");
  await stats(/Answer: 5 tokens/);
  assert.deepEqual((await log()).map(([role]) => role), ["user", "assistant", "tool", "assistant"]);
  const [question, call, result] = bodies[1].messages;
  assert.deepEqual([question.role, call.tool_calls[0].function.name, result], ["user", "weather", { role: "tool", content: "rain", tool_call_id: call.tool_calls[0].id }]);
});

test("a server that wants a key gets it, once", async () => {
  await open("--api-key", "secret");
  await page.waitForFunction(() => /wants a key/.test(document.querySelector("#report")?.textContent));
  assert.ok(await page.isDisabled("#send"));
  await page.fill("#key", "other");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /does not know this key/.test(document.querySelector("#report")?.textContent));
  await page.fill("#key", "secret");
  await page.click("#connect");
  await ready();
  await page.reload();
  await ready();
  await send("Hi");
  await stats(/Answer: 5 tokens/);
  // It goes nowhere but to the API.
  assert.ok(asked.every((url) => !url.includes("secret")));
});

test("a conversation longer than the context goes on, and what is refused is said", { skip: LEFT_FOR_FULL }, async () => {
  await open("-c", "96");
  await ready();
  const ask = async (words, maxTokens) => {
    const n = (await log()).length;
    await send(words, maxTokens);
    await page.waitForFunction((n) => document.querySelectorAll("#log > .message").length === n + 2, n);
    await ready();
    return text("#log > :last-child");
  };
  const question = "Tell me a story about a dog and a cat.";
  let said = "";
  for (let i = 0; i < 5; i++) said = await ask(question, "16");
  assert.match(said, /The context is full: the model no longer sees the \d+ oldest messages\./s);
  assert.match(await ask(question, ""), /The answer is cut because the context is full/);
  await page.click("#new");
  await send("word ".repeat(200).trim());
  await failure(/The server says: prompt is too long: \d+ tokens > 96 maximum.*shorten the conversation/);
  await set("tools", "[");
  await send("Hi");
  assert.ok(await page.evaluate(() => document.querySelector("#settings-dialog").open && document.querySelector("#tools").matches(":invalid")));
});

test("models are chosen, and loaded when they are asked", { skip: LEFT_FOR_FULL }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "chaski-models-"));
  t.after(() => rm(folder, { recursive: true }));
  for (const name of ["one", "two"]) await copyFile(MODEL_FILE, join(folder, `${name}.gguf`));
  await open("--models-dir", folder);
  await ready();
  const names = () => page.locator("#source option").allTextContents();
  assert.deepEqual(await names(), ["one (not loaded)", "two (not loaded)"]);
  await page.click("#open-models");
  await page.selectOption("#source", "two");
  await page.keyboard.press("Escape");
  await send("Hi");
  await stats(/Answer: 5 tokens/);
  await page.waitForFunction(() => document.querySelector("#source").selectedOptions[0].textContent === "two");
  assert.deepEqual(await names(), ["one (not loaded)", "two"]);
  await page.reload();
  await ready();
  assert.equal(await page.inputValue("#source"), "two");
  assert.match(await text("#loaded"), /^two, a context/);
});

test("the page fits a phone, and every control has a name", async () => {
  await open("--api-key", "secret");
  await page.waitForSelector("#key-field", { state: "visible" });
  await page.setViewportSize({ width: 360, height: 740 });
  const found = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth <= 360,
    nameless: [...document.querySelectorAll("button, input, select, textarea")].filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map((e) => e.id),
  }));
  assert.deepEqual(found, { wide: true, nameless: [] });
});
