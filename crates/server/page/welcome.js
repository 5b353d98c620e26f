// The first screen: models to choose from, or prompts to try.

import { icon, make } from "./dom.js";

const PROMPTS = [
  ["story", "Tell me a story", "Tell me a short story about a messenger who runs across the mountains."],
  ["explain", "Explain something", "Explain to a curious child why the sky is blue, in a few sentences."],
  ["plan", "Make a plan", "Make a plan for learning to cook in four weeks, as a table with one row for each week."],
  ["code", "Write code", "Write a function in Python that finds the longest word in a text, with an example of its use."],
];

const FITS = { true: ["check", "Fits this device"], false: ["alert", "Too large for this device"] };

/** A model as a card. */
export function card(model, choose) {
  const { id, title, detail, state, fits, why, note } = model;
  const [mark, words] = FITS[fits] ?? ["", ""];
  const labels = { loaded: "In use", stored: "Use", remote: "Download and use", loading: "Loading" };
  const button = make("button", { type: "button", className: state === "stored" ? "small" : "small quiet", textContent: labels[state], disabled: ["loaded", "loading"].includes(state), onclick: () => choose(id), ariaLabel: `${labels[state]}: ${title}` });
  const fit = words && make("p", { className: `fit ${fits ? "good" : "bad"}` }, icon(mark), make("span", { textContent: why ?? words }));
  // A line that is not known yet has its place already.
  const later = fits === undefined ? make("p", { className: "fit", textContent: "\u00a0" }) : null;
  return make("li", { className: "card", data: { state } },
    make("h3", { textContent: title, dir: "auto" }),
    make("p", { className: "detail", textContent: detail }),
    note ? make("p", { className: "note", textContent: note }) : null,
    fit || later,
    button,
  );
}

export class Welcome {
  #element;
  #shown = "";

  constructor(element) {
    this.#element = element;
  }

  /** @param model the page's model @param ask gets a prompt that somebody chose @param more opens the list of models */
  show(model, ask, more) {
    const cards = model.cards();
    const key = JSON.stringify([model.isReady, model.label, cards, model.busy !== null]);
    if (key === this.#shown) return;
    this.#shown = key;
    const parts = [make("div", { className: "mark" }, icon("chaski")), make("h2", { className: "headline", textContent: model.isReady ? "What shall we talk about?" : model.headline })];
    if (model.isReady) {
      const prompts = PROMPTS.map(([name, title, text]) => make("li", {}, make("button", { type: "button", className: "prompt", onclick: () => ask(text) }, icon(name), make("strong", { textContent: title }), make("span", { textContent: text }))));
      parts.push(make("ul", { className: "prompts", "aria-label": "Prompts to try" }, ...prompts));
    } else {
      parts.push(make("p", { className: "lead", textContent: model.lead }));
      if (cards.length > 0) parts.push(make("ul", { className: "cards", "aria-label": "Models" }, ...cards.slice(0, 6).map((one) => card(one, (id) => model.choose(id)))));
      parts.push(make("button", { type: "button", className: "quiet", textContent: model.moreLabel, onclick: more }));
    }
    this.#element.replaceChildren(...parts);
  }
}
