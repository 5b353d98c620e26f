// The chat page's copy of marked is that of the lock file: after an update of it, copy both files again.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

test("marked and its licence are npm's", () => {
  for (const [theirs, ours] of [["lib/marked.esm.js", "marked.js"], ["LICENSE", "marked.LICENSE"]]) {
    assert.equal(read(`../../../../server/page/${ours}`), read(`../../node_modules/marked/${theirs}`), ours);
  }
});
