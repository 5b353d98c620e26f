// Tabs as workers of a swarm: a hub in a process of its own, and pages that join it.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, before, test } from "node:test";
import { launch, serve } from "./browser.js";
import { LEFT_FOR_FULL, OTHER_BROWSER, PACKAGE, REPOSITORY } from "./page.js";

const PROGRAM = process.env.CHASKI_PROGRAM ?? `${REPOSITORY}/target/debug/chaski`;
const TOKEN = "0f".repeat(16);
const LONG = Number(process.env.LONG ?? 120_000);
const full = Boolean(Number(process.env.CHASKI_TEST_FULL ?? 0));
/** File types whose experts are in other formats than the model's of the other tests, for full runs. */
const MIXES = ["q4_k_m", "f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k_m", "q5_k_m", "q6_k", "iq4_nl", "iq4_xs", "iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_s", "iq1_m", "tq1_0", "tq2_0", "mxfp4_moe"];
const skip = OTHER_BROWSER && "tabs are workers on Chromium's GPU";

let [folder, model, browser] = [];
const running = new Set();

before(async () => {
  if (skip) return;
  folder = await mkdtemp(join(tmpdir(), "chaski-swarm-"));
  model = join(folder, "model.gguf");
  // 4 layers with 32 experts, of which a token uses 4.
  execFileSync(PROGRAM, ["synth", "--preset", "tiny-moe", "--mix", "q8_0", "--out", model, "-q"]);
  await writeFile(join(folder, "token"), TOKEN);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});
afterEach(async () => {
  for (const page of browser?.context.pages().slice(1) ?? []) await page.close();
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});

/** A process, its lines, and its end. */
function start(args) {
  const child = spawn(PROGRAM, args, { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  const lines = [];
  const wanted = [];
  let out = "";
  child.stdout.on("data", (data) => (out += data));
  createInterface({ input: child.stderr }).on("line", (line) => {
    lines.push(line);
    for (const w of wanted) w();
  });
  const ended = new Promise((resolve) => child.once("close", (code) => resolve({ code, out, lines })));
  const after = async (text) => {
    const rest = () => lines.find((line) => line.includes(text))?.split(text)[1];
    const found = await until(rest, `a line with \`${text}\`: ${lines.join("\n")}`);
    return found;
  };
  return { child, lines, ended, after };
}

async function until(look, what) {
  const end = Date.now() + LONG;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(Date.now() < end, `not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A hub that serves the model, and its addresses. */
async function hub(...more) {
  const args = ["serve", model, "--device", "cpu", "--port", "0", "--swarm", "127.0.0.1:0", "--swarm-fast", "--token-file", join(folder, "token"), "-v"];
  const process = start([...args, ...more]);
  const link = `${await process.after("pages join at ")}#${TOKEN}`;
  const http = await process.after("listening on http://");
  await process.after("ready: ");
  const address = new URL(link).host;
  const status = () => JSON.parse(execFileSync(PROGRAM, ["swarm", "status", address, "--format", "json"], { encoding: "utf8" }));
  return { ...process, link, address, http, status };
}

/** A tab at the join page. */
async function open(link) {
  const page = await browser.context.newPage();
  page.setDefaultTimeout(LONG);
  page.on("pageerror", (error) => console.log("page:", error));
  page.on("console", (message) => message.type() === "error" && console.log(`page: ${message.text()}`));
  await page.goto(link);
  return page;
}

const state = (page) => page.getAttribute("#state", "data-state");
const become = (page, wanted) => page.waitForFunction((w) => document.querySelector("#state").dataset.state === w, wanted);
const number = async (page, id) => parseInt(await page.textContent(id));

/** Presses the button, and waits until the tab has all that it should hold. */
async function joined(page) {
  await page.click("#join");
  await become(page, "working");
}

const held = (status) => status.workers.reduce((sum, w) => sum + w.units, 0);
const isReady = (h, workers, replicas) => {
  const status = h.status();
  return status.workers.length === workers && held(status) === replicas * status.units && status;
};

const ask = (http, n) =>
  fetch(`http://${http}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ prompt: "Once upon a time", max_tokens: n, temperature: 0, ignore_eos: true }) })
    .then((response) => response.json())
    .then((body) => body.choices[0].text);

/** Logits of 48 tokens, with tabs as workers or without, and what the command said. */
async function logits(model, tabs) {
  const to = join(folder, "logits");
  const tokens = Array.from({ length: 48 }, (_, i) => ((i * 37) % 250) + 3).join();
  const swarm = ["--swarm", "127.0.0.1:0", "--swarm-fast", "--swarm-workers", String(tabs), "--swarm-replicas", "1", "--experts-away", "--token-file", join(folder, "token")];
  const process = start(["logits", model, "--device", "cpu", "--tokens", tokens, "--chunk", "6", "--out", to, "-v", ...(tabs > 0 ? swarm : [])]);
  const link = tabs > 0 && `${await process.after("pages join at ")}#${TOKEN}`;
  for (let i = 0; i < tabs; i++) await joined(await open(link));
  const { code, lines } = await process.ended;
  assert.equal(code, 0, lines.join("\n"));
  return { values: new Float32Array((await readFile(to)).buffer.slice(0)), lines };
}

/** Error of the logits of tabs against those of one machine, as NMSE; some products must be theirs. */
async function errorOf(model, tabs) {
  const alone = await logits(model, 0);
  const away = await logits(model, tabs);
  const end = away.lines.join("\n");
  // On a busy machine tasks are overdue, and then the hub computes them.
  const [, products] = /(\d+) products in sums/.exec(end) ?? [];
  assert.ok(Number(products) > 0, end);
  assert.equal(alone.values.length, away.values.length);
  let [error, power] = [0, 0];
  alone.values.forEach((v, i) => {
    error += (v - away.values[i]) ** 2;
    power += v ** 2;
  });
  return error / power;
}

test("two tabs compute the experts of a model, near those of one machine", { skip, timeout: 2 * LONG }, async () => {
  const error = await errorOf(model, 2);
  console.log(`NMSE ${error}`);
  assert.ok(error > 0 && error < 1e-5, `NMSE ${error}`);
});

for (const mix of full ? MIXES : []) {
  test(`a tab computes experts in ${mix}`, { skip, timeout: 2 * LONG }, async () => {
    const other = join(folder, `${mix}.gguf`);
    execFileSync(PROGRAM, ["synth", "--preset", "tiny-moe", "--layers", "2", "--mix", mix, "--out", other, "-q"]);
    const error = await errorOf(other, 1);
    console.log(`${mix}: NMSE ${error}`);
    assert.ok(error < 1e-5, `${mix}: NMSE ${error}`);
    await rm(other);
  });
}

test("nothing joins without a click, a tab shows what it gives, and stops at a click", { skip, timeout: LONG }, async () => {
  const h = await hub("--swarm-replicas", "1");
  const page = await open(h.link);
  // Lines that are kept in files do not have the token.
  assert.ok(!h.lines.some((line) => line.includes(TOKEN)), h.lines.join("\n"));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  assert.equal(h.status().workers.length, 0);
  assert.match(await page.textContent("main"), /hidden states/);
  assert.equal(await page.textContent("#hub"), h.address);
  await joined(page);
  await until(() => isReady(h, 1, 1), "all units in the tab");
  await ask(h.http, 8);
  await page.waitForFunction(() => parseInt(document.querySelector("#tasks").textContent) > 0);
  assert.equal(await number(page, "#units"), h.status().units);
  await page.click("#stop");
  await become(page, "stopped");
  await until(() => h.status().workers.length === 0, "the tab has left");
  assert.ok(await page.isVisible("#join"));
});

test("a tab is closed in the midst of a text, which goes on", { skip: skip || LEFT_FOR_FULL, timeout: 2 * LONG }, async () => {
  const h = await hub();
  const expected = await ask(h.http, 64);
  const pages = [await open(h.link), await open(h.link)];
  for (const page of pages) await joined(page);
  await until(() => isReady(h, 2, 2), "all units in both tabs");
  let isWritten = false;
  const text = ask(h.http, 64).finally(() => (isWritten = true));
  await pages[0].waitForFunction(() => parseInt(document.querySelector("#tasks").textContent) > 8);
  await pages[0].close();
  assert.equal(isWritten, false, "the text is still being written");
  assert.equal(await text, expected);
  const left = await until(() => h.status().workers.length === 1 && h.status(), "one tab is left");
  assert.ok(left.workers[0].units > 0);
  assert.equal(await ask(h.http, 64), expected, "with one tab");
  assert.ok((await number(pages[1], "#tasks")) > 8);
});

test("another token is refused, and so is a page of another origin unless the hub allows it", { skip: skip || LEFT_FOR_FULL, timeout: 2 * LONG }, async (t) => {
  const other = await serve({ npm: PACKAGE }, (request, response, url) => {
    if (url.pathname !== "/") return false;
    response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>another page</title>");
    return true;
  });
  t.after(() => other.close());
  const h = await hub();
  const wrong = await open(h.link.replace(TOKEN, "f0".repeat(16)));
  await wrong.click("#join");
  await become(wrong, "failed");
  assert.match(await wrong.textContent("#reason"), /token/);
  await wrong.goto("about:blank");
  await wrong.goto(h.link.split("#")[0]);
  await wrong.click("#join");
  await become(wrong, "failed");
  await wrong.goto("about:blank");
  await wrong.goto(`${h.link.split("#")[0]}#nonsense`);
  await wrong.click("#join");
  await wrong.waitForSelector("#obstacle:not([hidden])");
  assert.match(await wrong.textContent("#obstacle"), /32 hexadecimal digits/);

  /** A job of a page of the other origin, until a status that is wished. */
  const run = async (url, options, state) => {
    const page = await open(`${other.origin}/`);
    return page.evaluate(
      async ([url, options, state]) => {
        const { work } = await import("/npm/swarm.js");
        return new Promise((resolve, reject) => {
          const onStatus = (status) => status.state === state && resolve(status);
          work(url, { ...options, onStatus }).then((job) => (globalThis.job = job), reject);
        });
      },
      [url, options, state],
    );
  };
  const foreign = await run(`ws://${h.address}`, { token: TOKEN }, "waiting");
  assert.match(foreign.reason, /this origin/);
  assert.equal(h.status().workers.length, 0);

  const allowing = await hub("--swarm-origin", other.origin, "--swarm-replicas", "1");
  const status = await run(`http://${allowing.address}`, { token: TOKEN, memory: 64 << 20 }, "working");
  assert.equal(status.memory, 64 << 20);
  assert.ok(status.used > 0 && status.used < (600 << 20), `${status.used}`);
  await until(() => isReady(allowing, 1, 1), "all units in the page");
  assert.ok((await ask(allowing.http, 4)).length > 0);
  await browser.context.pages().at(-1).evaluate(() => (job.stop(), job.done));
  await until(() => allowing.status().workers.length === 0, "it has left");
});

test("a tab that comes back has the experts that it kept", { skip: skip || LEFT_FOR_FULL, timeout: 3 * LONG }, async () => {
  const h = await hub("--swarm-replicas", "1");
  const fetched = async (page) => {
    const paths = [];
    page.on("request", (request) => request.url().includes("/swarm/packed/") && paths.push(request.url()));
    await joined(page);
    await until(() => isReady(h, 1, 1), "all units in the tab");
    return paths;
  };
  const kept = (page) => page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("chaski-swarm").catch(() => null);
    const names = [];
    if (folder) for await (const name of folder.keys()) names.push(name);
    return names;
  });
  const first = await open(h.link);
  const all = await fetched(first);
  await until(async () => (await kept(first)).length === 128, "all are on the disk");
  const text = await ask(h.http, 16);
  assert.equal(all.length, 128, "each expert once");
  // One of them is damaged, and one is gone.
  await first.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("chaski-swarm");
    const [damaged, gone] = await Array.fromAsync(folder.keys());
    const file = await (await folder.getFileHandle(damaged)).createWritable({ keepExistingData: true });
    await file.write(new Uint8Array(8).fill(255));
    await file.close();
    await folder.removeEntry(gone);
  });
  await first.close();
  await until(() => h.status().workers.length === 0, "the tab has left");
  const second = await open(h.link);
  const missing = await fetched(second);
  assert.equal(await ask(h.http, 16), text);
  await until(async () => (await kept(second)).length === 128, "all are on the disk again");
  assert.equal(missing.length, 2, "what was damaged, and what was gone");
  // Less room: what was not used for longest goes.
  await second.click("#stop");
  await become(second, "stopped");
  await second.fill("#memory", "16");
  await joined(second);
  const bytes = await second.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("chaski-swarm");
    let n = 0;
    // Some make room for others meanwhile.
    for await (const handle of folder.values()) n += await handle.getFile().then(({ size }) => size, () => 0);
    return n;
  });
  assert.ok(bytes > 0 && bytes <= 16 << 20, `${bytes} bytes`);
  // Nobody wants to keep anything.
  await second.click("#stop");
  await become(second, "stopped");
  await second.uncheck("#keep");
  await joined(second);
  assert.deepEqual(await kept(second), []);
});

test("a lost GPU and a hub that is gone are told, and the tab comes back", { skip: skip || LEFT_FOR_FULL, timeout: 2 * LONG }, async () => {
  const h = await hub("--swarm-replicas", "1");
  const page = await open(h.link);
  await page.evaluate(() => {
    const request = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function (...args) {
      return (globalThis.device = await request.apply(this, args));
    };
  });
  await joined(page);
  await page.evaluate(() => device.destroy());
  await become(page, "waiting");
  assert.match(await page.textContent("#reason"), /GPU was lost/);
  await become(page, "working");
  await until(() => isReady(h, 1, 1), "all units in the tab again");
  h.child.kill("SIGKILL");
  await become(page, "waiting");
  await page.waitForFunction(() => document.querySelector("#reason").textContent.includes("not there"));
  await page.click("#stop");
  await become(page, "stopped");
});

// A hidden tab says so, and gets no units while others could have them.
test("a hidden tab hands its units over, and gets some again when it is seen", { skip: skip || LEFT_FOR_FULL, timeout: 2 * LONG }, async () => {
  const h = await hub("--swarm-replicas", "1");
  const [page, other] = [await open(h.link), await open(h.link)];
  await joined(page);
  await until(() => isReady(h, 1, 1), "all units in one tab");
  await joined(other);
  const show = (visibility) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "visibilityState", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, visibility);
  await show("hidden");
  const units = () => Promise.all([page, other].map((p) => number(p, "#units")));
  const all = h.status().units;
  await until(async () => `${await units()}` === `0,${all}`, "all units in the tab that is seen");
  await show("visible");
  await until(async () => (await units())[0] > 0, "units in the tab that is seen again");
});
