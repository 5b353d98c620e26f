// One message of the conversation as an element that grows with its text.

import { elements } from "./markdown.js";
import { lexer } from "./marked.js";

const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

/** Changes an element's children into others, from the first that differs on: what is read or open stays as it is. */
function grow(parent, nodes) {
  let same = 0;
  while (same < nodes.length && parent.childNodes[same]?.isEqualNode(nodes[same])) same++;
  while (parent.childNodes.length > same) parent.lastChild.remove();
  parent.append(...nodes.slice(same));
}

/** Nodes for an answer, which may still grow: a text between its elements becomes a node, too. */
function written(text) {
  const nodes = elements(lexer(text));
  return nodes.map((node) => (typeof node === "string" ? document.createTextNode(node) : node));
}

/** A function that the model calls. */
function called({ name, arguments: text }) {
  const call = make("pre", { className: "call" });
  call.append(make("code", { textContent: `${name}(${text})` }));
  return call;
}

const SPEAKERS = { user: "You: ", assistant: "Answer: ", tool: "Result: " };

export class Message {
  constructor(role) {
    this.element = make("li");
    this.element.dataset.role = role;
    this.text = make("div");
    this.element.append(make("span", { className: "visually-hidden", textContent: SPEAKERS[role] }), this.text);
    this.thoughts = null;
  }

  show({ role, content, reasoning, calls = [] }) {
    if (reasoning) this.#think(reasoning);
    grow(this.text, role === "assistant" ? [...written(content), ...calls.map(called)] : [document.createTextNode(content)]);
  }

  #think(text) {
    if (!this.thoughts) {
      this.thoughts = document.createTextNode("");
      const details = make("details");
      details.append(make("summary", { textContent: "Thoughts" }), this.thoughts);
      this.text.before(details);
    }
    this.thoughts.data = text;
  }
}
