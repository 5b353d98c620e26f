// Markdown as elements: no text ever becomes HTML, and nothing is loaded from elsewhere.

import { make, icon } from "./dom.js";
import { Highlighter } from "./highlight.js";
import { Lexer, Marked } from "./marked.js";
import { math } from "./math.js";

/** Deeper nesting is shown as source. */
const DEPTH = 20;
/** A line that opens more containers than that, one in the other, or lies deep in some. */
const DEEP = /^(?:[ \t]{80,}(?:[-*+>]|\d{1,9}[.)])[ \t]|(?:[ \t]*(?:>|[-*+](?=[ \t>])|\d{1,9}[.)](?=[ \t>]))){21})/m;
/** Definitions of links that a text may have. */
const LINKS = 200;

/** The end of math that begins with `open` at the start of a text, whose end is `close`. */
function delimited(src, open, close) {
  if (!src.startsWith(open)) return undefined;
  const end = src.indexOf(close, open.length);
  const text = src.slice(open.length, end);
  if (end < 0 || text.trim() === "" || /\n[ \t]*\n/.test(text)) return undefined;
  return { type: "math", raw: src.slice(0, end + close.length), text: text.trim(), display: close !== "\\)" };
}

/** Between single dollars there is math only if no blank is inside of them and no digit behind: prices are none. */
function dollars(src) {
  const found = /^\$(?![\s$])((?:\\[^\n]|[^$\n\\]){1,400})\$(?!\d)/.exec(src);
  return found && !/\s$/.test(found[1]) ? { type: "math", raw: found[0], text: found[1], display: false } : undefined;
}

const marked = new Marked({
  extensions: [
    {
      name: "math",
      level: "inline",
      start: (src) => /\$|\\[([]/.exec(src)?.index,
      tokenizer: (src) => delimited(src, "$$", "$$") ?? delimited(src, "\\(", "\\)") ?? delimited(src, "\\[", "\\]") ?? dollars(src),
    },
    {
      name: "mathBlock",
      level: "block",
      tokenizer(src) {
        const found = delimited(src, "$$", "$$") ?? delimited(src, "\\[", "\\]");
        // Text behind it in its line makes it a part of a paragraph.
        return found && /^[ \t]*(?:\n|$)/.test(src.slice(found.raw.length)) ? { ...found, type: "mathBlock" } : undefined;
      },
    },
  ],
});

/** Tokens of a text; `links` has the definitions of links, and gets those of this text. */
export function lexer(text, links = {}) {
  const lex = new Lexer(marked.defaults);
  Object.assign(lex.tokens.links, links);
  const tokens = lex.lex(text);
  for (const [name, link] of Object.entries(tokens.links)) if (Object.keys(links).length < LINKS) links[name] = link;
  return tokens;
}

/** True for a text that Markdown may not be asked to read: its recursion has no bound. */
export const isDeep = (text) => DEEP.test(text);

const auto = { dir: "auto" };

/**
 * Direction of a text's first letter that has one, for elements whose children have directions of their own: browsers would
 * look for such a letter through all of them at each change.
 */
export const directionOf = (text) => (/\p{L}/u.exec(text)?.[0].match(/[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u) ? "rtl" : "ltr");

/** Code with what stands behind its fence, its language first, and a button that copies it. */
export function codeBlock(info, text) {
  const code = make("code");
  const highlighter = new Highlighter(languageOf(info));
  const lines = new Lines(code);
  for (const line of text?.split("\n") ?? []) lines.add(highlighter.line(line));
  const copy = make("button", { type: "button", className: "copy", ariaLabel: "Copy the code", title: "Copy the code" }, icon("copy"));
  const head = make("figcaption", {}, make("span", { textContent: info.trim() || "text" }), copy);
  return { figure: make("figure", { className: "code" }, head, make("pre", { tabIndex: 0, dir: "ltr" }, code)), lines, highlighter };
}

/** Lines that are laid out together: a browser lays out all of a paragraph anew when something comes to it. */
const TOGETHER = 24;

/** The lines of code, in groups; those behind the ones that are kept can be dropped. */
class Lines {
  #code;
  #n = 0;
  #kept = 0;
  #group = null;
  #last = null;

  constructor(code) {
    this.#code = code;
  }

  add(pieces) {
    if (this.#n % TOGETHER === 0) this.#code.append((this.#group = make("span", { className: "lines" })));
    const line = make("span");
    // The break belongs to the line before, so that a group ends with it.
    if (this.#n > 0) this.#last.append("\n");
    for (const [kind, text] of pieces) line.append(kind ? make("span", { className: `c-${kind}`, textContent: text }) : text);
    this.#group.append(line);
    this.#last = line;
    this.#n++;
  }

  keep() {
    this.#kept = this.#n;
  }

  drop() {
    while (this.#n > this.#kept) {
      this.#last.remove();
      if (!this.#group.firstChild) this.#group.remove();
      this.#n--;
      this.#group = this.#code.lastChild;
      this.#last = this.#group?.lastChild ?? null;
      this.#last?.lastChild.remove();
    }
  }
}

/** The name of a language in what stands behind a fence. */
const languageOf = (info) => /^[\w+#.-]{1,20}/.exec(info.trim())?.[0] ?? "";

export const row = (tag, cells, depth = 0) =>
  make("tr", {}, ...cells.map(({ tokens, align }) => make(tag, { ...auto, className: align ? `to-${align}` : undefined }, ...elements(tokens, depth + 1))));

export function table({ header, rows }) {
  const [head, body] = [make("thead", {}, row("th", header)), make("tbody", {}, ...rows.map((cells) => row("td", cells)))];
  return { frame: make("div", { className: "table", tabIndex: 0, role: "region", "aria-label": "Table" }, make("div", { className: "rows" }, make("table", {}, head, body))), body };
}

/** A link opens beside the conversation. What is no web address, a script for one, stays the text it is. */
function link({ href, title, raw }, label) {
  if (!/^https?:\/\/[^\s<>"]+$/.test(href)) return [raw];
  return [make("a", { href, rel: "noreferrer noopener", target: "_blank", title: title || href }, ...label)];
}

export const item = ({ tokens }, depth = 0) => make("li", auto, ...elements(tokens, depth + 1));

/** Renderers of marked's kinds of tokens. Other kinds, such as HTML, are shown as source. */
const KINDS = {
  space: () => [],
  def: () => [],
  // The page has headings of its own.
  heading: ({ depth, tokens }, deep) => [make(`h${Math.min(6, depth + 2)}`, auto, ...elements(tokens, deep))],
  paragraph: ({ tokens }, deep) => [make("p", auto, ...elements(tokens, deep))],
  blockquote: ({ tokens, text }, deep) => [make("blockquote", { dir: directionOf(text) }, ...elements(tokens, deep))],
  hr: () => [make("hr")],
  code: ({ text, lang }) => [codeBlock(lang ?? "", text).figure],
  list: ({ ordered, start, items, raw }, deep) => {
    const dir = directionOf(raw);
    const all = items.map((one) => item(one, deep));
    return [ordered ? make("ol", { dir, start: start === "" ? 1 : start }, ...all) : make("ul", { dir }, ...all)];
  },
  checkbox: ({ checked }) => [checked ? "☑ " : "☐ "],
  table: (token) => [table(token).frame],
  strong: ({ tokens }, deep) => [make("strong", {}, ...elements(tokens, deep))],
  em: ({ tokens }, deep) => [make("em", {}, ...elements(tokens, deep))],
  del: ({ tokens }, deep) => [make("del", {}, ...elements(tokens, deep))],
  codespan: ({ text }) => [make("code", { dir: "ltr" }, text)],
  br: () => [make("br")],
  escape: ({ text }) => [text],
  text: ({ text, tokens }, deep) => (tokens ? elements(tokens, deep) : [text]),
  link: (token, deep) => link(token, elements(token.tokens, deep)),
  // Whoever asks for a picture hears who reads this, so it is a link.
  image: (token) => link(token, [token.text || token.href]),
  math: ({ raw, text, display }) => [math(text, raw, display)],
  mathBlock: ({ raw, text }) => [make("p", {}, math(text, raw, true))],
};

/** Nodes and texts for tokens, as the lexer makes them. */
export function elements(tokens, depth = 0) {
  return tokens.flatMap((token) => {
    if (depth > DEPTH) return [token.raw];
    return (Object.hasOwn(KINDS, token.type) && KINDS[token.type](token, depth + 1)) || [token.raw];
  });
}
