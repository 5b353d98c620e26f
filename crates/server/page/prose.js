// An answer's text as elements that grow with it: what has ended is not touched again, code and tables grow by lines.

import { Blocks } from "./blocks.js";
import { patch } from "./dom.js";
import { codeBlock, directionOf, elements, isDeep, item, lexer, row, table } from "./markdown.js";

/** Rows of a table, and items of a list, that are laid out together: a browser lays out all of it anew for each that comes to it. */
const ROWS = 40;

const nodeOf = (node) => (typeof node === "string" ? document.createTextNode(node) : node);

/** A text as it is. */
function plain(text) {
  const element = document.createElement("p");
  element.className = "plain";
  element.append(text);
  return [element];
}

/** Changes the children of a paragraph from `parts`, as this function gives them, into what the tokens are. */
function grown(paragraph, tokens, parts) {
  let [at, same] = [0, 0];
  while (same < tokens.length && tokens[same].raw === parts[same]?.raw && tokens[same].type === parts[same].type) at += parts[same++].n;
  const rest = tokens.slice(same).map((token) => ({ raw: token.raw, type: token.type, nodes: elements([token]).map(nodeOf) }));
  patch(paragraph, rest.flatMap(({ nodes }) => nodes), at);
  return [...parts.slice(0, same), ...rest.map(({ raw, type, nodes }) => ({ raw, type, n: nodes.length }))];
}

/** The nodes that `f` makes, or the text as it is: no text of a model's may stop the page. */
function safely(text, f) {
  try {
    return isDeep(text) ? plain(text) : f().map(nodeOf);
  } catch {
    return plain(text);
  }
}

export class Prose {
  #root;
  #blocks;
  #links = {};
  #known = this.#links;
  /** The text, once it is whole. */
  #done = null;
  /** Children of the root that will not change. */
  #fixed;
  /** The list at the end: `{ element, fixed, marker, ordered, inner }`, the code, and the table that grows. */
  #list;
  #code;
  #table;
  /** The text that grows: its tokens' sources, and how many nodes each is. */
  #shown = null;

  constructor(root) {
    this.#root = root;
    this.#reset();
  }

  #reset() {
    this.#blocks = new Blocks();
    this.#fixed = 0;
    this.#list = this.#code = this.#table = this.#shown = null;
    this.#done = null;
  }

  /** Shows a text, of which more may come unless it is done. */
  show(text, isDone = true) {
    if (this.#done !== null) {
      if (isDone && this.#done === text) return;
      this.#root.replaceChildren();
      this.#reset();
    }
    if (!text.startsWith(this.#blocks.text)) this.#reset();
    const ended = (block) => this.#put(block, true);
    const open = this.#blocks.read(text, ended);
    if (!isDone) {
      if (open) this.#put(open, false);
      else this.#clear();
      return;
    }
    this.#blocks.finish(ended);
    // Links may be defined after they are used: then all is read once more.
    if (Object.keys(this.#links).length > 0) {
      this.#reset();
      this.#blocks.read(text, ended);
      this.#blocks.finish(ended);
    }
    this.#clear();
    this.#done = text;
  }

  /** Removes what was shown of a block that came to nothing. */
  #clear() {
    this.#shown = null;
    const n = this.#fixed + (this.#list ? 1 : 0);
    while (this.#root.childNodes.length > n) this.#root.lastChild.remove();
  }

  #endList() {
    if (this.#list) this.#fixed++;
    this.#list = null;
  }

  #put(block, isFinal) {
    if (block.kind !== "text") this.#shown = null;
    // A definition that still grows is none yet.
    this.#known = isFinal ? this.#links : { ...this.#links };
    if (block.kind !== "item" && this.#list) this.#endList();
    if (block.kind === "item") this.#item(block, isFinal);
    else if (block.kind === "fence") this.#fence(block, isFinal);
    else if (block.kind === "table") this.#rows(block, isFinal);
    else this.#text(block.source, isFinal);
  }

  #lex = (text) => lexer(text, this.#known);

  #text(source, isFinal) {
    const before = this.#shown;
    this.#shown = null;
    let n;
    try {
      if (isDeep(source)) throw new RangeError("too deep");
      const shown = this.#update(this.#lex(source), before ?? []);
      n = shown.reduce((sum, one) => sum + one.n, 0);
      if (!isFinal) this.#shown = shown;
    } catch {
      const nodes = plain(source);
      n = nodes.length;
      patch(this.#root, nodes, this.#fixed);
    }
    if (isFinal) this.#fixed += n;
  }

  /**
   * Shows tokens in place of those that are shown: only what is new is made, down to the parts of a paragraph. Gives for
   * each token its source, and how many nodes it is.
   */
  #update(tokens, before) {
    let [at, same] = [this.#fixed, 0];
    while (same < tokens.length && tokens[same].raw === before[same]?.raw) at += before[same++].n;
    const out = before.slice(0, same);
    const [next, old] = [tokens[same], before[same]];
    if (next?.type === "paragraph" && old?.parts && this.#root.childNodes[at]?.nodeName === "P") {
      out.push({ raw: next.raw, n: 1, parts: grown(this.#root.childNodes[at], next.tokens, old.parts) });
      same++;
      at++;
    }
    const nodes = [];
    for (const token of tokens.slice(same)) {
      const own = elements([token]).map(nodeOf);
      nodes.push(...own);
      const parts = token.type === "paragraph" && own.length === 1 ? grown(own[0], token.tokens, []) : null;
      out.push({ raw: token.raw, n: own.length, parts });
    }
    patch(this.#root, nodes, at);
    return out;
  }

  #item(block, isFinal) {
    if (block.continued && this.#list) return this.#goOn(block, isFinal);
    const { source, marker, ordered } = block;
    let [tokens, failed] = [null, isDeep(source)];
    try {
      tokens = failed ? null : this.#lex(source);
    } catch {
      failed = true;
    }
    const first = tokens?.[0];
    if (failed || first?.type !== "list") {
      this.#endList();
      return this.#text(source, isFinal);
    }
    if (this.#list && (this.#list.marker !== marker || this.#list.ordered !== ordered)) this.#endList();
    const isLong = this.#list?.fixed >= ROWS;
    if (isLong) this.#endList();
    if (!this.#list) {
      const element = document.createElement(ordered ? "ol" : "ul");
      element.dir = directionOf(source);
      if (isLong) element.className = "continued";
      if (ordered) element.start = first.start === "" ? 1 : first.start;
      patch(this.#root, [element], this.#fixed);
      this.#list = { element: this.#root.childNodes[this.#fixed], fixed: 0, marker, ordered };
    }
    const list = this.#list;
    const items = safely(source, () => first.items.map((one) => item(one)));
    const n = items.length;
    patch(list.element, items, list.fixed);
    const rest = safely(source, () => elements(tokens.slice(1)));
    const nRest = rest.length;
    patch(this.#root, rest, this.#fixed + 1);
    if (!isFinal) return;
    list.fixed += n;
    list.inner = list.element.lastChild?.childNodes.length ?? 0;
    if (nRest > 0) {
      this.#endList();
      this.#fixed += nRest;
    }
  }

  /** The rest of an item that was cut for its length. */
  #goOn({ source, indent }, isFinal) {
    const own = source.replace(new RegExp(`^ {1,${indent}}`, "gm"), "");
    const list = this.#list;
    const at = list.element.lastChild;
    const nodes = safely(own, () => elements(this.#lex(own)));
    patch(at, nodes, list.inner);
    if (isFinal) list.inner = at.childNodes.length;
  }

  #fence(block, isFinal) {
    if (this.#code?.begin !== block.begin) {
      const made = codeBlock(block.info);
      this.#clear();
      this.#root.append(made.figure);
      this.#code = { ...made, begin: block.begin, at: block.from - block.begin };
    }
    const code = this.#code;
    const { source } = block;
    const indent = new RegExp(`^ {0,${block.indent}}`);
    const isEnd = (line) => new RegExp(`^ {0,3}\\${block.mark}{${isFinal ? block.n : 1},}[ \\t]*\\r?$`).test(line);
    code.lines.drop();
    const put = (line, pieces) => code.lines.add(pieces(line.replace(/\r$/, "").replace(indent, "")));
    for (let end = source.indexOf("\n", code.at); end >= 0; end = source.indexOf("\n", code.at)) {
      const line = source.slice(code.at, end);
      const isLast = isFinal && end === source.length - 1;
      code.at = end + 1;
      if (!(isLast && isEnd(line))) put(line, (text) => code.highlighter.line(text));
    }
    code.lines.keep();
    const rest = source.slice(code.at);
    if (rest !== "" && !isEnd(rest)) put(rest, (text) => code.highlighter.peek(text));
    if (!isFinal) return;
    this.#code = null;
    this.#fixed++;
  }

  #rows(block, isFinal) {
    const { source, begin, from } = block;
    if (this.#table?.begin !== begin) {
      const head = source.slice(0, from - begin).trimEnd();
      const token = safelyToken(() => this.#lex(head)[0]);
      this.#clear();
      if (token?.type !== "table") {
        this.#table = null;
        return this.#text(source, isFinal);
      }
      const made = table(token);
      this.#root.append(made.frame);
      this.#table = { ...made, begin, head, at: from - begin, n: 0 };
    }
    const made = this.#table;
    while (made.body.childNodes.length > made.n) made.body.lastChild.remove();
    const put = (line) => {
      if (line.trim() === "") return;
      const token = safelyToken(() => this.#lex(`${made.head}\n${line}`)[0]);
      for (const cells of token?.rows ?? []) made.body.append(row("td", cells));
    };
    for (let end = source.indexOf("\n", made.at); end >= 0; end = source.indexOf("\n", made.at)) {
      put(source.slice(made.at, end));
      made.at = end + 1;
      if (made.body.childNodes.length >= ROWS) made.body = continued(made.frame);
    }
    made.n = made.body.childNodes.length;
    put(source.slice(made.at));
    if (!isFinal) return;
    this.#table = null;
    this.#fixed++;
  }
}

/** The body of a further table below one that is long, with the same columns. */
function continued(frame) {
  const first = frame.firstChild.firstChild;
  const columns = document.createElement("colgroup");
  const whole = first.offsetWidth;
  for (const cell of first.rows[0].cells) {
    const column = document.createElement("col");
    if (whole > 0) column.style.width = `${(100 * cell.offsetWidth) / whole}%`;
    columns.append(column);
  }
  const [rows, table, body] = ["div", "table", "tbody"].map((tag) => document.createElement(tag));
  rows.className = "rows";
  table.append(columns, body);
  rows.append(table);
  frame.append(rows);
  return body;
}

function safelyToken(f) {
  try {
    return f();
  } catch {
    return null;
  }
}
