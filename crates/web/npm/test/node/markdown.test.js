// The chat page's Markdown, in a document that takes elements and texts and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";
import { elements, isDeep, lexer } from "../../../../server/page/markdown.js";

const TAGS = "p pre code strong em del a br hr ul ol li blockquote table thead tbody tr th td h3 h4 h5 h6 figure figcaption span button div".split(" ");
const PROPERTIES = ["tag", "children", "href", "title", "rel", "target", "start", "className", "dir", "tabIndex", "type", "ariaLabel", "dataset", "attributes", "textContent"];

class Element {
  children = [];
  dataset = {};
  attributes = {};
  constructor(tag) {
    this.tag = tag;
  }
  append(...children) {
    this.children.push(...children);
  }
  setAttribute(name, value) {
    assert.match(name, /^(aria-[a-z]+|role)$/);
    this.attributes[name] = value;
  }
}

const icon = { cloneNode: () => ({ icon: true, firstElementChild: { setAttribute() {} } }) };

globalThis.document = {
  createElement(tag) {
    assert.ok(TAGS.includes(tag), tag);
    return new Element(tag);
  },
  // KaTeX finds no page here.
  querySelectorAll: () => [],
  getElementById: () => ({ content: { firstElementChild: icon } }),
};

const markdown = (text) => (isDeep(text) ? [text] : elements(lexer(text)));

/** The text of a node, addresses and titles among it; fails where there is more than elements, texts and web addresses. */
function textOf(node) {
  if (typeof node === "string") return node;
  if (node.icon) return "";
  assert.ok(node instanceof Element);
  assert.deepEqual(Object.keys(node).filter((key) => !PROPERTIES.includes(key)), []);
  if (node.href !== undefined) assert.match(node.href, /^https?:\/\/[^\s<>"]+$/);
  return (node.textContent ?? "") + node.children.map(textOf).join("") + (node.href ?? "") + (node.title ?? "");
}

/** A node as `tag(children)`. */
function shape(node) {
  if (typeof node === "string") return node;
  if (node.tag === "figure") return `code(${textOf(node.children[1])})`;
  if (node.tag === "div") return node.children.map(shape).join(",");
  return `${node.tag}(${node.children.map(shape).join(",")})`;
}
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
  assert.deepEqual(shapes("```js\nx\n``` \nafter\n\n~~~\ny"), ["code(x)", "p(after)", "code(y)"]);
  assert.deepEqual(shapes("- ```\n  x\n  ```"), ["ul(li(code(x)))"]);
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

test("math is found between its delimiters, and prices are none", () => {
  const math = (text) => elements(lexer(text)).flatMap((n) => n.children).filter((n) => n.className?.startsWith("math")).map((n) => n.children[0]);
  assert.deepEqual(math("So $x_1$ and \\(y\\), \\[z\\] too."), ["$x_1$", "\\(y\\)", "\\[z\\]"]);
  assert.deepEqual(math("It costs $5 and $6, or $7-$8; $ x $."), []);
  assert.deepEqual(math("$$\na\n= b\n$$\n\nafter"), ["$$\na\n= b\n$$"]);
});

test("nesting has a bound: what is deeper is shown as it is written", () => {
  const deep = (open) => [...Array(400).keys()].map((i) => `${"  ".repeat(i)}${open} a`).join("\n");
  for (const text of [">".repeat(2000), "> ".repeat(2000), "- ".repeat(2000), "1. ".repeat(2000), deep("-"), `${"*a ".repeat(2000)}`, "[".repeat(4000), `${"**a *b ".repeat(500)}`, "![".repeat(2000), "<".repeat(4000), "`".repeat(3999), "$a".repeat(2000), "\\(".repeat(2000), "~~a ".repeat(1000), "|".repeat(3000)]) {
    const begun = performance.now();
    assert.ok(textOf(new Element("p")) === "" && markdown(text).map(textOf).join("").length > 0);
    assert.ok(performance.now() - begun < 1500, `${text.slice(0, 12)}: ${performance.now() - begun} ms`);
  }
});

// Of tables alone words may be lost: cells that no column has.
test("no text throws, none becomes markup, and no word of it is lost", () => {
  const marks = ["*", "**", "`", "```", "~~~", "[", "]", "(", ")", "](", "https://", "http://a.b/c", "#", "## ", "- ", "1. ", "> ", "\n", "\n\n", " ", "    ", "<", ">", "<b>", "&lt;", '"', "\\", "$&", "javascript:", "\u0000", "\ud800", "word", "Inti", "$", "$$", "\\(", "\\)", "\\["];
  let seed = 1;
  const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65536 % n;
  for (let run = 0; run < 20_000; run++) {
    const text = Array.from({ length: 1 + random(24) }, () => marks[random(marks.length)]).join("");
    const out = markdown(text).map(textOf).join("");
    const words = (t) => t.match(/word|Inti/g)?.length ?? 0;
    assert.ok(words(out) >= words(text), JSON.stringify(text));
  }
});
