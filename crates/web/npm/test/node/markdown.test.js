// The chat page's Markdown, in a document that takes elements and texts and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";
import { lexer } from "../../../../server/page/marked.js";
import { elements } from "../../../../server/page/markdown.js";

const TAGS = "p pre code strong em del a br hr ul ol li blockquote table thead tbody tr th td h3 h4 h5 h6".split(" ");
const PROPERTIES = ["tag", "children", "href", "title", "rel", "target", "start", "align"];

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
};

const markdown = (text) => elements(lexer(text));

/** The text of a node, addresses and titles among it; fails where there is more than elements, texts and web addresses. */
function textOf(node) {
  if (typeof node === "string") return node;
  assert.ok(node instanceof Element);
  assert.deepEqual(Object.keys(node).filter((key) => !PROPERTIES.includes(key)), []);
  if (node.href !== undefined) assert.match(node.href, /^https?:\/\/[^\s<>"]+$/);
  return node.children.map(textOf).join("") + (node.href ?? "") + (node.title ?? "");
}

/** A node as `tag(children)`. */
const shape = (node) => (typeof node === "string" ? node : `${node.tag}(${node.children.map(shape).join(",")})`);
const shapes = (text) => markdown(text).map(shape);

test("what answers are made of", () => {
  assert.deepEqual(shapes("# Inti\n\nThe **sun** of the *Inca*, ~~or~~ so."), [
    "h3(Inti)", "p(The ,strong(sun), of the ,em(Inca),, ,del(or), so.)",
  ]);
  assert.deepEqual(shapes("- a\n  1. b\n  2. c\n- [x] d"), ["ul(li(a,ol(li(b),li(c))),li(☑ ,d))"]);
  assert.deepEqual(shapes("> a\n> - b\n\n---"), ["blockquote(p(a),ul(li(b)))", "hr()"]);
  assert.deepEqual(shapes("| a | b |\n| - | -: |\n| `1` | 2 |"), [
    "table(thead(tr(th(a),th(b))),tbody(tr(td(code(1)),td(2))))",
  ]);
  assert.deepEqual(shapes("```js\nx\n``` \nafter\n\n~~~\ny"), ["pre(code(x))", "p(after)", "pre(code(y))"]);
  assert.deepEqual(shapes("- ```\n  x\n  ```"), ["ul(li(pre(code(x))))"]);
  assert.deepEqual(shapes("`` a`b `` and `` `x` ``"), ["p(code(a`b), and ,code(`x`))"]);
  assert.equal(markdown("3) a\n4) b")[0].start, 3);
});

test("links are to the web, and pictures are links", () => {
  const links = (text) => markdown(text)[0].children.filter((c) => c.tag === "a").map((a) => [a.children.join(""), a.href]);
  assert.deepEqual(links("See [the Inca\nroad](https://h.org) now, or https://i.org."), [
    ["the Inca\nroad", "https://h.org"], ["https://i.org", "https://i.org"],
  ]);
  assert.deepEqual(links("![a road](https://h.org/r.png)"), [["a road", "https://h.org/r.png"]]);
  assert.deepEqual(shapes("[x](javascript:alert(1)) ![y](data:text/html,z) <b onclick=z>"), [
    "p([x](javascript:alert(1)), ,![y](data:text/html,z), ,<b onclick=z>)",
  ]);
});

// Of tables alone words may be lost: cells that no column has.
test("no text throws, none becomes markup, and no word of it is lost", () => {
  const marks = ["*", "**", "`", "```", "~~~", "[", "]", "(", ")", "](", "https://", "http://a.b/c", "#", "## ", "- ", "1. ", "> ", "\n", "\n\n", " ", "    ", "<", ">", "<b>", "&lt;", '"', "\\", "$&", "javascript:", "\u0000", "\ud800", "word", "Inti"];
  let seed = 1;
  const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65536 % n;
  for (let run = 0; run < 20_000; run++) {
    const text = Array.from({ length: 1 + random(24) }, () => marks[random(marks.length)]).join("");
    const out = markdown(text).map(textOf).join("");
    const words = (t) => t.match(/word|Inti/g)?.length ?? 0;
    assert.ok(words(out) >= words(text), JSON.stringify(text));
  }
});
