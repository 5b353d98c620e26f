// Contents of `npm pack`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const full = Boolean(Number(process.env.CHASKI_TEST_FULL ?? 0));
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The module with threads is in packages for releases: tests without --full do without. */
const hasThreads = existsSync(`${ROOT}wasm/threads`);

/** A module and all that it imports or names as a file beside it. */
function reached(path, found = new Set()) {
  if (found.has(path) || (path.startsWith("wasm/threads/") && !hasThreads)) return found;
  found.add(path);
  if (!path.endsWith(".js")) return found;
  const text = readFileSync(ROOT + path, "utf8");
  for (const [, other] of text.matchAll(/(?:from |import\(|new URL\()["'](\.{0,2}[\w./-]+\.(?:js|wasm))["']/g)) {
    reached(posix.join(posix.dirname(path), other), found);
  }
  return found;
}

const LICENCES = ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"];

test("the package has every file that its modules reach, its types, words and licences, and nothing else", () => {
  const [packed] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd: ROOT, stdio: ["ignore", "pipe", "ignore"] }));
  const expected = [...reached("swarm.js", reached("node.js", reached("index.js", reached("worker.js")))), "index.d.ts", "worker.d.ts", "node.d.ts", "swarm.d.ts", "package.json", "README.md", ...LICENCES];
  assert.deepEqual(packed.files.map((file) => file.path).sort(), expected.sort());
  // Without --full the modules under test are built fast, and are twice as large.
  if (full) assert.ok(hasThreads && packed.size < 2_750_000, `${packed.size} bytes`);
});

test("the licences are ours, and those of what is compiled into the modules", () => {
  const [mit, apache, others] = LICENCES.map((file) => readFileSync(ROOT + file, "utf8"));
  assert.match(mit, /Chaski/);
  assert.match(apache, /Apache License/);
  for (const name of ["wgpu", "indexmap", "llguidance", "serde_json", "wasm-bindgen"]) assert.match(others, new RegExp(`^${name} \\d`, "m"));
  assert.ok(!/^(naga|tokio) \d/m.test(others), "they are not in it");
  assert.match(others, /Permission is hereby granted/);
});

test("every file that the package exports is in it", () => {
  const { exports } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8"));
  const files = Object.values(exports).flatMap((e) => (typeof e === "string" ? [e] : Object.values(e)));
  // A pattern is any file of a folder.
  for (const file of files.filter((file) => !file.includes("*"))) assert.ok(readFileSync(ROOT + file).length > 0, file);
});
