// The package as pages get it: built by Vite, or from another origin.

import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { launch, serve } from "./browser.js";
import { MODEL, MODELS, PACKAGE } from "./page.js";

let [folder, browser] = [];
before(async () => {
  browser = await launch();
  folder = await mkdtemp(join(tmpdir(), "chaski-vite-"));
  const root = fileURLToPath(new URL("bundled", import.meta.url));
  await build({ root, base: "/site/", configFile: false, logLevel: "error", build: { outDir: folder, emptyOutDir: true } });
});
after(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

/** A page of a server's. */
async function visit(server, path) {
  const page = await browser.context.newPage();
  await page.goto(server.origin + path);
  return page;
}

test("Vite makes files of the worker and the wasm modules, none of them text in another", async () => {
  const files = await readdir(join(folder, "assets"));
  for (const name of [/^worker-.*\.js$/, /^chaski_web_bg-.*\.wasm$/, /^chaski_grammar_bg-.*\.wasm$/]) assert.equal(files.filter((file) => name.test(file)).length, 1, files.join(", "));
  // wasm-bindgen's own bindings have a worker as text, for browsers without `Atomics.waitAsync`.
  for (const name of files.filter((name) => name.endsWith(".js") && !/^(?:chaski_threads|thread)-/.test(name))) {
    const inlined = /data:(text|application)\/javascript/.test(await readFile(join(folder, "assets", name), "utf8"));
    assert.ok(!inlined, name);
  }
});

test("the built page's worker answers", async (t) => {
  const server = await serve({ site: folder });
  t.after(() => server.close());
  const page = await visit(server, "/site/index.html");
  assert.equal(await page.evaluate(() => globalThis.found), "not_found");
});

test("the built page finds its grammars, in the worker and without one", async (t) => {
  const asked = [];
  const server = await serve({ site: folder, ...MODELS }, (request, response, url) => void asked.push(url.pathname));
  t.after(() => server.close());
  const page = await visit(server, "/site/index.html");
  const second = () => asked.filter((path) => /grammar.*\.wasm$/.test(path)).length;
  assert.equal(second(), 0);
  for (const worker of [true, false]) {
    const text = await page.evaluate(([model, worker]) => answer(model, worker), [MODEL, worker]);
    assert.match(text, /^ (ran|slept)$/);
  }
  assert.equal(second(), 2, "one for each thread");
});

test("a package on another origin has its worker there", async (t) => {
  const cdn = await serve({ npm: PACKAGE }, (request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    return false;
  });
  const server = await serve({ site: folder });
  t.after(() => Promise.all([cdn.close(), server.close()]));
  const page = await visit(server, "/site/index.html");
  const found = await page.evaluate(async (address) => {
    const { models } = await import(address);
    return models.download("/nothing.gguf").then(() => "stored", (error) => `${error.code}: ${error.message}`);
  }, `${cdn.origin}/npm/index.js`);
  assert.equal(found, `not_found: ${server.origin}/nothing.gguf: 404`);
});
