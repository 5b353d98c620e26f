// Names of models, with a hub that answers, answers wrongly, or is gone.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { locate } from "../../src/locate.js";
import { browser } from "./opfs.js";

const file = (path) => ({ type: "file", path, size: 1, lfs: { oid: "a".repeat(64) } });
const hub = (...paths) => (globalThis.fetch = async () => new Response(JSON.stringify(paths.map(file))));
const gone = () => (globalThis.fetch = async () => Promise.reject(new TypeError("Failed to fetch")));
const names = async (model, options = {}) => (await locate(model, options)).map((f) => f.name);
const code = (expected) => (error) => error.code === expected;

beforeEach(() => void browser());

test("a quantisation is a word of the file's name", async () => {
  hub("m-BF16.gguf", "m-F16.gguf", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "UD/m-UD-Q4_K_XL.gguf", "m-IQ4_XS.gguf");
  assert.deepEqual(await names("hf:a/b:F16"), ["m-F16.gguf"]);
  assert.deepEqual(await names("hf:a/b:bf16"), ["m-BF16.gguf"]);
  assert.deepEqual(await names("hf:a/b:Q4_K_S"), ["m-Q4_K_S.gguf"]);
  assert.deepEqual(await names("hf:a/b:Q4_K"), ["m-Q4_K_M.gguf"]);
  assert.deepEqual(await names("hf:a/b:UD-Q4_K_XL"), ["m-UD-Q4_K_XL.gguf"]);
  assert.deepEqual(await names("hf:a/b"), ["m-Q4_K_M.gguf"]);
  await assert.rejects(names("hf:a/b:Q4_XS"), code("not_found"));
});

test("all files of a split set are found by any of them", async () => {
  hub("Q8_0/m-00002-of-00002.gguf", "Q8_0/m-00001-of-00002.gguf");
  const both = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"];
  assert.deepEqual(await names("hf:a/b:Q8_0"), both);
  assert.deepEqual(await names("https://h.org/m-00002-of-00002.gguf?download=true"), both);
  hub("m-00001-of-00002.gguf");
  await assert.rejects(names("hf:a/b"), code("not_found"));
});

test("a repository that was listed once has its files without the hub", async () => {
  gone();
  await assert.rejects(names("hf:a/b", { offline: true }), code("not_stored"));
  await assert.rejects(names("hf:a/b"), code("network"));
  hub("m-Q8_0.gguf");
  const [fresh] = await locate("hf:a/b:Q8_0", {});
  gone();
  assert.deepEqual(await locate("hf:a/b:Q8_0", {}), [fresh]);
  assert.deepEqual(await locate("hf:a/b:Q8_0", { offline: true }), [fresh]);
  // A portal's page instead of a list.
  globalThis.fetch = async () => new Response("<html>");
  assert.deepEqual(await locate("hf:a/b:Q8_0", {}), [fresh]);
  await assert.rejects(names("hf:c/d"), code("network"));
});

test("a hash that is null is none", async () => {
  hub("m-Q8_0.gguf");
  const sha256 = async (hash) => (await locate("hf:a/b", { sha256: { "m-Q8_0.gguf": hash } }))[0].sha256;
  assert.equal(await sha256(null), "a".repeat(64));
  assert.equal(await sha256("b".repeat(64)), "b".repeat(64));
  await assert.rejects(names("hf:a/b", { sha256: { "n.gguf": null } }), code("bad_request"));
});

test("nothing is kept where nothing shall be", async () => {
  hub("m-Q8_0.gguf");
  await locate("hf:a/b", { cache: "none" });
  gone();
  await assert.rejects(names("hf:a/b"), code("network"));
});

test("a repository is known without hf:, and files of the page's site stay addresses", async () => {
  const { forWorker } = await import("../../src/engine.js");
  globalThis.location ??= { href: "https://page.invalid/a/", origin: "https://page.invalid" };
  for (const name of ["Qwen/Qwen3-0.6B-GGUF", "Qwen/Qwen3-0.6B-GGUF:Q8_0", "a/b@main:Q4_K_M"]) assert.equal(forWorker(name), `hf:${name}`);
  for (const name of ["models/x.gguf", "./models/x", "/models/x", "https://h.org/x", "a/b/c.gguf"]) assert.doesNotMatch(forWorker(name), /^hf:/);
});
