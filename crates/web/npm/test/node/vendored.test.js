// The chat page's copies of libraries are those of the lock file: after an update of it, copy the files again.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

test("libraries and their licences are npm's", () => {
  const files = [["marked/lib/marked.esm.js", "marked.js"], ["marked/LICENSE", "marked.LICENSE"], ["katex/dist/katex.min.js", "katex.js"], ["katex/LICENSE", "katex.LICENSE"]];
  for (const [theirs, ours] of files) {
    assert.equal(read(`../../../../server/page/${ours}`), read(`../../node_modules/${theirs}`), ours);
  }
});
