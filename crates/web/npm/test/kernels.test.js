// The kernels that a browser can have, compiled by the browser's own compiler: it refuses programs that naga accepts. By
// default a twelfth of them; CHASKI_TEST_FULL=1 compiles all.
//
// `cargo xtask test web` writes the texts to the folder that CHASKI_KERNELS names.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launch, serve } from "./browser.js";

const folder = process.env.CHASKI_KERNELS;
const full = Boolean(Number(process.env.CHASKI_TEST_FULL ?? 0));
let [server, browser, page] = [];

before(async () => {
  assert.ok(folder, "CHASKI_KERNELS is not set: run `cargo xtask test web`");
  server = await serve({ kernels: folder }, (request, response, url) => {
    if (url.pathname !== "/") return false;
    response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>");
    return true;
  });
  browser = await launch();
  page = await browser.context.newPage();
  await page.goto(`${server.origin}/`);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Compiles the kernels of a file in the page, at most so many: names and messages of those that are refused. */
function compile(file, change = false, most = Infinity) {
  return page.evaluate(
    async ([file, change, most]) => {
      const adapter = await navigator.gpu.requestAdapter();
      const features = ["subgroups", "shader-f16"].filter((f) => adapter.features.has(f));
      globalThis.device ??= await adapter.requestDevice({ requiredFeatures: features });
      const [refused, kernels] = [[], (await (await fetch(`/kernels/${file}`)).json()).slice(0, most ?? undefined)];
      for (const kernel of kernels) {
        let { text } = kernel;
        if (change) text = text.replace("fn main(", "fn main() {}\nfn other(");
        if (kernel.f16 && !device.features.has("shader-f16")) {
          // Without the feature the same program in f32 still shows control flow and syntax.
          text = text.replace("enable f16;", "").replace(/\bf16\b/g, "f32").replace(/(\d)h\b/g, "$1f");
        }
        device.pushErrorScope("validation");
        const { messages } = await device.createShaderModule({ code: text }).getCompilationInfo();
        const error = await device.popErrorScope();
        const line = (m) => `${kernel.name}:${m.lineNum}:${m.linePos}: ${m.message}\n  ${text.split("\n")[m.lineNum - 1]}`;
        const found = messages.filter((m) => m.type === "error").map(line);
        if (found.length > 0 || error) refused.push(found[0] ?? `${kernel.name}: ${error.message}`);
      }
      return { refused, n: kernels.length };
    },
    // JSON has no infinity.
    [file, change, Number.isFinite(most) ? most : null],
  );
}

test("Chrome's compiler takes the kernels", async () => {
  const all = (await readdir(folder)).filter((f) => f.endsWith(".json")).sort();
  const files = all.filter((_, i) => full || i % 12 === 0);
  let n = 0;
  for (const file of files) {
    const found = await compile(file);
    assert.deepEqual(found.refused, [], file);
    n += found.n;
  }
  assert.ok(n > (full ? 4000 : 250), `${n} kernels`);
});

test("a kernel that is wrong is refused", async () => {
  const { refused } = await compile("kernels-8.json", true, 20);
  assert.equal(refused.length, 20);
});
