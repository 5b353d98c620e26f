// Settings, kept in this browser, and the form that they are changed in.

import { recall, remember } from "./storage.js";

const $ = (id) => document.getElementById(id);
const KEY = "chaski.settings";
/** Fields of the form that are kept as they are written. */
const FIELDS = ["temperature", "top-p", "top-k", "max-tokens", "seed", "tools", "system", "theme", "send-key", "thinks"];

export class Settings {
  #changed;

  constructor(changed) {
    this.#changed = changed;
    let kept = {};
    try {
      kept = JSON.parse(recall(KEY)) ?? {};
    } catch {
      // Another version's, or nobody's.
    }
    for (const id of FIELDS) if (typeof kept[id] === "string") $(id).value = kept[id];
    $("settings").addEventListener("input", () => this.save());
    $("reset-settings").addEventListener("click", () => {
      for (const id of FIELDS) $(id).value = "";
      this.save();
    });
    this.#show();
  }

  save() {
    const kept = Object.fromEntries(FIELDS.map((id) => [id, $(id).value]));
    remember(KEY, JSON.stringify(kept));
    this.#show();
    this.#changed();
  }

  #show() {
    const { value } = $("theme");
    if (["light", "dark"].includes(value)) document.documentElement.dataset.theme = value;
    else delete document.documentElement.dataset.theme;
  }

  /** The functions that the model may call; null if the setting is none. */
  tools() {
    const text = $("tools").value.trim();
    try {
      const list = text === "" ? [] : JSON.parse(text);
      return Array.isArray(list) ? list : null;
    } catch {
      return null;
    }
  }

  get system() {
    return $("system").value.trim();
  }

  /** True if Enter sends a message; otherwise it takes Ctrl or Command with it. */
  get enterSends() {
    return $("send-key").value !== "ctrl";
  }

  /** Checks that the model accepts the settings; otherwise shows the first invalid one. */
  valid() {
    $("tools").setCustomValidity(this.tools() ? "" : "A list of functions in JSON, as OpenAI's API has it");
    const wrong = [...$("settings").querySelectorAll("input, textarea")].find((input) => !input.checkValidity());
    if (!wrong) return true;
    // The browser points at nothing that is closed.
    if (!$("settings-dialog").open) $("settings-dialog").showModal();
    $("advanced").open = true;
    return wrong.reportValidity();
  }

  /** The fields of a request. */
  request() {
    const number = (id) => ($(id).value === "" ? undefined : Number($(id).value));
    return {
      temperature: number("temperature"), top_p: number("top-p"), top_k: number("top-k"), max_tokens: number("max-tokens"), seed: number("seed"),
      tools: this.tools()?.length > 0 ? this.tools() : undefined,
      ...($("thinks").value && { chat_template_kwargs: { enable_thinking: $("thinks").value === "on" } }),
    };
  }
}
