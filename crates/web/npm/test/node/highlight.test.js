// Colours of code: no character is lost, and no code takes long.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Highlighter } from "../../../../server/page/highlight.js";

const lines = (language, text) => {
  const highlighter = new Highlighter(language);
  return text.split("\n").map((line) => highlighter.line(line));
};

test("comments and strings go over lines", () => {
  assert.deepEqual(lines("rust", "let x = 1; // a\n/* b\nc */ fn"), [
    [["keyword", "let"], ["", " x = "], ["number", "1"], ["", "; "], ["comment", "// a"]],
    [["comment", "/* b"]],
    [["comment", "c */"], ["", " "], ["keyword", "fn"]],
  ]);
  assert.deepEqual(lines("Python", 'x = """a\nb""" # c'), [[["", "x = "], ["string", '"""a']], [["string", 'b"""'], ["", " "], ["comment", "# c"]]]);
  assert.deepEqual(lines("json", '{"a": "b"}'), [[["", "{"], ["type", '"a"'], ["", ": "], ["string", '"b"'], ["", "}"]]]);
  assert.deepEqual(lines("__proto__", "let x"), [[["", "let x"]]]);
  const highlighter = new Highlighter("js");
  highlighter.peek("/* a");
  assert.deepEqual(highlighter.line("if"), [["keyword", "if"]], "a look changes nothing");
});

test("every character stays, and lines take linear time", () => {
  const marks = ["/*", "*/", "//", "`", '"', "'", "\\", "#", "$x", "@", "0x1f", "1e9", "if", "(", "é", "😀", " ", "<div>", "-", "--", "{-", "\n"];
  let seed = 3;
  const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65536 % n;
  for (let run = 0; run < 3000; run++) {
    const text = Array.from({ length: 1 + random(40) }, () => marks[random(marks.length)]).join("");
    for (const language of ["js", "py", "rs", "sh", "sql", "yaml", "css", "html", "hs", "diff", "none"]) {
      assert.equal(lines(language, text).map((pieces) => pieces.map(([, piece]) => piece).join("")).join("\n"), text, language);
    }
  }
  const begun = performance.now();
  for (const text of ["a".repeat(1999), '"'.repeat(1999), "1".repeat(1999), "\\".repeat(1999), "a(".repeat(999), "😀".repeat(999)]) {
    for (const language of ["js", "py", "yaml", "html"]) for (let i = 0; i < 20; i++) lines(language, text);
  }
  assert.ok(performance.now() - begun < 3000, `${performance.now() - begun} ms`);
});
