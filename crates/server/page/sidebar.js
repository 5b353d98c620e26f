// The list of conversations: by day, searched, renamed, deleted with a way back.

import { iconButton, make } from "./dom.js";

const $ = (id) => document.getElementById(id);
const DAY = 86_400_000;

/** The part of the list that a time belongs to. */
function partOf(at, now = new Date()) {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  if (at >= today) return "Today";
  if (at >= today - DAY) return "Yesterday";
  return at >= today - 7 * DAY ? "Last 7 days" : "Older";
}

export class Sidebar {
  #conversations;
  #actions;
  #answering = () => null;

  /** @param actions `choose`, `rename`, `remove`, `menu`: functions of a conversation */
  constructor(conversations, actions, answering) {
    this.#conversations = conversations;
    this.#actions = actions;
    this.#answering = answering;
    $("search").addEventListener("input", () => this.show());
    $("menu").addEventListener("click", () => this.open());
    $("close-menu").addEventListener("click", () => this.close());
    $("scrim").addEventListener("click", () => this.close());
    $("sidebar").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.isOpen) return;
      event.stopPropagation();
      this.close();
    });
    // On a wide window the drawer is a part of the page.
    matchMedia("(min-width: 56rem)").addEventListener("change", () => this.close());
  }

  get isOpen() {
    return document.body.classList.contains("menu-open");
  }

  open() {
    document.body.classList.add("menu-open");
    $("menu").ariaExpanded = "true";
    for (const part of [$("main")]) part.inert = true;
    $("new").focus();
  }

  close() {
    if (!this.isOpen) return;
    document.body.classList.remove("menu-open");
    $("menu").ariaExpanded = "false";
    $("main").inert = false;
    $("menu").focus();
  }

  /** Shows the list; the focus stays with its conversation, or where that was deleted with its place. */
  show() {
    const list = $("conversations");
    const before = [...list.querySelectorAll("li[data-id]")];
    const at = before.findIndex((li) => li.contains(document.activeElement));
    const button = at < 0 ? -1 : [...before[at].children].indexOf(document.activeElement);
    const found = this.#conversations.search($("search").value);
    const parts = new Map();
    for (const c of found) {
      if (c.nodes.length === 0 && c !== this.#conversations.current) continue;
      const part = c.nodes.length === 0 ? "Today" : partOf(c.at);
      parts.set(part, [...(parts.get(part) ?? []), c]);
    }
    list.replaceChildren(
      ...[...parts].map(([name, all], i) =>
        make("li", {}, make("h2", { textContent: name, id: `part-${i}` }), make("ul", { "aria-labelledby": `part-${i}` }, ...all.map((c) => this.#item(c)))),
      ),
    );
    $("nothing").hidden = parts.size > 0;
    if (at < 0) return;
    const now = [...list.querySelectorAll("li[data-id]")];
    const same = now.find((li) => li.dataset.id === before[at].dataset.id);
    (same?.children[button] ?? now[Math.min(at, now.length - 1)]?.firstChild ?? $("new")).focus();
  }

  #item(conversation) {
    const title = this.#conversations.title(conversation);
    const isCurrent = conversation === this.#conversations.current;
    const open = make("button", { type: "button", className: "open", title, onclick: () => this.#actions.choose(conversation), "aria-current": isCurrent ? "true" : undefined }, make("span", { dir: "auto", textContent: title }));
    if (this.#answering() === conversation) open.append(make("span", { className: "pulse", role: "img", ariaLabel: "is being answered" }));
    const li = make("li", { data: { id: conversation.id } }, open);
    if (conversation.nodes.length === 0) return li;
    li.append(
      iconButton("edit", `Rename “${title}”`, () => this.#rename(conversation, li)),
      iconButton("delete", `Delete “${title}”`, () => this.#actions.remove(conversation)),
    );
    return li;
  }

  #rename(conversation, li) {
    const field = make("input", { value: this.#conversations.title(conversation), ariaLabel: "Title", maxLength: 200, dir: "auto" });
    let isOver = false;
    const end = (keep) => {
      if (isOver) return;
      isOver = true;
      if (keep) this.#actions.rename(conversation, field.value.trim());
      this.show();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") {
        event.stopPropagation();
        end(false);
      }
    });
    field.addEventListener("blur", () => end(true));
    li.replaceChildren(field);
    field.select();
    field.focus();
  }
}
