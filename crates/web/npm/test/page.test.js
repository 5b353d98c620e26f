// The chat page with an engine that says what it is told to: what a software GPU would take minutes for.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, test } from "node:test";
import { LEFT_FOR_FULL, OTHER_BROWSER, open, webkitLacks } from "./page.js";

const ENGINE = await readFile(new URL("fake-engine.js", import.meta.url));

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

const there = () => page.waitForFunction(() => document.querySelector("#model-label")?.textContent === "Storyteller");
const reload = async () => {
  await page.reload();
  // The last model is loaded by itself.
  await there();
};

beforeEach(async () => {
  await page.goto(`${t.server.origin}/demo/index.html`);
  await page.evaluate(async () => {
    localStorage.clear();
    sessionStorage.clear();
    await new Promise((resolve) => (indexedDB.deleteDatabase("chaski").onsuccess = resolve));
    localStorage.setItem("chaski.model", JSON.stringify({ model: "models/storyteller-Q4_K_M.gguf" }));
  });
  await reload();
});

const log = () => page.locator("#log > .message").evaluateAll((all) => all.map((li) => `${li.querySelector("h2").textContent}: ${li.querySelector(".text").textContent}`));
const done = () => page.waitForFunction(() => document.querySelector("#stop").hidden && !document.querySelector(".waiting"));
const titles = () => page.locator("#conversations .open").allTextContents();
const notices = () => page.locator("#notices .notice > span").allTextContents();

/** Sends a text, which is answered by these deltas. */
async function ask(text, ...next) {
  await page.evaluate((next) => (globalThis.next = next), next);
  await page.fill("#text", text);
  await page.keyboard.press("Enter");
  await done();
}

/** Begins an answer, and lets `go` bring one piece of it after another. */
async function begin(text, ...next) {
  await page.evaluate((next) => {
    globalThis.next = next.flatMap((step) => [step, () => new Promise((resolve) => (globalThis.go = resolve))]);
  }, next);
  await page.fill("#text", text);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => typeof globalThis.go === "function");
}
const go = () => page.evaluate(() => {
  const { go } = globalThis;
  globalThis.go = null;
  go();
});

test("an answer that fails says so where it would stand, and can be tried again", async () => {
  await page.evaluate(() => (globalThis.next = [new Error("no luck")]));
  await page.fill("#text", "Hi");
  await page.keyboard.press("Enter");
  await done();
  assert.match(await page.textContent("#log [role=alert]"), /no luck/);
  const isSeen = await page.evaluate(() => {
    const { top, bottom } = document.querySelector("#log [role=alert]").getBoundingClientRect();
    return top >= 0 && bottom <= document.querySelector("#ask").getBoundingClientRect().top;
  });
  assert.ok(isSeen);
  await page.evaluate(() => (globalThis.next = [{ content: "Hello" }]));
  await page.click("text=Try again");
  await done();
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hello"]);
  assert.equal(await page.locator("#log [role=alert]").count(), 0);
});

test("a question without an answer is changed or replaced, and stays as another version", { skip: LEFT_FOR_FULL }, async () => {
  await page.evaluate(() => (globalThis.next = [new Error("no luck")]));
  await page.fill("#text", "Hi");
  await page.keyboard.press("Enter");
  await done();
  await ask("Hello", { content: "Yes?" });
  assert.deepEqual(await log(), ["You: Hello", "Answer: Yes?"]);
  assert.deepEqual((await page.evaluate(() => globalThis.request.messages)).map(({ content }) => content), ["Hello"]);
  assert.equal(await page.textContent(".version"), "2 / 2");
  await page.click("[aria-label='Previous version']");
  assert.deepEqual(await log(), ["You: Hi"]);
});

test("an answer stays when another one in its place fails, and both when it does not", { skip: LEFT_FOR_FULL }, async () => {
  await ask("Hi", { content: "Hello" });
  await page.evaluate(() => (globalThis.next = [new Error("no luck")]));
  await page.click("[aria-label='Answer again']");
  await done();
  assert.deepEqual((await log()).slice(0, 2), ["You: Hi", "Answer: Hello"]);
  await page.evaluate(() => (globalThis.next = [{ content: "Hey" }]));
  await page.click("[aria-label='Answer again']");
  await done();
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hey"]);
  await reload();
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hey"]);
  await page.click("[aria-label='Previous version']");
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hello"]);
});

test("a message is edited, and the older one is kept beside it", async () => {
  await ask("One", { content: "1" });
  await ask("Two", { content: "2" });
  await page.evaluate(() => (globalThis.next = [{ content: "3" }]));
  await page.focus("#text");
  await page.keyboard.press("ArrowUp");
  await page.fill(".edit textarea", "Three");
  await page.keyboard.press("Enter");
  await done();
  assert.deepEqual(await log(), ["You: One", "Answer: 1", "You: Three", "Answer: 3"]);
  await page.click("[aria-label='Previous version']");
  assert.deepEqual(await log(), ["You: One", "Answer: 1", "You: Two", "Answer: 2"]);
});

test("messages and conversations that are deleted come back", { skip: LEFT_FOR_FULL }, async () => {
  await ask("One", { content: "1" });
  await ask("Two", { content: "2" });
  await page.locator("[aria-label='Delete, with what follows']").nth(2).click();
  assert.deepEqual(await log(), ["You: One", "Answer: 1"]);
  await page.click("text=Undo");
  assert.equal((await log()).length, 4);
  await page.hover("#conversations li[data-id]");
  await page.click("#conversations [aria-label^=Delete]");
  assert.deepEqual([await titles(), await log()], [["New conversation"], []]);
  await page.click("text=Undo");
  assert.deepEqual([await titles(), (await log()).length], [["One"], 4]);
  await reload();
  assert.equal((await log()).length, 4);
});

test("a conversation goes on from a message in another one", { skip: LEFT_FOR_FULL }, async () => {
  await ask("One", { content: "1" });
  await ask("Two", { content: "2" });
  await page.locator("[aria-label^='Go on from here']").first().click();
  assert.deepEqual([await log(), await titles()], [["You: One", "Answer: 1"], ["One", "One"]]);
});

test("while an answer grows, what stands there stays: elements, open thoughts, the place one reads at", async () => {
  await ask("One", { content: "First answer\n\n".repeat(60) });
  await begin("Two", { reasoning_content: "Hm" }, { reasoning_content: ", so" }, { content: "A\n\n" }, { content: "B" });
  await page.waitForSelector(".thoughts.live");
  assert.equal(await page.textContent(".thoughts summary"), "Thinking");
  const found = await page.evaluate(async () => {
    const next = async () => {
      const { go } = globalThis;
      globalThis.go = null;
      go();
      while (typeof globalThis.go !== "function") await new Promise((resolve) => setTimeout(resolve, 5));
      await new Promise((resolve) => setTimeout(resolve, 120));
    };
    const [log, scroll] = [document.querySelector("#log"), document.querySelector("#scroll")];
    const atEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 2;
    const busy = log.ariaBusy;
    const answer = log.lastChild;
    const first = log.children[1];
    answer.querySelector("details").open = true;
    await next();
    await next();
    const paragraph = answer.querySelector(".text p");
    const followed = atEnd();
    scroll.scrollTop = 0;
    await new Promise((resolve) => setTimeout(resolve, 60));
    await next();
    const same = answer.querySelector(".text p") === paragraph && log.children[1] === first && log.lastChild === answer;
    const jump = !document.querySelector("#jump").hidden;
    return { busy, same, followed, jump, top: scroll.scrollTop, open: answer.querySelector("details").open, thought: answer.querySelector(".thought").textContent };
  });
  assert.deepEqual(found, { busy: "true", same: true, followed: true, jump: true, top: 0, open: true, thought: "Hm, so" });
  await page.click("#jump");
  assert.ok(await page.evaluate(() => { const s = document.querySelector("#scroll"); return s.scrollHeight - s.scrollTop - s.clientHeight < 2; }));
  await go();
  await done();
  assert.match(await page.textContent(".thoughts summary"), /^Thought for 0 s|^Thoughts|^Thought for \d+ s/);
  assert.equal((await log()).at(-1), "Answer: AB");
});

test("the end is followed under a composer of any height", { skip: LEFT_FOR_FULL }, async () => {
  await page.fill("#text", "line\n".repeat(30));
  await page.evaluate(() => (globalThis.next = Array.from({ length: 80 }, (_, i) => ({ content: `Paragraph ${i}\n\n` }))));
  await page.keyboard.press("Enter");
  await done();
  await page.waitForTimeout(100);
  const hidden = await page.evaluate(() => document.querySelector("#log > :last-child").getBoundingClientRect().bottom - document.querySelector("#ask").getBoundingClientRect().top);
  assert.ok(hidden <= 0, `${hidden} px are behind the composer`);
});

test("the prompt shows how far it is", { skip: LEFT_FOR_FULL }, async () => {
  await begin("Hi", { prompt_progress: { total: 400, cache: 0, processed: 100 } });
  await page.waitForFunction(() => /Reading the conversation \(25 %\)/.test(document.querySelector(".waiting")?.textContent));
  await page.click("#stop");
  await done();
  assert.match(await page.textContent("#log [role=alert]"), /Stopped/);
});

test("a reload in an answer loses none of it, nor drafts and settings", async () => {
  await begin("Tell me", { content: "Once upon a time" }, { content: " there was" });
  await page.waitForFunction(() => document.querySelector("#log > :last-child .text").textContent === "Once upon a time");
  await page.fill("#text", "A draft");
  await page.evaluate(() => {
    for (const [id, value] of [["temperature", "0.3"], ["system", "Be brief."], ["theme", "dark"]]) {
      document.getElementById(id).value = value;
      document.getElementById(id).dispatchEvent(new Event("input", { bubbles: true }));
    }
  });
  await page.waitForTimeout(150);
  await reload();
  assert.deepEqual(await log(), ["You: Tell me", "Answer: Once upon a time"]);
  assert.match(await page.textContent(".cut"), /closed before the end/);
  assert.equal(await page.inputValue("#text"), "A draft");
  assert.deepEqual(await page.evaluate(() => [document.querySelector("#temperature").value, document.documentElement.dataset.theme]), ["0.3", "dark"]);
  await ask("Go on", { content: "B" });
  const request = await page.evaluate(() => globalThis.request);
  assert.deepEqual([request.temperature, request.messages[0]], [0.3, { role: "system", content: "Be brief." }]);
});

test("a conversation has a system prompt of its own", { skip: LEFT_FOR_FULL }, async () => {
  await ask("Hi", { content: "A" });
  await page.click("#more");
  await page.click("#menu-system");
  await page.fill("#own-system", "Rhyme.");
  await page.click("#system-form [type=submit]");
  await ask("More", { content: "B" });
  assert.deepEqual((await page.evaluate(() => globalThis.request.messages))[0], { role: "system", content: "Rhyme." });
  await page.click("#new");
  await ask("Other", { content: "C" });
  assert.deepEqual((await page.evaluate(() => globalThis.request.messages)).map(({ role }) => role), ["user"]);
});

test("text files go with a message, others are refused", { skip: LEFT_FOR_FULL }, async () => {
  const file = (name, bytes) => ({ name, mimeType: "text/plain", buffer: Buffer.from(bytes) });
  await page.setInputFiles("#attachments", [file("a.txt", "one ``` two"), file("b.bin", [0, 1, 2]), file("c.txt", [0xff, 0xfe])]);
  await page.waitForFunction(() => document.querySelectorAll("#notices .notice").length === 2);
  assert.ok((await notices()).every((text) => /cannot be attached: it is not a text file/.test(text)));
  await ask("What is it?", { content: "A" });
  const { messages } = await page.evaluate(() => globalThis.request);
  assert.equal(messages[0].content, "File `a.txt`:\n````\none ``` two\n````\n\nWhat is it?");
  assert.equal(await page.textContent(".files li span"), "a.txt");
});

test("another tab's conversation appears, and neither loses its own", async () => {
  await ask("Mine", { content: "A" });
  const other = await t.browser.context.newPage();
  await other.goto(`${t.server.origin}/demo/index.html`);
  await other.waitForFunction(() => document.querySelector("#model-label")?.textContent === "Storyteller");
  await other.evaluate(() => (globalThis.next = [{ content: "C" }]));
  await other.fill("#text", "Theirs");
  await other.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#conversations .open").length === 2);
  await ask("More", { content: "B" });
  await other.waitForFunction(() => document.querySelectorAll("#conversations .open").length === 2);
  await other.reload();
  await other.waitForFunction(() => document.querySelectorAll("#conversations .open").length === 2);
  assert.deepEqual(await other.locator("#conversations .open").allTextContents(), ["Mine", "Theirs"]);
  await other.close();
});

test("a conversation that another tab deletes is not shown on, also while another one is answered", { skip: webkitLacks("a pointer in a second tab") || LEFT_FOR_FULL }, async () => {
  await ask("First", { content: "A" });
  await page.click("#new");
  await begin("Second", { content: "B" }, { content: "C" });
  await page.locator("#conversations .open").last().click();
  assert.deepEqual(await log(), ["You: First", "Answer: A"]);
  const other = await t.browser.context.newPage();
  await other.goto(`${t.server.origin}/demo/index.html`);
  await other.waitForSelector("#conversations [aria-label='Delete “First”']", { state: "attached" });
  await other.hover("#conversations li[data-id]:has([aria-label='Delete “First”'])");
  await other.click("#conversations [aria-label='Delete “First”']");
  await page.waitForFunction(() => !document.querySelector("#conversations [aria-label='Delete “First”']"));
  await other.close();
  await page.locator("#conversations .open", { hasText: "Second" }).click();
  assert.deepEqual(await log(), ["You: Second", "Answer: B"]);
  await go();
  await page.waitForFunction(() => typeof globalThis.go === "function");
  await go();
  await done();
  assert.deepEqual(await log(), ["You: Second", "Answer: BC"]);
});

test("a storage that is full or blocked is said, and hinders nothing", async () => {
  await page.evaluate(() => {
    Storage.prototype.setItem = IDBObjectStore.prototype.put = () => {
      throw new DOMException("full", "QuotaExceededError");
    };
  });
  await ask("Hi", { content: "Hello" });
  assert.deepEqual(await log(), ["You: Hi", "Answer: Hello"]);
  assert.match((await notices()).join(), /does not let the page keep/);
});

test("conversations are searched, renamed, saved and imported", { skip: OTHER_BROWSER }, async () => {
  await ask("About llamas", { content: "They are animals." });
  await page.click("#new");
  await ask("About stars", { content: "They shine." });
  await page.fill("#search", "animals");
  assert.deepEqual(await titles(), ["About llamas"]);
  await page.fill("#search", "nothing like it");
  assert.ok(await page.isVisible("#nothing"));
  await page.fill("#search", "");
  await page.hover("#conversations li[data-id]");
  await page.click("#conversations [aria-label='Rename “About stars”']");
  await page.keyboard.type("Stars");
  await page.keyboard.press("Enter");
  assert.deepEqual(await titles(), ["Stars", "About llamas"]);
  const saved = async (item) => {
    await page.click("#more");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(item)]);
    return [download.suggestedFilename(), await readFile(await download.path(), "utf8")];
  };
  assert.deepEqual(await saved("#menu-markdown"), ["Stars.md", "# Stars\n\n## You\n\nAbout stars\n\n## Answer\n\nThey shine.\n"]);
  const [name, json] = await saved("#menu-json");
  assert.equal(name, "Stars.json");
  assert.deepEqual(JSON.parse(json).messages, [{ role: "user", content: "About stars" }, { role: "assistant", content: "They shine." }]);
  const file = (text) => ({ name: "x.json", mimeType: "application/json", buffer: Buffer.from(text) });
  await page.setInputFiles("#import", file(json));
  await page.waitForFunction(() => document.querySelectorAll("#conversations .open").length === 3);
  assert.deepEqual(await log(), ["You: About stars", "Answer: They shine."]);
  for (const wrong of ["{", "[]", '{"nodes": 1}']) await page.setInputFiles("#import", file(wrong));
  await page.waitForFunction(() => document.querySelectorAll("#notices .notice").length === 3);
  assert.ok((await notices()).every((text) => /cannot be imported/.test(text)));
});

test("a link brings a prompt, which is not sent by itself", { skip: LEFT_FOR_FULL }, async () => {
  await page.goto("about:blank");
  await page.goto(`${t.server.origin}/demo/index.html#${new URLSearchParams({ prompt: "Tell me <b>about</b> it", system: "Rhyme." })}`);
  await there();
  assert.equal(await page.inputValue("#text"), "Tell me <b>about</b> it");
  assert.deepEqual(await page.evaluate(() => [location.hash, globalThis.request ?? null]), ["", null]);
  await ask("Now", { content: "A" });
  assert.deepEqual((await page.evaluate(() => globalThis.request.messages))[0], { role: "system", content: "Rhyme." });
});

test("models are chosen, and a model that cannot be loaded says why", async () => {
  await page.click("#open-models");
  await page.evaluate(() => (globalThis.refuse = "it takes 9 GB of memory"));
  await page.click("#choices [aria-label='Download and use: Qwen3 0.6B']");
  await page.waitForSelector("#trouble:not([hidden])");
  assert.match(await page.textContent("#trouble"), /9 GB/);
  await page.fill("#text", "Hi");
  assert.ok(await page.isDisabled("#send"));
  await page.evaluate(() => Object.assign(globalThis, { refuse: null, hold: true }));
  await page.click("#trouble-models");
  await page.click("#choices [aria-label='Download and use: Qwen3 0.6B']");
  await page.waitForFunction(() => /1 bytes of 2 bytes/.test(document.querySelector("#busy-text").textContent));
  await page.click("#cancel");
  await page.waitForSelector("#busy", { state: "hidden" });
  assert.ok(await page.isHidden("#trouble"));
});

test("calls of functions are shown, and the model goes on with all their results", async () => {
  const tools = [{ type: "function", function: { name: "add" } }];
  await page.evaluate((text) => {
    document.querySelector("#tools").value = text;
    document.querySelector("#tools").dispatchEvent(new Event("input", { bubbles: true }));
  }, JSON.stringify(tools));
  const piece = (index, rest, call = {}) => ({ tool_calls: [{ index, ...call, function: rest }] });
  const start = (index, id) => piece(index, { name: "add", arguments: "" }, { id, type: "function" });
  await ask("1 + 2, 3 + 4?", start(0, "a"), piece(0, { arguments: "[1, " }), piece(0, { arguments: "2]" }), start(1, "b"), piece(1, { arguments: "[3, 4]" }), start(2, "c"), piece(2, { arguments: "[5" }));
  assert.deepEqual(await page.evaluate(() => globalThis.request.tools), tools);
  const calls = () => page.locator(".call-text").allTextContents();
  assert.deepEqual(await calls(), ["add([1, 2])", "add([3, 4])"], "a call that broke off is none");
  await reload();
  await page.waitForFunction(() => document.querySelector("#text").placeholder === "Result of add");
  await page.fill("#text", "3");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.querySelector("#text").placeholder), "Result of add");
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

test("hostile answers are shown as they are, are kept, and hinder nothing", async () => {
  const texts = [">".repeat(2000), "- ".repeat(3000), "<img src=x onerror=\"globalThis.hacked = 1\"><script>hacked = 1</script>", "[a](javascript:hacked=1) ![b](https://h.invalid/x.png)", "$\\href{javascript:hacked=1}{x}$ $\\includegraphics{https://h.invalid/y.png}$ $\\def\\a{\\a\\a}\\a$", "```\n".repeat(3000), `${"[".repeat(5000)}`, "\u202eabc\u0000\ud800"];
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  for (const text of texts) {
    await ask("Say it", { content: text });
    assert.equal(await page.locator("#log [role=alert]").count(), 0, text.slice(0, 20));
  }
  await page.waitForTimeout(300);
  await reload();
  assert.equal(await page.locator("#log > .message").count(), 2 * texts.length);
  const found = await page.evaluate(() => [globalThis.hacked ?? null, document.querySelectorAll("#log :is(img, script, iframe, form[action], a[href^='javascript'])").length, [...document.querySelectorAll("#log *")].filter((e) => e.getAttributeNames().some((n) => n.startsWith("on"))).length]);
  assert.deepEqual(found, [null, 0, 0]);
  assert.deepEqual(asked.filter((url) => url.includes("h.invalid")), []);
  await ask("And now?", { content: "Fine" });
  assert.equal((await log()).at(-1), "Answer: Fine");
});

test("controls have names, and the page fits a phone", async () => {
  const nameless = () => page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, progress")].filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map((e) => e.id || e.outerHTML));
  await ask("Hi", { content: `| a | b |\n| - | - |\n| ${"word ".repeat(60)} | 2 |\n\n\`\`\`\n${"x".repeat(400)}\n\`\`\`\n\n$$${"a+".repeat(100)}b$$\n\n${"long".repeat(100)}` });
  assert.deepEqual(await nameless(), []);
  if (OTHER_BROWSER) return;
  await page.setViewportSize({ width: 360, height: 740 });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  await page.click("#menu");
  await page.waitForTimeout(300);
  assert.equal(await page.evaluate(() => document.activeElement.id), "new");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.id), "menu");
  await page.setViewportSize({ width: 1280, height: 720 });
});
