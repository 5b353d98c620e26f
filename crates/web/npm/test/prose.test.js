// Answers as elements: the same in whatever pieces they come, and what a token of a long one costs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFile } from "node:fs/promises";
import { OTHER_BROWSER, open } from "./page.js";

/** Milliseconds of the main thread that a token of an answer of 40 kB may take, layout included. */
const TOKEN_MS = 4;
/** Where the browser alone takes longer than that for a character, the machine is busy, and the limit grows in proportion. */
const BROWSER_MS = 1;

let [t, page] = [];
before(async () => {
  const engine = await readFile(new URL("fake-engine.js", import.meta.url));
  t = await open((request, response, url) => {
    if (url.pathname !== "/demo/chaski/index.js") return false;
    response.writeHead(200, { "content-type": "text/javascript" }).end(engine);
    return true;
  });
  page = t.page;
  await page.goto(`${t.server.origin}/demo/index.html`);
  await page.waitForSelector("#welcome .card");
});
after(() => t?.close());

/** Texts as HTML, without the classes and attributes that only style needs. */
const shown = (texts) =>
  page.evaluate(async (texts) => {
    const { Prose } = await import("./prose.js");
    return texts.map((text) => {
      const root = document.createElement("div");
      new Prose(root).show(text);
      for (const element of root.querySelectorAll("figure")) {
        const pre = document.createElement("pre");
        pre.title = element.querySelector("figcaption span").textContent;
        pre.textContent = element.querySelector("code").textContent;
        element.replaceWith(pre);
      }
      for (const element of root.querySelectorAll("div")) element.replaceWith(...element.childNodes);
      for (const element of root.querySelectorAll("*")) for (const name of element.getAttributeNames()) if (!["href", "start", "title", "class"].includes(name) || (name === "title" && element.tagName === "A")) element.removeAttribute(name);
      return root.innerHTML;
    });
  }, texts);

test("answers become elements, never HTML", async () => {
  const text = "# A\n\n**b** `c` <img src=x onerror=alert(1)>\n\n- d\n- e\n\n```\nf\n```\n[g](javascript:x) [h](https://h.org) [i][j]\n\n[j]: https://j.org";
  const [found] = await shown([text]);
  assert.equal(
    found,
    '<h3>A</h3><p><strong>b</strong> <code>c</code> &lt;img src=x onerror=alert(1)&gt;</p><ul><li>d</li><li>e</li></ul><pre title="text">f</pre><p>[g](javascript:x) <a href="https://h.org">h</a> <a href="https://j.org">i</a></p>',
  );
});

test("Markdown: code has its own fence, in lists too, tables and quotes", async () => {
  const texts = {
    "1. A:\n   ```js\n   if (x)\n     y\n   ```\n2. B": '<ol start="1"><li>A:<pre title="js">if (x)\n  y</pre></li><li>B</li></ol>',
    "````md\n```\nx\n```\n`````\nB": '<pre title="md">```\nx\n```</pre><p>B</p>',
    "A\n```js\nx": '<p>A</p><pre title="js">x</pre>',
    "A\r\n\r\n```\r\nx\r\n```\r\n- B\r\n": '<p>A</p><pre title="text">x</pre><ul><li>B</li></ul>',
    "|a|b|\n|-|-:|\n|1|2|\n\n> c": '<table><thead><tr><th>a</th><th class="to-right">b</th></tr></thead><tbody><tr><td>1</td><td class="to-right">2</td></tr></tbody></table><blockquote><p>c</p></blockquote>',
    "- a\n\n  b\n- c\n\nd\n\n3. e\n4. f": '<ul><li><p>a</p><p>b</p></li><li>c</li></ul><p>d</p><ol start="3"><li>e</li><li>f</li></ol>',
    "```\n\na\n\n```": '<pre title="text">\na\n</pre>',
  };
  assert.deepEqual(await shown(Object.keys(texts)), Object.values(texts));
});

test("an answer is the same in whatever pieces it comes", async () => {
  const wrong = await page.evaluate(async () => {
    const { Prose } = await import("./prose.js");
    const marks = ["word ", "**b** ", "- ", "1. ", "\n", "\n\n", "   ", "```", "js", "|a|b|\n|-|-|\n", "|1|2|\n", "> ", "# ", "$x$ ", "$$", "---", "[a]: https://a.org\n", "[a] ", "`c`", "<b>", "*"];
    let seed = 11;
    const random = (n) => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65536) % n;
    const html = (root) => root.innerHTML;
    // KaTeX is there first, or formulas would differ.
    const { math } = await import("./math.js");
    math("x", "$x$", false);
    while (!globalThis.katex) await new Promise((resolve) => setTimeout(resolve, 20));
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (let run = 0; run < 600; run++) {
      const text = Array.from({ length: 1 + random(24) }, () => marks[random(marks.length)]).join("");
      const [whole, grown] = [document.createElement("div"), document.createElement("div")];
      new Prose(whole).show(text);
      const prose = new Prose(grown);
      for (let at = 0; at < text.length; at += 1 + random(8)) prose.show(text.slice(0, at), false);
      prose.show(text, true);
      if (html(whole) !== html(grown)) return [text, html(whole), html(grown)];
    }
    return null;
  });
  assert.equal(wrong, null, JSON.stringify(wrong));
});

test("a token of an answer of 40 kB takes few milliseconds, whatever the answer is made of", { skip: OTHER_BROWSER }, async (t) => {
  // The thread's own time: other programs may keep the processor busy.
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.setTimeDomain", { timeDomain: "threadTicks" });
  await session.send("Performance.enable");
  const spent = async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  const kinds = await page.evaluate(() => {
    const sentence = "The *chaski* ran with `quipus` over the **mountains** of the Inca, $x_1$ days long. ";
    const kinds = {
      paragraphs: `${sentence}${sentence}\n\n`,
      "one paragraph": sentence,
      table: "| 1 | Cusco | the **capital** of the empire | `c` |\n",
      code: "    let value = compute(\"x\", 12); // a comment\n",
      list: `- ${sentence}\n`,
      "nested list": `  - ${sentence}\n`,
      quote: `> ${sentence}\n`,
      formulas: `${sentence}\n\n$$\nT = \\sum_{k=0}^{n} 2^k t_0\n$$\n\n`,
    };
    const begins = { table: "| a | b | c | d |\n| - | - | - | - |\n", code: "```js\n", "nested list": "1. all\n" };
    globalThis.texts = Object.fromEntries(Object.entries(kinds).map(([name, piece]) => [name, (begins[name] ?? "") + piece.repeat(Math.ceil(42_000 / piece.length))]));
    return Object.keys(kinds);
  });
  /** The least of some rounds, in milliseconds a step; the page runs `step(at)` for ten steps in each. */
  const least = async () => {
    let token = Infinity;
    for (let round = 0; round < 20; round++) {
      const begun = await spent();
      await page.evaluate((round) => {
        for (let i = 10 * round; i < 10 * round + 10; i++) {
          step(i);
          document.querySelector("#log").offsetHeight;
        }
      }, round);
      token = Math.min(token, ((await spent()) - begun) / 10);
    }
    return token;
  };
  // The browser's own cost of a character at the end of 500 items: on a machine that others keep busy, layout takes several times as long.
  await page.evaluate(() => {
    const list = document.createElement("ul");
    for (let i = 0; i < 500; i++) list.append(Object.assign(document.createElement("li"), { textContent: "The chaski ran with quipus over the mountains of the Inca." }));
    document.querySelector("#log").replaceChildren(list);
    globalThis.step = () => list.lastChild.firstChild.appendData("x");
  });
  const browser = await least();
  t.diagnostic(`the browser alone: ${browser.toFixed(2)} ms a character`);
  const all = {};
  for (const name of kinds) {
    await page.evaluate(async (name) => {
      const { Prose } = await import("./prose.js");
      const root = document.createElement("div");
      root.className = "text";
      document.querySelector("#log").replaceChildren(root);
      const prose = new Prose(root);
      prose.show(texts[name].slice(0, 40_000), false);
      root.offsetHeight;
      globalThis.step = (i) => prose.show(texts[name].slice(0, 40_000 + 4 * i), false);
    }, name);
    all[name] = await least();
    t.diagnostic(`${name}: ${all[name].toFixed(2)} ms a token`);
  }
  const limit = TOKEN_MS * Math.max(1, browser / BROWSER_MS);
  for (const [name, token] of Object.entries(all)) assert.ok(token <= limit, `${name}: ${token} ms a token, at most ${limit}`);
});

test("an answer that is hostile to Markdown is shown in time", async () => {
  const deep = [...Array(300).keys()].map((i) => `${"  ".repeat(i)}- a`).join("\n");
  const texts = ["```\n".repeat(10_000), ">".repeat(40_000), "- ".repeat(20_000), "*a **b ".repeat(5000), "[".repeat(40_000), "![](".repeat(10_000), "`".repeat(40_000), "$a ".repeat(13_000), "\\(".repeat(20_000), "|".repeat(40_000), "|a".repeat(9000) + "\n" + "|-".repeat(9000) + "\n|1", "<".repeat(40_000), "~~a ".repeat(10_000), "a_".repeat(20_000), deep, "# ".repeat(20_000), "&#".repeat(20_000), "1. ".repeat(13_000)];
  for (const text of texts) {
    const took = await page.evaluate(async (text) => {
      const { Prose } = await import("./prose.js");
      const begun = performance.now();
      new Prose(document.createElement("div")).show(text);
      return performance.now() - begun;
    }, text);
    assert.ok(took < 4000, `${text.slice(0, 12)}: ${took} ms`);
  }
});
