// The packed package in an empty folder: `node --test`, in the folder that `cargo xtask wgsl-pre` makes.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = mkdtempSync(path.join(tmpdir(), "wgsl-pre-"));
let preprocess;
let render;

before(async () => {
  const npm = (...args) => execFileSync("npm", args, { cwd: folder, encoding: "utf8" });
  const [packed] = JSON.parse(npm("pack", "--json", process.cwd()));
  const names = packed.files.map((file) => file.path).sort();
  assert.deepEqual(names, [
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "index.d.ts",
    "index.js",
    "package.json",
    "wasm/wgsl_pre.js",
    "wasm/wgsl_pre_bg.wasm",
  ]);
  writeFileSync(path.join(folder, "package.json"), "{}");
  npm("install", "--offline", "--no-audit", "--no-fund", `./${packed.filename}`);
  const index = path.join(folder, "node_modules/wgsl-pre/index.js");
  ({ preprocess, render } = await import(pathToFileURL(index).href));
});

after(() => rmSync(folder, { recursive: true }));

test("directives are executed, and lines know their origin", () => {
  const result = preprocess('#include "lib.wgsl"\nconst wg = WG;\n', { WG: 64 }, { "lib.wgsl": "\nconst n = 4;\n" });
  assert.equal(result.text, "\nconst n = 4;\nconst wg = 64;\n");
  assert.equal(result.locate(2), "lib.wgsl:2");
  assert.equal(result.locate(3), "main:2");
  assert.equal(result.locate(4), undefined);
  assert.equal(preprocess("a\n").text, "a\n");
});

test("templates are rendered", () => {
  assert.equal(render({ main: "const SIZE = {{ size | u32 }};" }, "main", { size: 256 }), "const SIZE = 256u;\n");
});

test("errors name their place", () => {
  assert.throws(() => preprocess("a\n#if 1 / 0\n#endif\n"), /^Error: main:2:\d+: .*division by zero/);
  assert.throws(() => preprocess('#include "none.wgsl"\n'), /^Error: main:1/);
  assert.throws(() => render({ main: "\n{{ 1 // 0 }}" }, "main"), /^Error: main:2.*zero/);
  assert.throws(() => render({ main: "{{ n | u32 }}" }, "main", { n: -1 }), /^Error: main:1:8: filter `u32`/);
});
