// The part of Markdown that answers use, as elements: no text ever becomes HTML.

const make = (tag, ...children) => {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
};

/** Elements for a text that may still grow. */
export function markdown(text) {
  const out = document.createDocumentFragment();
  const lines = text.split(/\r\n?|\n/);
  for (let i = 0; i < lines.length; ) {
    const line = lines[i];
    const fence = FENCE.exec(line);
    if (fence) {
      const [, { length: indent }, { length: ticks }] = fence;
      let end = i + 1;
      while (end < lines.length && !closes(lines[end], indent, ticks)) end++;
      const code = lines.slice(i + 1, end).map((other) => other.slice(Math.min(indent, blanks(other))));
      const pre = make("pre", make("code", code.join("\n")));
      out.append(ITEM.test(line) ? listOf(line, make("li", pre)) : pre);
      i = end + 1;
    } else if (HEADING.test(line)) {
      out.append(make(`h${Math.min(6, line.indexOf(" ") + 2)}`, ...inline(line.replace(/^#+ /, ""))));
      i++;
    } else if (ITEM.test(line)) {
      const list = listOf(line);
      for (; i < lines.length && ITEM.test(lines[i]) && !FENCE.test(lines[i]); i++) list.append(make("li", ...inline(lines[i].replace(ITEM, ""))));
      out.append(list);
    } else if (line.trim() === "") {
      i++;
    } else {
      let end = i + 1;
      while (end < lines.length && lines[end].trim() !== "" && ![FENCE, HEADING, ITEM].some((other) => other.test(lines[end]))) end++;
      out.append(make("p", ...inline(lines.slice(i, end).join("\n"))));
      i = end;
    }
  }
  return out;
}

// What begins a line. Code may begin in a list's item; what follows its backticks has none. Longer numbers do not fit in a list.
const FENCE = /^((?:\s*(?:[-*]|\d{1,9}[.)]) )?\s*)(`{3,})[^`]*$/;
const HEADING = /^#{1,6} /;
const ITEM = /^\s*(?:[-*]|\d{1,9}[.)]) /;
const MARKS = /(```[^`]+```|``(?:[^`]|`(?!`))+``|`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|\[[^\]]+\]\(https?:\/\/[^\s)]+\))/;

/** How many blanks a line begins with. */
const blanks = (line) => line.search(/\S|$/);

/** Whether a line ends code: by as many backticks as began it or more, and not as a line of the code that has them. */
function closes(line, indent, ticks) {
  const found = line.trim();
  return found.length >= ticks && /^`+$/.test(found) && blanks(line) < indent + 4;
}

/** The list that a line begins. */
function listOf(line, ...items) {
  const number = /^\s*(\d+)/.exec(line)?.[1];
  const list = make(number ? "ol" : "ul", ...items);
  if (number) list.start = Number(number);
  return list;
}

function inline(text) {
  return text.split(MARKS).map((part, i) => {
    if (i % 2 === 0) return part;
    // Two backticks may hold one; a blank on either side then parts them.
    if (part.startsWith("`")) return make("code", part.replace(/^(`+)( ?)([^]+)\2\1$/, "$3"));
    if (part.startsWith("**")) return make("strong", part.slice(2, -2));
    if (part.startsWith("*")) return make("em", part.slice(1, -1));
    const cut = part.lastIndexOf("](");
    const href = part.slice(cut + 2, -1);
    return Object.assign(make("a", part.slice(1, cut)), { href, rel: "noreferrer noopener", target: "_blank" });
  });
}
