// The package as Vite builds it into a page.

import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { launch, serve } from "./browser.js";

let folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chaski-vite-"));
  const root = fileURLToPath(new URL("bundled", import.meta.url));
  await build({ root, base: "/site/", configFile: false, logLevel: "error", build: { outDir: folder, emptyOutDir: true } });
});
after(() => rm(folder, { recursive: true, force: true }));

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
  const [server, browser] = [await serve({ site: folder }), await launch()];
  t.after(async () => {
    await browser.close();
    await server.close();
  });
  const page = await browser.context.newPage();
  await page.goto(`${server.origin}/site/index.html`);
  assert.equal(await page.evaluate(() => globalThis.found), "not_found");
});
