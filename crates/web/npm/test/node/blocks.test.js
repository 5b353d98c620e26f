// Blocks of a Markdown text that grows: the same, however it comes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Blocks } from "../../../../server/page/blocks.js";

/** The blocks of a text that comes in pieces which end at these places. */
function blocksOf(text, ends = []) {
  const [blocks, out] = [new Blocks(), []];
  const ended = ({ kind, source, continued }) => out.push([kind, source, Boolean(continued)]);
  for (const end of [...ends, text.length]) {
    const open = blocks.read(text.slice(0, end), ended);
    assert.ok(open === null || text.slice(0, end).endsWith(open.source), "what is open is the end of the text");
  }
  blocks.finish(ended);
  return out;
}

const kinds = (text) => blocksOf(text).map(([kind, source]) => `${kind} ${source.trim()}`);

test("blocks end where others begin", () => {
  assert.deepEqual(kinds("A\nb\n\nC\n# D\n- e\n- f\n  g\n\nH"), ["text A\nb", "text C\n# D", "item - e", "item - f\n  g", "text H"]);
  assert.deepEqual(kinds("A\n```js\nx\n\ny\n```\nB\n~~~\nz"), ["text A", "fence ```js\nx\n\ny\n```", "text B", "fence ~~~\nz"]);
  assert.deepEqual(kinds("A\n\n|a|b|\n|-|-|\n|1|2|\n\nB"), ["text A", "table |a|b|\n|-|-|\n|1|2|", "text B"]);
  assert.deepEqual(kinds("1. a\n   ```\n   x\n\n   y\n   ```\n   b\n2. c"), ["item 1. a\n   ```\n   x\n\n   y\n   ```\n   b", "item 2. c"]);
  assert.deepEqual(kinds("````\n```\n````\n"), ["fence ````\n```\n````"]);
  assert.deepEqual(kinds("a - b\n3. c\n-\n***\n"), ["text a - b\n3. c\n-\n***"], "these interrupt no paragraph");
  assert.deepEqual(kinds("$$\na\n\n= b\n$$\nC"), ["text $$\na\n\n= b\n$$\nC"]);
});

test("a text has the same blocks in whatever pieces it comes, and no character is lost", () => {
  const marks = ["word ", "- ", "1. ", "2) ", "\n", "\n\n", "   ", "```", "~~~", "js", "|a|b|\n|-|-|\n", "|1|2|\n", "> ", "# ", "$$", "\\[", "---", "***", "\t", "\r\n", "x\n"];
  let seed = 7;
  const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65536 % n;
  for (let run = 0; run < 4000; run++) {
    const text = Array.from({ length: 1 + random(30) }, () => marks[random(marks.length)]).join("");
    const whole = blocksOf(text);
    const ends = Array.from({ length: random(6) }, () => random(text.length + 1)).sort((a, b) => a - b);
    assert.deepEqual(blocksOf(text, ends), whole, JSON.stringify([text, ends]));
    const bare = (t) => t.replace(/\s/g, "");
    assert.equal(bare(whole.map(([, source]) => source).join("")), bare(text), JSON.stringify(text));
  }
});

test("long blocks are cut, and long texts are read in linear time", () => {
  const begun = performance.now();
  const word = "a".repeat(100_000);
  assert.ok(blocksOf(word).every(([, source]) => source.length <= 6_000));
  const item = `- a\n${"\n  - b b b b b\n".repeat(2000)}`;
  assert.ok(blocksOf(item).every(([, source]) => source.length <= 6_000));
  for (const text of ["```\n", "> ", "- ", "|a|b|\n|-|-|\n", "$$\n", "1. x\n\n", "\n"]) blocksOf(text.repeat(50_000));
  assert.ok(performance.now() - begun < 5000, `${performance.now() - begun} ms`);
});
