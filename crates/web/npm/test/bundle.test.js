// The package as pages get it: built by Vite, or from another origin.

import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { launch, serve } from "./browser.js";
import { PACKAGE } from "./page.js";

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

test("Vite makes files of the worker and the wasm module, none of them text in another", async () => {
  const files = await readdir(join(folder, "assets"));
  assert.equal(files.filter((name) => /^worker-.*\.js$/.test(name)).length, 1, files.join(", "));
  assert.equal(files.filter((name) => /^chaski_web_bg-.*\.wasm$/.test(name)).length, 1, files.join(", "));
  for (const name of files.filter((name) => name.endsWith(".js"))) {
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
