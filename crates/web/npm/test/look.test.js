// The chat page as it looks, at four widths, light and dark, against pictures that were looked at; and what axe finds in it.
// `CHASKI_GOLDENS=renew` takes the pictures anew.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { OTHER_BROWSER, open } from "./page.js";

const GOLDENS = fileURLToPath(new URL("goldens", import.meta.url));
const RESULTS = fileURLToPath(new URL("../test-results", import.meta.url));
const RENEW = process.env.CHASKI_GOLDENS === "renew";
const SIZES = [[390, 844], [820, 1180], [1280, 800], [1920, 1080]];
/** A channel may differ by so much, and so large a share of the pixels by more. */
const CHANNEL = 24;
const SHARE = 0.002;

const skip = OTHER_BROWSER ?? false;
let [t, answer, engine] = [];

before(async () => {
  if (skip) return;
  [answer, engine] = await Promise.all(["goldens/answer.md", "fake-engine.js"].map((name) => readFile(new URL(name, import.meta.url), "utf8")));
  t = await open((request, response, url) => {
    if (url.pathname !== "/demo/chaski/index.js") return false;
    response.writeHead(200, { "content-type": "text/javascript" }).end(engine);
    return true;
  });
});
after(() => t?.close());

/** A page of its own, of this size, with a conversation in it. */
async function visit(width, height, scheme) {
  const page = await t.browser.context.newPage();
  page.setDefaultTimeout(60_000);
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  await page.goto(`${t.server.origin}/demo/index.html`);
  await page.evaluate(async () => {
    localStorage.clear();
    sessionStorage.clear();
    await new Promise((resolve) => (indexedDB.deleteDatabase("chaski").onsuccess = resolve));
  });
  await page.reload();
  await page.waitForSelector("#welcome .fit");
  return page;
}

async function talk(page) {
  await page.click("#welcome [aria-label='Use: Storyteller']");
  await page.waitForSelector(".prompts");
  await page.evaluate((pieces) => (globalThis.next = [{ reasoning_content: "A short example will do." }, ...pieces.map((content) => ({ content }))]), answer.match(/[\s\S]{1,60}/g));
  await page.fill("#text", "How do I make an HTTP request in Python? Show a table of status codes, too.");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#stop").hidden && document.querySelector("#log > :last-child footer") && document.querySelector("math"));
  // Times differ.
  await page.evaluate(() => (document.querySelector(".thoughts summary span").textContent = "Thought for 3 s"));
}

/** Fonts and the browser make other pictures; they are known by the widths of some words. */
const surroundings = (page) =>
  page.evaluate(() => {
    const context = document.createElement("canvas").getContext("2d");
    const widths = ["system-ui", "monospace", "math"].map((font) => ((context.font = `40px ${font}`), context.measureText("Chaski 0123 ∑ fly").width.toFixed(2)));
    return [/Chrome\/\d+/.exec(navigator.userAgent)?.[0], ...widths].join(" ");
  });

/** The share of pixels in which two pictures differ. */
const difference = (page, pictures) =>
  page.evaluate(async ([pictures, channel]) => {
    const [a, b] = await Promise.all(pictures.map(async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
      canvas.drawImage(bitmap, 0, 0);
      return canvas.getImageData(0, 0, bitmap.width, bitmap.height);
    }));
    if (a.width !== b.width || a.height !== b.height) return 1;
    let n = 0;
    for (let i = 0; i < a.data.length; i += 4) if ([0, 1, 2].some((c) => Math.abs(a.data[i + c] - b.data[i + c]) > channel)) n++;
    return n / (a.data.length / 4);
  }, [pictures, CHANNEL]);

async function compare(page, name, wrong) {
  await page.evaluate(() => document.fonts.ready);
  await page.mouse.move(0, 0);
  await page.waitForTimeout(120);
  const taken = await page.screenshot({ caret: "hide", animations: "disabled" });
  const path = `${GOLDENS}/${name}.png`;
  if (RENEW) return writeFile(path, taken);
  const golden = await readFile(path);
  const share = await difference(page, [golden.toString("base64"), taken.toString("base64")]);
  if (share <= SHARE) return;
  await mkdir(RESULTS, { recursive: true });
  await writeFile(`${RESULTS}/${name}.png`, taken);
  wrong.push(`${name}: ${(100 * share).toFixed(2)} % of the pixels (${RESULTS}/${name}.png)`);
}

for (const [width, height] of SIZES) {
  for (const scheme of ["light", "dark"]) {
    test(`the page looks as it did: ${width} pixels, ${scheme}`, { skip }, async (context) => {
      const page = await visit(width, height, scheme);
      const here = await surroundings(page);
      if (RENEW) await writeFile(`${GOLDENS}/surroundings.txt`, `${here}\n`);
      else if (here !== (await readFile(`${GOLDENS}/surroundings.txt`, "utf8")).trim()) {
        await page.close();
        return context.skip(`SKIPPED: other fonts or another browser: ${here}`);
      }
      const wrong = [];
      await compare(page, `welcome-${width}-${scheme}`, wrong);
      await talk(page);
      await page.evaluate(() => (document.querySelector("#scroll").scrollTop = 0));
      await compare(page, `chat-${width}-${scheme}`, wrong);
      if (width === 390) {
        await page.click("#menu");
        await compare(page, `menu-${width}-${scheme}`, wrong);
      }
      if (width === 1280) {
        await page.click("#open-models");
        await compare(page, `models-${width}-${scheme}`, wrong);
      }
      await page.close();
      assert.deepEqual(wrong, []);
    });
  }
}

test("axe finds nothing serious", { skip }, async () => {
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const found = [];
  const run = async (page, where) => {
    // The page's policy forbids scripts of others.
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axe });
    const violations = await page.evaluate(async () => {
      const { violations } = await axe.run(document, { resultTypes: ["violations"] });
      return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes.map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).slice(0, 4).join(" | ")}`);
    });
    found.push(...violations.map((v) => `${where}: ${v}`));
  };
  for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [390, "light"]]) {
    const page = await visit(width, 800, scheme);
    await run(page, `welcome ${width} ${scheme}`);
    await talk(page);
    await run(page, `chat ${width} ${scheme}`);
    await page.evaluate(() => (globalThis.next = [new Error("no luck")]));
    await page.fill("#text", "Again");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#log [role=alert]");
    await run(page, `failure ${width} ${scheme}`);
    for (const dialog of ["models", "settings", "system"]) {
      await page.evaluate((name) => document.getElementById(`${name}-dialog`).showModal(), dialog);
      await run(page, `${dialog} ${width} ${scheme}`);
      await page.keyboard.press("Escape");
    }
    await page.close();
  }
  assert.deepEqual(found, []);
});
