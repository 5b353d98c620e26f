// The field that messages are written in, with drafts that survive a reload, and files that go with a message.

import { iconButton, icon, make } from "./dom.js";
import { notify } from "./notices.js";
import { recall, remember } from "./storage.js";

const $ = (id) => document.getElementById(id);
const DRAFTS = "chaski.drafts";
/** Drafts that are kept, and characters of each. */
const KEPT = 50;
const LONGEST = 20_000;
/** Bytes of a file, and of all that go with a message. */
const FILE = 1 << 20;

export class Composer {
  #of = null;
  #drafts = {};
  #files = [];
  #changed;

  constructor(changed) {
    this.#changed = changed;
    try {
      const kept = JSON.parse(recall(DRAFTS));
      for (const [id, text] of Object.entries(kept ?? {})) if (typeof text === "string") this.#drafts[id] = text;
    } catch {
      // Another version's, or nobody's.
    }
    $("text").addEventListener("input", () => this.#typed());
    $("attach").addEventListener("click", () => $("attachments").click());
    $("attachments").addEventListener("change", () => {
      this.attach([...$("attachments").files]);
      $("attachments").value = "";
    });
    $("text").addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      this.attach(files);
    });
  }

  get text() {
    return $("text").value.trim();
  }

  get files() {
    return this.#files;
  }

  get isEmpty() {
    return this.text === "" && this.#files.length === 0;
  }

  /** Shows the draft of a conversation. */
  show({ id }) {
    if (this.#of === id) return;
    this.#of = id;
    this.#files = [];
    this.set(this.#drafts[id] ?? "");
  }

  set(text) {
    $("text").value = text;
    this.#typed();
    this.#list();
  }

  /** Empties the field; the result puts back what was in it. */
  clear() {
    const [text, files] = [$("text").value, this.#files];
    this.#files = [];
    this.set("");
    return () => {
      if (!this.isEmpty) return;
      this.#files = files;
      this.set(text);
    };
  }

  #typed() {
    const { value } = $("text");
    // The height follows the text, up to what the style allows.
    $("text").style.height = "auto";
    $("text").style.height = `${$("text").scrollHeight}px`;
    delete this.#drafts[this.#of];
    if (value !== "" && this.#of) this.#drafts[this.#of] = value.slice(0, LONGEST);
    remember(DRAFTS, JSON.stringify(Object.fromEntries(Object.entries(this.#drafts).slice(-KEPT))));
    this.#changed();
  }

  /** Adds text files. */
  async attach(files) {
    for (const file of files) {
      try {
        if (file.size > FILE) throw new Error("it is larger than 1 MB");
        const bytes = new Uint8Array(await file.arrayBuffer());
        if (bytes.includes(0)) throw new Error("it is not a text file");
        const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
        if (this.#files.reduce((sum, f) => sum + f.text.length, text.length) > FILE) throw new Error("the files of a message may have 1 MB in all");
        this.#files = [...this.#files, { name: file.name.slice(0, 200), text }];
      } catch (error) {
        const why = error instanceof TypeError ? "it is not a text file" : error.message;
        notify(`${file.name} cannot be attached: ${why}.`);
      }
    }
    this.#list();
    this.#changed();
  }

  #list() {
    const remove = (file) => () => {
      this.#files = this.#files.filter((f) => f !== file);
      this.#list();
      this.#changed();
      $("text").focus();
    };
    $("attached").replaceChildren(
      ...this.#files.map((file) => make("li", {}, icon("file"), make("span", { textContent: file.name, dir: "auto" }), iconButton("close", `Remove ${file.name}`, remove(file)))),
    );
    $("attached").hidden = this.#files.length === 0;
  }
}
