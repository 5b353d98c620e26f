// The chat page's model on a site of its own: the engine in the page. The server's page has another file of this name.

import { Engine, EngineError, inspect } from "./chaski/index.js";
import { bytes, describe, progressText } from "./format.js";

const $ = (id) => document.getElementById(id);
const options = () => ({ contextLength: Number($("context").value) || undefined });

function report(text, isError = false) {
  $("report").textContent = text;
  $("report").classList.toggle("error", isError);
}

export class Model {
  #engine = null;
  #loading = null;
  #files = [];
  #changed;

  constructor(changed) {
    this.#changed = changed;
    $("model").append($("of-engine").content.cloneNode(true));
    document.querySelector("header").append(Object.assign(document.createElement("a"), { href: "bench.html", textContent: "Bench" }));
    $("inspect").addEventListener("click", () => this.#inspect());
    $("model").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#load();
    });
    $("cancel").addEventListener("click", () => this.#loading?.abort());
    $("file").addEventListener("change", () => this.#take([...$("file").files]));
    $("source").addEventListener("input", () => {
      $("file").value = "";
      this.#take([]);
    });
    for (const type of ["dragover", "dragleave", "drop"]) document.addEventListener(type, (event) => this.#drag(type, event));
  }

  get isReady() {
    return this.#engine !== null;
  }

  get name() {
    if (!this.#engine) return null;
    const { model, device } = this.#engine.info();
    return `${model.file}: ${model.description}${device.name ? ` on ${device.name}` : ""}`;
  }

  answer(request, signal) {
    return this.#engine.chat.completions.create(request, { signal });
  }

  stats() {
    return this.#engine.stats();
  }

  explain(error) {
    if (error instanceof EngineError && error.code === "aborted") return "Cancelled.";
    return error.hint ? `${error.message}\n${error.hint}` : String(error.message ?? error);
  }

  #source() {
    return this.#files.length > 0 ? this.#files : $("source").value.trim();
  }

  async #inspect() {
    if (!$("model").reportValidity()) return;
    report("Reading the head of the file ...");
    try {
      const found = await inspect(this.#source(), options());
      report(`${describe(found)}\n${found.fits ? "It fits." : `It does not fit: ${found.reasons.join("; ")}.`}`);
    } catch (error) {
      report(this.explain(error), true);
    }
  }

  async #load() {
    const pressed = document.activeElement === $("load");
    this.#loading?.abort();
    this.#loading = new AbortController();
    await this.#engine?.close();
    this.#engine = null;
    this.#changed();
    $("cancel").hidden = $("progress").hidden = false;
    $("load").disabled = true;
    $("progress").removeAttribute("value");
    // Ten reports a second are for the eye; the last one is announced.
    $("report").ariaLive = "off";
    report("");
    try {
      this.#engine = await Engine.create({ model: this.#source(), ...options(), signal: this.#loading.signal, onProgress: show });
      const { device, loading: times } = this.#engine.info();
      $("report").ariaLive = "polite";
      report(`Ready after ${(times.totalMs / 1000).toFixed(1)} s; ${bytes(this.#engine.memory().total)} of ${device.kind === "cpu" ? "" : "GPU "}memory.`);
    } catch (error) {
      $("report").ariaLive = "polite";
      report(this.explain(error), true);
    } finally {
      this.#loading = null;
      // A button that is disabled or hidden loses the focus; who went elsewhere meanwhile stays there.
      const { activeElement } = document;
      const lost = activeElement === $("cancel") || (pressed && [document.body, $("load")].includes(activeElement));
      $("cancel").hidden = $("progress").hidden = true;
      $("load").disabled = false;
      this.#changed();
      if (lost) $(this.#engine ? "text" : "load").focus();
    }
  }

  #take(chosen) {
    if (this.#files.length > 0 || chosen.length > 0) report(chosen.map((f) => `${f.name}, ${bytes(f.size)}`).join("\n"));
    this.#files = chosen;
    // A file needs no address.
    $("source").required = chosen.length === 0;
  }

  #drag(type, event) {
    // Text may be dragged, too: into a field.
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    $("model").classList.toggle("over", type === "dragover");
    if (type !== "drop") return;
    $("file").files = event.dataTransfer.files;
    this.#take([...event.dataTransfer.files]);
  }
}

function show(progress) {
  const bar = $("progress");
  if (progress.total) Object.assign(bar, { max: progress.total, value: progress.loaded });
  else bar.removeAttribute("value");
  report(progressText(progress));
}
