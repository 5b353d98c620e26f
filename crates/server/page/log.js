// The messages of the conversation that is shown.

import { Message } from "./message.js";

export class Log {
  #element;
  #actions;
  #shown = [];

  constructor(element, actions) {
    this.#element = element;
    this.#actions = actions;
    // Buttons of code are many; one listener does for all.
    element.addEventListener("click", ({ target }) => {
      const button = target.closest?.("button.copy");
      if (button) actions.copyText(button.closest("figure").querySelector("pre").textContent, button);
    });
  }

  get views() {
    return this.#shown;
  }

  /** Shows a path. Messages that are shown already stay as they are, since what is put here is read out. */
  show(conversation, path, siblings) {
    const begins = this.#shown.findIndex(({ node }, i) => node !== path[i]);
    const same = begins < 0 ? Math.min(this.#shown.length, path.length) : begins;
    for (const view of this.#shown.splice(same)) view.element.remove();
    // Failures are no messages, and go with the rest.
    while (this.#element.children.length > same) this.#element.lastChild.remove();
    for (const node of path.slice(same)) this.#put(node);
    path.forEach((node, i) => {
      const all = siblings(node);
      this.#finish(this.#shown[i], all.indexOf(node), all.length);
    });
  }

  #finish(view, index, count) {
    const key = `${index}/${count}`;
    if (view.version === key && view.foot) return;
    view.version = key;
    view.finish(index, count);
  }

  /** A message that cannot be shown does not keep the others from it. */
  #put(node) {
    const view = new Message(node.role, this.#actions);
    try {
      view.show(node);
    } catch (error) {
      reportError(error);
      view.text.replaceChildren("This message cannot be shown.");
      view.text.hidden = false;
    }
    this.#shown.push(view);
    this.#element.append(view.element);
  }

  /** A message that is not in the conversation yet. */
  begin(role) {
    const view = new Message(role, this.#actions);
    this.#element.append(view.element);
    return view;
  }

  /** The message that `begin` gave is this one of the path now. */
  adopt(view, index, count) {
    this.#shown.push(view);
    this.#finish(view, index, count);
  }
}
