// The part of Markdown that answers use, as elements: no text ever becomes HTML.

const make = (tag, ...children) => {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
};

/** Elements for a text that may still grow. */
export function markdown(text) {
  const out = document.createDocumentFragment();
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; ) {
    const line = lines[i];
    if (line.startsWith("```")) {
      const end = lines.findIndex((other, j) => j > i && other.trimEnd() === "```");
      const code = lines.slice(i + 1, end < 0 ? undefined : end).join("\n");
      out.append(make("pre", make("code", code)));
      i = end < 0 ? lines.length : end + 1;
    } else if (/^#{1,6} /.test(line)) {
      out.append(make(`h${Math.min(6, line.indexOf(" ") + 2)}`, ...inline(line.replace(/^#+ /, ""))));
      i++;
    } else if (ITEM.test(line)) {
      const number = /^\s*(\d+)/.exec(line)?.[1];
      const list = make(number ? "ol" : "ul");
      if (number) list.start = Number(number);
      for (; i < lines.length && ITEM.test(lines[i]); i++) list.append(make("li", ...inline(lines[i].replace(ITEM, ""))));
      out.append(list);
    } else if (line.trim() === "") {
      i++;
    } else {
      let end = i + 1;
      while (end < lines.length && lines[end].trim() !== "" && !/^(```|#{1,6} )/.test(lines[end]) && !ITEM.test(lines[end])) end++;
      out.append(make("p", ...inline(lines.slice(i, end).join("\n"))));
      i = end;
    }
  }
  return out;
}

const ITEM = /^\s*(?:[-*]|\d+[.)]) /;
const MARKS = /(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|\[[^\]]+\]\(https?:\/\/[^\s)]+\))/;

function inline(text) {
  return text.split(MARKS).map((part, i) => {
    if (i % 2 === 0) return part;
    if (part.startsWith("`")) return make("code", part.slice(1, -1));
    if (part.startsWith("**")) return make("strong", part.slice(2, -2));
    if (part.startsWith("*")) return make("em", part.slice(1, -1));
    const cut = part.lastIndexOf("](");
    const href = part.slice(cut + 2, -1);
    return Object.assign(make("a", part.slice(1, cut)), { href, rel: "noreferrer noopener", target: "_blank" });
  });
}
