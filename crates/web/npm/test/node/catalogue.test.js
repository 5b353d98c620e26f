// The list of models: entries that a page can use as they are.

import assert from "node:assert/strict";
import { test } from "node:test";
import { catalogue } from "../../src/catalogue.js";

test("each model names one file, with its size and its hash", () => {
  const all = catalogue();
  assert.ok(all.length >= 10);
  for (const key of ["id", "model", "sha256", "bytes"]) assert.equal(new Set(all.map((m) => m[key])).size, all.length, key);
  for (const { id, model, file, bytes, sha256, memory, parameters, trainedContext } of all) {
    assert.match(model, /^hf:[\w.-]+\/[\w.-]+\/[\w.-]+\.gguf$/, id);
    assert.equal(model.split("/").at(-1), file, id);
    assert.match(sha256, /^[0-9a-f]{64}$/, id);
    // Whole blocks of 32 bytes, as files have them, and between 4 and 8 bits a weight.
    assert.ok(bytes % 32 === 0 && bytes > parameters * 0.5 && bytes < parameters, `${id}: ${bytes} bytes`);
    const sizes = Object.entries(memory);
    assert.ok(sizes.every(([n, total]) => n <= trainedContext && total > bytes), id);
    assert.ok(sizes.every(([, total], i) => i === 0 || total > sizes[i - 1][1]), id);
  }
  assert.deepEqual(all.map((m) => m.bytes), all.map((m) => m.bytes).sort((a, b) => a - b), "the smallest first");
});
