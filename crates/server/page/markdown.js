// Markdown as elements: no text ever becomes HTML, and nothing is loaded from elsewhere.

const make = (tag, children = [], properties) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const row = (tag, cells) => make("tr", cells.map(({ tokens, align }) => make(tag, elements(tokens), align && { align })));

/** A link opens beside the conversation. What is no web address, a script for one, stays the text it is. */
function link({ href, title, raw }, label) {
  if (!/^https?:\/\/[^\s<>"]+$/.test(href)) return [raw];
  return [make("a", label, { href, rel: "noreferrer noopener", target: "_blank", ...(title && { title }) })];
}

/** Renderers of marked's kinds of tokens. Other kinds, such as HTML, are shown as source. */
const KINDS = {
  space: () => [],
  // The page has headings of its own.
  heading: ({ depth, tokens }) => [make(`h${Math.min(6, depth + 2)}`, elements(tokens))],
  paragraph: ({ tokens }) => [make("p", elements(tokens))],
  blockquote: ({ tokens }) => [make("blockquote", elements(tokens))],
  hr: () => [make("hr")],
  code: ({ text, lang }) => [make("pre", [make("code", [text])], lang && { title: lang })],
  list: ({ ordered, start, items }) => {
    const all = items.map(({ tokens }) => make("li", elements(tokens)));
    return [ordered ? make("ol", all, { start }) : make("ul", all)];
  },
  checkbox: ({ checked }) => [checked ? "☑ " : "☐ "],
  table: ({ header, rows }) => [
    make("table", [make("thead", [row("th", header)]), make("tbody", rows.map((cells) => row("td", cells)))]),
  ],
  strong: ({ tokens }) => [make("strong", elements(tokens))],
  em: ({ tokens }) => [make("em", elements(tokens))],
  del: ({ tokens }) => [make("del", elements(tokens))],
  codespan: ({ text }) => [make("code", [text])],
  br: () => [make("br")],
  escape: ({ text }) => [text],
  text: ({ text, tokens }) => (tokens ? elements(tokens) : [text]),
  link: (token) => link(token, elements(token.tokens)),
  // Whoever asks for a picture hears who reads this, so it is a link.
  image: (token) => link(token, [token.text || token.href]),
};

/** Nodes for a text's tokens, as marked's lexer makes them. */
export const elements = (tokens) => tokens.flatMap((token) => KINDS[token.type]?.(token) ?? [token.raw]);
