// One message of the conversation as an element that grows with it.

import { grow, icon, iconButton, make, patch } from "./dom.js";
import { Prose } from "./prose.js";

const SPEAKERS = { user: "You", assistant: "Answer", tool: "Result" };

const number = (n, digits = 0) => n.toLocaleString("en", { maximumFractionDigits: digits });

function duration(ms) {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A function that the model calls. */
function called({ name, arguments: text }) {
  return make("div", { className: "call" }, icon("tool"), make("pre", { className: "call-text", tabIndex: 0, dir: "ltr" }, make("code", {}, `${name}(${text})`)));
}

/** An answer's numbers, in words. */
function measured({ promptTokens, cachedTokens, promptTokensPerSecond, tokens, tokensPerSecond, timeToFirstTokenMs }) {
  return (
    `Prompt: ${promptTokens} tokens (${cachedTokens} in the cache), ${promptTokensPerSecond.toFixed(1)}/s. ` +
    `Answer: ${tokens} tokens, ${tokensPerSecond.toFixed(1)}/s. First after ${Math.round(timeToFirstTokenMs)} ms.`
  );
}

const CUTS = {
  context: "The answer is cut because the context is full; the next question goes on without the oldest messages.",
  length: "The answer is cut at the number of tokens that the settings allow.",
  stopped: "Stopped.",
};

export class Message {
  #actions;
  #node = null;

  /** @param node the message @param actions what can be done with it, by name: functions of the message */
  constructor(role, actions = {}) {
    this.#actions = actions;
    this.element = make("article", { className: "message", data: { role } });
    this.text = make("div", { className: "text" });
    this.element.append(make("h2", { className: "visually-hidden", textContent: SPEAKERS[role] }), this.text);
    this.prose = role === "assistant" ? new Prose(this.text) : null;
    this.thoughts = this.calls = this.files = this.state = this.foot = this.notice = null;
  }

  get node() {
    return this.#node;
  }

  /** Shows a message as it is; `isDone` if no more of it comes. */
  show(node, isDone = true) {
    this.#node = node;
    const { content, reasoning, calls = [], files = [], thoughtMs } = node;
    if (reasoning) this.#think(reasoning, isDone || content !== "" ? thoughtMs : null);
    if (files.length > 0 && !this.files) {
      this.files = make("ul", { className: "files", "aria-label": "Attached files" }, ...files.map(({ name }) => make("li", {}, icon("file"), make("span", { dir: "auto", textContent: name }))));
      this.text.before(this.files);
    }
    if (this.prose) this.prose.show(content, isDone);
    else this.#plain(content);
    this.text.hidden = content === "";
    if (calls.length > 0) {
      if (!this.calls) this.text.after((this.calls = make("div")));
      patch(this.calls, calls.map(called));
    } else if (this.calls) {
      this.calls.remove();
      this.calls = null;
    }
    if (isDone) this.wait(null);
  }

  /** Paragraphs of what a person wrote, each in the direction of its script. */
  #plain(content) {
    if (!this.text.firstChild) this.text.append("");
    this.text.dir = "auto";
    grow(this.text.firstChild, content);
  }

  #think(text, ms) {
    if (!this.thoughts) {
      const [label, body] = [make("span"), document.createTextNode("")];
      const details = make("details", { className: "thoughts" }, make("summary", {}, icon("thought"), label), make("div", { dir: "auto", className: "thought" }, body));
      this.thoughts = { details, label, body };
      (this.files ?? this.text).before(details);
    }
    const { details, label, body } = this.thoughts;
    grow(body, text);
    const isOver = ms !== null;
    details.classList.toggle("live", !isOver);
    const words = isOver ? (ms ? `Thought for ${duration(ms)}` : "Thoughts") : "Thinking";
    if (label.textContent !== words) label.textContent = words;
  }

  /** A sign of life while nothing is written: a text, and how far it is (0 to 1); null if there is nothing to wait for. */
  wait(text, share) {
    if (text === null) {
      this.state?.remove();
      this.state = null;
      return;
    }
    if (!this.state) {
      this.state = make("p", { className: "waiting" }, make("span", { className: "pulse" }), make("span"));
      this.element.append(this.state);
    }
    const words = share === undefined ? text : `${text} (${Math.round(100 * share)} %)`;
    if (this.state.lastChild.textContent !== words) this.state.lastChild.textContent = words;
  }

  /** Why there is no answer, and what can be done about it. */
  fail(text, again, edit) {
    this.wait(null);
    const buttons = [make("button", { type: "button", className: "small", textContent: "Try again", onclick: again })];
    if (edit) buttons.push(make("button", { type: "button", className: "small quiet", textContent: "Change the message", onclick: edit }));
    this.element.classList.add("failed");
    this.element.append(make("div", { className: "failure", role: "alert" }, icon("alert"), make("p", { textContent: text, dir: "auto" }), make("div", { className: "buttons" }, ...buttons)));
  }

  /** The line below a message: what it took, other versions of it, and what can be done with it. */
  finish(index, count) {
    const { role, stats, cut, isPartial } = this.#node;
    this.foot?.remove();
    this.notice?.remove();
    const tools = make("div", { className: "tools", role: "group", "aria-label": `About this ${role === "user" ? "message" : "answer"}` });
    const act = (name, label, what) => this.#actions[what] && tools.append(iconButton(name, label, () => this.#actions[what](this)));
    if (count > 1) {
      const step = (by) => () => this.#actions.step(this, by);
      tools.append(
        iconButton("left", "Previous version", step(-1), { disabled: index === 0 }),
        make("span", { className: "version", textContent: `${index + 1} / ${count}` }),
        iconButton("right", "Next version", step(1), { disabled: index === count - 1 }),
      );
    }
    act("copy", "Copy", "copy");
    if (role === "user") act("edit", "Edit", "edit");
    if (role === "assistant") act("again", "Answer again", "again");
    if (role === "assistant") act("branch", "Go on from here in a new conversation", "fork");
    act("delete", "Delete, with what follows", "remove");
    if (stats?.tokensPerSecond) tools.append(make("span", { className: "rate", title: measured(stats), textContent: `${number(stats.tokensPerSecond, 1)} tokens/s` }));
    const words = [isPartial ? "The page was closed before the end of this answer." : "", CUTS[cut] ?? ""].filter(Boolean).join(" ");
    this.foot = make("footer", {}, words ? make("p", { className: "cut", textContent: words }) : null, tools);
    this.element.append(this.foot);
    const n = stats?.droppedMessages ?? 0;
    if (n > 0) {
      this.notice = make("p", { className: "dropped", textContent: `The context is full: the model no longer sees the ${n} oldest messages.` });
      this.element.prepend(this.notice);
    }
  }

  /** A field in place of the message's text, until it is sent or given up. */
  edit(send) {
    if (this.element.querySelector("form")) return;
    const field = make("textarea", { value: this.#node.content, dir: "auto", ariaLabel: "The message" });
    const close = () => {
      form.remove();
      this.element.classList.remove("editing");
    };
    const form = make("form", { className: "edit" }, field, make("div", { className: "buttons" },
      make("button", { type: "button", className: "small quiet", textContent: "Cancel", onclick: close }),
      make("button", { type: "submit", className: "small", textContent: "Send" }),
    ));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim() === "") return;
      close();
      send(field.value.trim());
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        close();
      }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    this.element.classList.add("editing");
    this.text.after(form);
    field.focus();
  }
}

export { measured };
