// The chat page's Markdown, in a document that takes elements and texts and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";

const TAGS = ["p", "pre", "code", "strong", "em", "a", "ul", "ol", "li", "h2", "h3", "h4", "h5", "h6"];
const PROPERTIES = ["tag", "children", "href", "rel", "target", "start"];

class Element {
  children = [];
  constructor(tag) {
    this.tag = tag;
  }
  append(...children) {
    this.children.push(...children);
  }
}

globalThis.document = {
  createElement(tag) {
    assert.ok(TAGS.includes(tag), tag);
    return new Element(tag);
  },
  createDocumentFragment: () => new Element("fragment"),
};
const { markdown } = await import("../../../demo/markdown.js");

/** The text of an element; fails where there is more than elements, texts and web addresses. */
function textOf(node) {
  if (typeof node === "string") return node;
  assert.ok(node instanceof Element);
  assert.deepEqual(Object.keys(node).filter((key) => !PROPERTIES.includes(key)), []);
  if (node.href !== undefined) assert.match(node.href, /^https?:\/\/[^\s<>"]*$/);
  return node.children.map(textOf).join("") + (node.href ?? "");
}

const first = (text) => markdown(text).children[0];

test("a link's label may go over two lines", () => {
  const [, link] = first("See [the Inca\nroad](https://h.org) now.").children;
  assert.deepEqual([link.tag, link.children, link.href], ["a", ["the Inca\nroad"], "https://h.org"]);
});

test("two backticks hold one", () => {
  const codes = (text) => first(text).children.filter((c) => c.tag === "code").map((c) => c.children.join(""));
  assert.deepEqual(codes("`` a`b `` and `` `x` ``, ``y``, ` z`"), ["a`b", "`x`", "y", " z"]);
});

test("a fence may end with blanks, and a list begin with any number", () => {
  assert.deepEqual(markdown("```js\nx\n``` \nafter").children.map((e) => e.tag), ["pre", "p"]);
  assert.equal(first("2. a\n3. b").start, 2);
});

test("no text throws, none becomes markup, and no word of it is lost", () => {
  const marks = ["*", "**", "`", "```", "[", "]", "(", ")", "](", "https://", "http://a.b/c", "#", "## ", "- ", "1. ", "\n", "\n\n", " ", "<", ">", "<b>", "&lt;", '"', "\\", "$&", "javascript:", "\u0000", "\ud800", "word", "Inti"];
  let seed = 1;
  const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65536 % n;
  for (let run = 0; run < 20_000; run++) {
    const text = Array.from({ length: 1 + random(24) }, () => marks[random(marks.length)]).join("");
    const out = textOf(markdown(text));
    const words = (t) => t.match(/word|Inti/g)?.length ?? 0;
    // What stands behind the marks of a fence names a language, and is not shown.
    const shown = text.replace(/^(?: *(?:[-*]|\d{1,9}[.)]) )? *`{3,}[^`\n]*$/gm, "");
    assert.ok(words(out) >= words(shown), JSON.stringify(text));
  }
});
