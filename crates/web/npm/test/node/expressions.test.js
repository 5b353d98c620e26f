// JavaScript's regular expressions cut text into the words that the native engine cuts: fixtures/expressions.json has both.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

test("every expression of tokenizers finds what it finds natively", () => {
  const { text, rows } = JSON.parse(readFileSync(new URL("../../../../../fixtures/expressions.json", import.meta.url)));
  assert.ok(rows.length > 20);
  for (const { expression, found } of rows) {
    assert.deepEqual(text.match(new RegExp(expression, "gu")), found, expression);
  }
});
