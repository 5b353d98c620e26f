// The chat page with an engine that says what it is told to: what a software GPU would take minutes for.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { open } from "./page.js";

/** The package as the page imports it. `next` is a list of deltas, errors, and functions that are waited for. */
const ENGINE = `
  export class EngineError extends Error {
    constructor(code, message) { super(message); Object.assign(this, { code, hint: "" }); }
  }
  export const inspect = async () => ({});
  export const Engine = {
    create: async ({ onProgress }) => {
      onProgress({ stage: "download", file: "m", loaded: 1, total: 2, bytesPerSecond: 1, etaSeconds: 1 });
      return {
        memory: () => ({ total: 1, items: {} }),
        info: () => ({ model: { file: "m", description: "a model" }, device: {}, loading: { totalMs: 1 } }),
        stats: () => ({ promptTokens: 1, cachedTokens: 0, promptTokensPerSecond: 1, tokens: 1, tokensPerSecond: 1, timeToFirstTokenMs: 1 }),
        close: async () => {},
        chat: { completions: { create: (request, { signal }) => (async function* () {
          globalThis.request = request;
          for (const step of globalThis.next) {
            if (typeof step === "function") await Promise.race([step(), new Promise((r) => signal.addEventListener("abort", r))]);
            if (signal.aborted) throw new EngineError("aborted", "aborted");
            if (step instanceof Error) throw step;
            yield { choices: [{ delta: step }] };
          }
        })() } },
      };
    },
  };`;

let [t, page] = [];
before(async () => {
  t = await open((request, response, url) => {
    if (url.pathname !== "/demo/chaski/index.js") return false;
    response.writeHead(200, { "content-type": "text/javascript" }).end(ENGINE);
    return true;
  });
  page = t.page;
});
after(() => t?.close());

beforeEach(async () => {
  await page.goto(`${t.server.origin}/demo/index.html`);
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await page.click("#load");
  await page.waitForFunction(() => !document.querySelector("#text").disabled);
});

const log = () => page.locator("#log li").evaluateAll((all) => all.map((li) => li.textContent));
const done = () => page.waitForFunction(() => document.querySelector("#stop").hidden);

/** Sends a text, which is answered by these deltas. */
async function ask(text, ...next) {
  await page.evaluate((next) => (globalThis.next = next), next);
  await page.fill("#text", text);
  await page.keyboard.press("Enter");
  await done();
}

test("a question that got no answer can be asked again", async () => {
  await page.evaluate(() => (globalThis.next = [new Error("no luck")]));
  await page.fill("#text", "Hi");
  await page.keyboard.press("Enter");
  await done();
  assert.deepEqual(await log(), []);
  assert.match(await page.textContent("#stats"), /no luck/);
  await page.evaluate(() => (globalThis.next = [{ content: "Hello" }]));
  // The question is back in its field.
  await page.click("#send");
  await done();
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hello"]);
});

test("an answer stays when another one in its place fails", async () => {
  await ask("Hi", { content: "Hello" });
  await page.evaluate(() => (globalThis.next = [new Error("no luck")]));
  await page.click("#again");
  await done();
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hello"]);
  await page.reload();
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hello"]);
});

test("while an answer grows, what stands there stays: elements, open thoughts, the place one reads at", async () => {
  await ask("One", { content: "First answer" });
  const found = await page.evaluate(async () => {
    const log = document.querySelector("#log");
    const first = log.children[1];
    let go;
    const wait = () => new Promise((resolve) => (go = resolve));
    const step = async () => {
      go();
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    globalThis.next = [{ reasoning_content: "Hm" }, wait, { reasoning_content: ", so" }, { content: "A\n\n" }, wait, { content: "B" }, wait];
    document.querySelector("#text").value = "Two";
    document.querySelector("#ask").requestSubmit();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const busy = log.ariaBusy;
    const answer = log.lastChild;
    answer.querySelector("details").open = true;
    await step();
    const paragraph = answer.querySelector("p");
    document.querySelector("#source").focus();
    document.body.style.paddingBottom = "3000px";
    scrollTo(0, 0);
    await step();
    const same = answer.querySelector("p") === paragraph && log.children[1] === first && log.lastChild === answer;
    const top = document.scrollingElement.scrollTop;
    await step();
    return {
      busy, same, top, idle: log.ariaBusy, open: answer.querySelector("details").open, text: answer.textContent,
      kept: log.lastChild === answer, focus: document.activeElement.id,
    };
  });
  assert.deepEqual(found, {
    busy: "true", same: true, top: 0, idle: "false", open: true, text: "Answer: ThoughtsHm, soAB", kept: true, focus: "source",
  });
});

test("another tab's conversation appears, and neither loses its own", async () => {
  await ask("Mine", { content: "A" });
  const other = await t.browser.context.newPage();
  await other.goto(`${t.server.origin}/demo/index.html`);
  await other.evaluate(() => {
    const message = { role: "user", content: "Theirs" };
    localStorage.setItem("chaski.conversation.theirs", JSON.stringify({ id: "theirs", begun: 1, messages: [message] }));
  });
  await page.waitForFunction(() => document.querySelectorAll("#conversations li").length === 2);
  await ask("More", { content: "B" });
  await other.reload();
  assert.deepEqual(await other.locator("#conversations li button:first-child").allTextContents(), ["Mine", "Theirs"]);
  await other.close();
});

test("a conversation that another tab deletes is not shown on, also while another one is answered", async () => {
  await ask("First", { content: "A" });
  await page.click("#new");
  await page.evaluate(() => (globalThis.next = [{ content: "B" }, () => new Promise((r) => (globalThis.go = r)), { content: "C" }]));
  await page.fill("#text", "Second");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => typeof globalThis.go === "function");
  await page.click("#conversations li:last-child button:first-child");
  assert.deepEqual(await log(), ["You: First", "Answer: A"]);
  const other = await t.browser.context.newPage();
  await other.goto(`${t.server.origin}/demo/index.html`);
  await other.click("#conversations li:last-child button:last-child");
  await page.waitForFunction(() => document.querySelectorAll("#conversations li").length === 1);
  await other.close();
  assert.deepEqual(await log(), ["You: Second", "Answer: B"]);
  await page.evaluate(() => globalThis.go());
  await done();
  assert.deepEqual(await log(), ["You: Second", "Answer: BC"]);
});

test("a storage that is full or blocked is said, and hinders nothing", async () => {
  await page.evaluate(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException("full", "QuotaExceededError");
    };
  });
  await ask("Hi", { content: "Hello" });
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hello"]);
  assert.match(await page.textContent("#stats"), /does not let the page keep/);
});

test("controls and bars have names", async () => {
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input, textarea, progress")]
      .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length))
      .map((e) => e.id),
  );
  assert.deepEqual(nameless, []);
});

test("calls of functions are shown, and the model goes on with all their results", async () => {
  await page.evaluate(() => (document.querySelector("#settings").open = true));
  const tools = [{ type: "function", function: { name: "add" } }];
  await page.fill("#tools", JSON.stringify(tools));
  const piece = (index, rest, call = {}) => ({ tool_calls: [{ index, ...call, function: rest }] });
  const begin = (index, id) => piece(index, { name: "add", arguments: "" }, { id, type: "function" });
  await ask("1 + 2, 3 + 4?", begin(0, "a"), piece(0, { arguments: "[1, " }), piece(0, { arguments: "2]" }), begin(1, "b"), piece(1, { arguments: "[3, 4]" }), begin(2, "c"), piece(2, { arguments: "[5" }));
  assert.deepEqual(await page.evaluate(() => globalThis.request.tools), tools);
  assert.deepEqual(await log(), ["You: 1 + 2, 3 + 4?", "Answer: add([1, 2])add([3, 4])"], "a call that broke off is none");
  await page.reload();
  await page.click("#load");
  await page.waitForFunction(() => document.querySelector("#text").placeholder === "Result of add" && !document.querySelector("#text").disabled);
  await page.fill("#text", "3");
  await page.keyboard.press("Enter");
  const [placeholder, again] = await page.evaluate(() => [document.querySelector("#text").placeholder, document.querySelector("#again").disabled]);
  assert.deepEqual([placeholder, again], ["Result of add", true]);
  await ask("7", { content: "3 and 7" });
  assert.deepEqual((await log()).slice(2), ["Result: 3", "Result: 7", "Answer: 3 and 7"]);
  const call = (id, text) => ({ id, type: "function", function: { name: "add", arguments: text } });
  assert.deepEqual(await page.evaluate(() => globalThis.request.messages), [
    { role: "user", content: "1 + 2, 3 + 4?" },
    { role: "assistant", content: "", tool_calls: [call("a", "[1, 2]"), call("b", "[3, 4]")] },
    { role: "tool", content: "3", tool_call_id: "a" },
    { role: "tool", content: "7", tool_call_id: "b" },
  ]);
});
