// Blocks of a Markdown text that grows: each line is looked at once, and a block that has ended is never read again.

/** Longer blocks are cut, so that reading one again, as it grows, stays cheap. */
const LONGEST = 2500;

const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+|$)(.*)$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const STARTS = /^ {0,3}(?:#{1,6}(?:[ \t]|$)|>)/;
const MATH = /^ {0,3}(\$\$|\\\[)/;

const indentOf = (line) => /^ */.exec(line.replace(/\t/g, "    "))[0].length;
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").length;

/**
 * The kinds of blocks: `text` is anything that Markdown makes of some lines, `fence` is code (`info` behind its mark, and `from`, where
 * its first line begins), `item` is one item of a list (`marker`, `ordered`, `indent` of its contents; `continued` is the
 * rest of one that was cut), `table` has a head, a line of delimiters, and rows (`from`, where they begin).
 */
export class Blocks {
  #text = "";
  /** Where the first line begins that is not complete, or was not looked at. */
  #at = 0;
  #open = null;
  /** The last complete line: where it begins. */
  #previous = 0;
  #isBlankBefore = true;

  get text() {
    return this.#text;
  }

  /**
   * Takes the whole text so far, which goes on from the text before. Calls `ended` for each block that has ended, with its
   * source, then gives the block that is still open, if there is one.
   */
  read(text, ended) {
    this.#text = text;
    for (let end = text.indexOf("\n", this.#at); end >= 0; end = text.indexOf("\n", this.#at)) {
      const begin = this.#at;
      const line = text.slice(begin, end).replace(/\r$/, "");
      this.#at = end + 1;
      this.#line(line, begin, ended);
      this.#isBlankBefore = line.trim() === "";
      this.#previous = begin;
    }
    this.#cutLine(ended);
    // A line that begins may look like a block of its own before it is complete: it is shown as what is open goes on.
    if (!this.#open) return this.#at < text.length ? { kind: "text", source: text.slice(this.#at) } : null;
    return { ...this.#open, source: text.slice(this.#open.begin) };
  }

  /** Ends what is open. */
  finish(ended) {
    const rest = this.#text.slice(this.#at);
    if (rest !== "") {
      const begin = this.#at;
      this.#at = this.#text.length;
      this.#line(rest.replace(/\r$/, ""), begin, ended);
    }
    this.#end(this.#text.length, ended);
  }

  #end(at, ended) {
    const block = this.#open;
    this.#open = null;
    if (block && at > block.begin) ended({ ...block, source: this.#text.slice(block.begin, at) });
  }

  #begin(begin, kind, more = {}) {
    this.#open = { kind, begin, ...more };
  }

  /** A single line that is too long for one piece. */
  #cutLine(ended) {
    const block = this.#open;
    if (block?.kind === "fence" || block?.kind === "table") return;
    const begin = block?.begin ?? this.#at;
    while (this.#text.length - Math.max(begin, this.#open?.begin ?? begin) > 1.4 * LONGEST) {
      const from = this.#open?.begin ?? this.#at;
      const space = this.#text.lastIndexOf(" ", from + LONGEST);
      const cut = space > from ? space + 1 : from + LONGEST;
      // The rest of the line is no block of its own, whatever it begins with.
      if (!this.#open) this.#begin(from, "text");
      const { kind, ...more } = this.#open;
      this.#end(cut, ended);
      this.#begin(cut, kind, { ...more, begin: cut, continued: true });
      this.#at = Math.max(this.#at, cut);
    }
  }

  #line(line, begin, ended) {
    const block = this.#open;
    const isBlank = line.trim() === "";
    if (block?.kind === "fence") return this.#inFence(line, ended);
    if (block?.kind === "table") {
      if (!isBlank && !FENCE.test(line) && !STARTS.test(line) && !ITEM.test(line) && !RULE.test(line)) return;
      this.#end(begin, ended);
      return isBlank ? undefined : this.#line(line, begin, ended);
    }
    if (isBlank) return;
    if (block?.kind === "item" && this.#inItem(line, begin, ended)) return;
    if (block?.kind === "text" && this.#inText(line, begin, ended)) return;
    if (this.#open) this.#end(begin, ended);
    this.#start(line, begin);
  }

  #inFence(line, ended) {
    const { mark, n } = this.#open;
    const close = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
    if (close && close[0] === mark && close.length >= n) this.#end(this.#at, ended);
  }

  /** True if the line belongs to the item that is open. */
  #inItem(line, begin, ended) {
    const block = this.#open;
    const indent = indentOf(line);
    if (block.inner) {
      // A fence within the item, whose lines are indented like it.
      const close = /^(`{3,}|~{3,})[ \t]*$/.exec(line.trim())?.[1];
      if (close && close[0] === block.inner[0] && close.length >= block.inner.length) block.inner = null;
      if (indent >= block.indent || close) return true;
      block.inner = null;
    }
    if (indent >= block.indent) {
      const fence = FENCE.exec(line.slice(block.indent).replace(/^ */, ""));
      const isLong = begin - block.begin > LONGEST && (this.#isBlankBefore || fence || ITEM.test(line.trim()));
      if (isLong) {
        const { kind, begin: before, ...more } = block;
        this.#end(begin, ended);
        this.#begin(begin, kind, { ...more, continued: true });
      }
      if (fence) this.#open.inner = fence[2];
      return true;
    }
    // A paragraph may go on without its indent, unless another block begins.
    return !this.#isBlankBefore && !ITEM.test(line) && !FENCE.test(line) && !STARTS.test(line) && !RULE.test(line);
  }

  /** True if the line belongs to the text that is open. */
  #inText(line, begin, ended) {
    const block = this.#open;
    if (block.math) {
      const close = block.math === "$$" ? "$$" : "\\]";
      if (line.includes(close)) block.math = null;
      // Math that does not end is none.
      if (begin - block.begin < LONGEST) return true;
      block.math = null;
    }
    if (this.#isBlankBefore) return indentOf(line) >= 4 && begin - block.begin < LONGEST;
    if (begin - block.begin > LONGEST || FENCE.test(line)) return false;
    const item = ITEM.exec(line);
    if (item && !RULE.test(line) && item[4] !== "" && (!/\d/.test(item[2]) || /^1[.)]$/.test(item[2]))) return false;
    if (line.includes("-") && DELIMITERS.test(line) && this.#text.slice(block.begin, begin).trim() !== "") {
      const head = this.#text.slice(this.#previous, begin).trimEnd();
      if (head.includes("|") && line.includes("|") && !/^ {0,3}>/.test(head) && indentOf(head) < 4 && cells(head) === cells(line)) {
        this.#end(this.#previous, ended);
        this.#begin(this.#previous, "table", { from: this.#at });
        return true;
      }
    }
    return true;
  }

  #start(line, begin) {
    const fence = FENCE.exec(line);
    if (fence) {
      this.#begin(begin, "fence", { mark: fence[2][0], n: fence[2].length, indent: fence[1].length, info: fence[3], from: this.#at });
      return;
    }
    const item = RULE.test(line) ? null : ITEM.exec(line);
    if (item) {
      const [, before, marker, space, rest] = item;
      // Five spaces and more begin a line of code in the item.
      const width = rest === "" || space.length > 4 || space.includes("\t") ? 1 : space.length;
      const indent = before.length + marker.length + width;
      const inner = FENCE.exec(rest)?.[2] ?? null;
      this.#begin(begin, "item", { marker: marker.at(-1), ordered: /\d/.test(marker), indent, inner });
      return;
    }
    const math = MATH.exec(line)?.[1];
    const isOpen = math && !line.slice(line.indexOf(math) + 2).includes(math === "$$" ? "$$" : "\\]");
    this.#begin(begin, "text", isOpen ? { math } : {});
  }
}
