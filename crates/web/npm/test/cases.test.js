// Cases of every operation against their references, with the kernels as browsers get them, on Chromium's software GPU.
//
// `cargo xtask test web` builds them into the folder that CHASKI_CASES names. By default as many run as two seconds have
// room for, of every operation at least one; CHASKI_TEST_FULL=1 runs all. CHASKI_OP names operations to run alone, CHASKI_CASE
// a word in the labels of their cases, which then all run.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { idle, report } from "./cases.js";
import { launch, serve } from "./browser.js";

const folder = process.env.CHASKI_CASES;
const full = Boolean(Number(process.env.CHASKI_TEST_FULL ?? 0));
const only = process.env.CHASKI_OP ?? "";
const word = process.env.CHASKI_CASE ?? "";
/** Milliseconds that cases may take unless all run; what makes their inputs comes on top. */
const TIME = 2_000;
let [server, browser, page] = [];

before(async () => {
  assert.ok(folder, "CHASKI_CASES is not set: run `cargo xtask test web`, or `cargo xtask web-cases` and name target/web-cases");
  server = await serve({ cases: folder, test: fileURLToPath(new URL(".", import.meta.url)) }, (request, response, url) => {
    if (url.pathname !== "/") return false;
    response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>");
    return true;
  });
  // Large cases take a software GPU longer than a hung GPU may be waited for.
  browser = await launch(["--disable-gpu-watchdog"]);
  page = await browser.context.newPage();
  page.on("console", (message) => message.type() === "error" && console.log(`page: ${message.text()}`));
  await page.goto(`${server.origin}/`);
  await page.evaluate(async () => {
    globalThis.cases = await import("/cases/chaski_cases.js");
    await cases.default({ module_or_path: "/cases/chaski_cases_bg.wasm" });
  });
});
after(async () => {
  await browser?.close();
  await server?.close();
});

const run = (options) =>
  page.evaluate(async (options) => (await import("/test/cases.js")).runCases(cases, navigator.gpu, options), options);

test("in Chromium operations match their references", async () => {
  const sets = ["alone", "base", ...(full ? ["sg"] : [])].map((set) => ({ set }));
  const found = await run({ sets, ms: TIME, full: full || word !== "", only, word });
  report("Chromium", found, full);
  assert.deepEqual(found.failures, []);
  assert.equal(found.sets.length, sets.length, "the adapter has all sets");
  if (!only && !word) assert.deepEqual(idle(found), []);
});

test("what no kernel wrote is a failure", async () => {
  const { sets, failures } = await run({ sets: [{ set: "base" }], ms: 0, only: "rms_norm,argmax,soft_max,cpy", change: true });
  assert.equal(failures.length, sets[0].ops.length, failures.join("\n"));
});
