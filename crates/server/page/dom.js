// Elements, icons, and changes of what is on the page that leave alone what stays the same.

/** An element with properties and children; `dataset`, `aria-*`, `role` and `dir` are set as attributes. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "data") Object.assign(element.dataset, value);
    else if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** An icon of the sprite in index.html. */
export function icon(name) {
  const svg = document.getElementById("of-icon").content.firstElementChild.cloneNode(true);
  svg.firstElementChild.setAttribute("href", `#i-${name}`);
  return svg;
}

/** A button that shows an icon only; its name is its tooltip, too. */
export function iconButton(name, label, onclick, properties = {}) {
  return make("button", { type: "button", className: "icon-button", ariaLabel: label, title: label, onclick, ...properties }, icon(name));
}

const attributes = (element) => element.getAttributeNames();

function isSame(a, b) {
  if (a.nodeType !== b.nodeType || a.nodeName !== b.nodeName) return false;
  if (a.nodeType !== Node.ELEMENT_NODE) return a.nodeType === Node.TEXT_NODE;
  const names = attributes(b);
  // Details that a reader has opened stay open.
  const own = attributes(a).filter((name) => name !== "open");
  return own.length === names.filter((n) => n !== "open").length && names.every((n) => n === "open" || a.getAttribute(n) === b.getAttribute(n));
}

/**
 * Changes the children of an element from the index `from` on into `nodes`: elements that stay what they are keep their
 * identity, and with it focus, selection and what is open.
 */
export function patch(parent, nodes, from = 0) {
  nodes.forEach((node, i) => {
    const old = parent.childNodes[from + i];
    if (!old) parent.append(node);
    else if (!isSame(old, node)) old.replaceWith(node);
    else if (old.nodeType === Node.TEXT_NODE) grow(old, node.data);
    else patch(old, [...node.childNodes]);
  });
  while (parent.childNodes.length > from + nodes.length) parent.lastChild.remove();
}

/** Makes a text node's data this text; what is there already stays, and a selection in it. */
export function grow(node, text) {
  if (node.data === text) return;
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else node.data = text;
}

/** Characters as people count them, at most `n`. */
export function shortened(text, n) {
  const segments = globalThis.Intl?.Segmenter ? new Intl.Segmenter().segment(text.slice(0, 8 * n)) : Array.from(text.slice(0, 8 * n), (segment) => ({ segment }));
  let out = "";
  let count = 0;
  for (const { segment } of segments) {
    if (count++ === n) return `${out.trimEnd()}…`;
    out += segment;
  }
  return out;
}
