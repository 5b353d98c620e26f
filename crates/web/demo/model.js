// The chat page's model on a site of its own: the engine in the page. The server's page has another file of this name.

import { card } from "./welcome.js";
import { Engine, EngineError, capabilities, inspect, models } from "./chaski/index.js";
import { icon, make } from "./dom.js";
import { bytes, describe, progressText } from "./format.js";
import { notify } from "./notices.js";
import { recall, remember } from "./storage.js";
import { work } from "./offline.js";

const $ = (id) => document.getElementById(id);
/** The model that was loaded last. */
const LAST = "chaski.model";
/** Tokens of context that cards reckon with. */
const CONTEXT = 4096;

/** Models to choose from: there before the page is, which then need not move. */
const KNOWN = await models.catalogue();

/** The model that this site has itself. */
const BUILT_IN = { id: "storyteller", name: "Storyteller", about: "A toy of 7 million parameters that tells children's stories, at once.", model: "models/storyteller-Q4_K_M.gguf", bytes: 4_250_000, licence: "MIT", memory: { [CONTEXT]: 60e6 } };

function report(text, isError = false) {
  $("report").textContent = text;
  $("report").classList.toggle("error", isError);
}

export class Model {
  headline = "A language model in your browser";
  lead = "Choose one. It is downloaded once, runs on this device, and what you write stays here.";
  moreLabel = "Another model, or a file of yours …";
  busy = null;
  error = null;
  #engine = null;
  #loading = null;
  #of = null;
  #files = [];
  #changed;
  #known = [BUILT_IN, ...KNOWN];
  #stored = [];
  #facts = null;
  #room = null;

  constructor(changed) {
    this.#changed = changed;
    $("model").append($("of-engine").content.cloneNode(true));
    $("links").append(make("a", { href: "bench.html", textContent: "Bench" }));
    $("inspect").addEventListener("click", () => this.#inspect());
    $("model").addEventListener("submit", (event) => {
      event.preventDefault();
      const source = this.#source();
      if (source === "") return report("Name a model, or choose a file.", true);
      $("models-dialog").close();
      this.#load(source, { context: Number($("context").value) || undefined });
    });
    $("file").addEventListener("change", () => this.#chosen([...$("file").files]));
    $("source").addEventListener("input", () => {
      $("file").value = "";
      this.#chosen([]);
    });
    addEventListener("online", () => this.#look());
  }

  /** Loads the last model, if that takes no download. */
  async start() {
    work();
    [this.#facts] = await Promise.all([capabilities(), this.#look()]);
    this.#show();
    let last = null;
    try {
      last = JSON.parse(recall(LAST));
    } catch {
      // It was none.
    }
    if (this.#loading || this.#engine || typeof last?.model !== "string" || !this.#isStored(last.model)) return;
    this.#load(last.model, { context: Number(last.context) || undefined, offline: true });
  }

  get isReady() {
    return this.#engine !== null;
  }

  get label() {
    if (this.#engine) return this.#of;
    return this.#loading ? `Loading ${this.#of}` : "Choose a model";
  }

  get name() {
    if (!this.#engine) return null;
    const { model, device } = this.#engine.info();
    return `${model.file}: ${model.description}${device.name ? ` on ${device.name}` : ""}`;
  }

  get contextTokens() {
    return this.#engine?.info().contextLength;
  }

  answer(request, signal) {
    return this.#engine.chat.completions.create(request, { signal });
  }

  stats() {
    return { ...this.#engine.stats(), contextTokens: this.contextTokens };
  }

  explain(error) {
    if (error instanceof EngineError && error.code === "aborted") return "Cancelled.";
    return error.hint ? `${error.message}\n${error.hint}` : String(error.message ?? error);
  }

  /** Models to choose from: those that are stored, then those of the list. */
  cards() {
    const known = this.#known.map((m) => this.#card(m));
    const names = this.#known.map((m) => fileOf(m.model));
    const others = this.#stored.filter((s) => s.complete && !names.includes(s.name) && !/-0000[2-9]-of-/.test(s.name));
    const own = others.map(({ url, name, size }) => ({ id: url, title: name.replace(/\.gguf$/i, ""), detail: bytes(size), note: "", state: this.#stateOf(url, "stored"), fits: null }));
    return [...known.filter((c) => c.state !== "remote"), ...own, ...known.filter((c) => c.state === "remote")];
  }

  choose(id) {
    const found = this.#known.find((m) => m.id === id);
    $("models-dialog").close();
    if (found && found !== BUILT_IN && !this.#isStored(found.model)) models.persist().catch(() => {});
    this.#load(found?.model ?? id, {});
  }

  /** Takes files that were dropped on the page, if they are models. */
  take(files) {
    if (!files.some((f) => /\.gguf$/i.test(f.name))) return false;
    $("models-dialog").showModal();
    const data = new DataTransfer();
    for (const file of files) data.items.add(file);
    $("file").files = data.files;
    this.#chosen(files);
    return true;
  }

  #isStored(model) {
    return model === BUILT_IN.model || this.#stored.some((s) => s.complete && (s.url === model || s.name === fileOf(model)));
  }

  #stateOf(model, otherwise) {
    if (this.#loading?.model === model) return "loading";
    return this.#engine && this.#loaded === model ? "loaded" : otherwise;
  }

  #loaded = null;

  #card(m) {
    const state = this.#stateOf(m.model, this.#isStored(m.model) ? "stored" : "remote");
    const memory = m.memory[CONTEXT];
    const [fits, why] = this.#fits(memory, state === "remote" ? m.bytes : 0, m.parameters);
    return { id: m.id, title: m.name, detail: `${bytes(m.bytes)} · ${m.licence}`, note: m.about, state, fits, why };
  }

  /** True, false or undefined (not known yet) for a model that takes so much. */
  #fits(memory, download, parameters = 0) {
    if (!this.#facts) return [undefined];
    const isCpu = this.#facts.device === "cpu";
    const device = (navigator.deviceMemory ?? 8) * 2 ** 30;
    if (isCpu && memory > 2 ** 32) return [false, `Too large: ${bytes(memory)} of memory, and a page without a GPU has 4 GiB`];
    if (memory > device) return [false, `Too large: ${bytes(memory)} of memory, and here seem to be ${bytes(device)}`];
    if (this.#room !== null && download > this.#room) return [false, `No room: the browser can store ${bytes(this.#room)} more`];
    if (isCpu && parameters > 1.5e9) return [false, "Very slow here, without a GPU"];
    return [true, `Fits: ${bytes(memory)} of memory`];
  }

  /** Looks at the stored files, and how much room there is. */
  async #look() {
    const [stored, usage] = await Promise.all([models.list().catch(() => []), models.usage().catch(() => null)]);
    this.#stored = stored;
    this.#room = usage?.quota ? usage.quota - usage.usage : null;
    $("storage").textContent = usage ? `Models take ${bytes(usage.models)} in this browser${this.#room === null ? "" : `; there is room for ${bytes(this.#room)} more`}.` : "This browser lets the page store no models.";
    this.#show();
  }

  /** The list in the dialog, and all else. */
  #show() {
    const list = this.cards().map((one) => {
      const element = card(one, (id) => this.choose(id));
      if (!["stored", "loaded"].includes(one.state) || one.id === BUILT_IN.id) return element;
      const model = this.#known.find((m) => m.id === one.id)?.model ?? one.id;
      const row = make("div", { className: "buttons" });
      element.lastChild.replaceWith(row);
      row.append(card(one, (id) => this.choose(id)).lastChild);
      row.append(make("span", {},
        make("button", { type: "button", className: "icon-button", title: "Check the file", ariaLabel: `Check the file of ${one.title}`, onclick: () => this.#verify(model, one.title) }, icon("check")),
        make("button", { type: "button", className: "icon-button", title: "Remove", ariaLabel: `Remove ${one.title}`, onclick: () => this.#remove(model, one.title) }, icon("delete")),
      ));
      return element;
    });
    $("choices").replaceChildren(...list);
    this.#changed();
  }

  async #verify(model, title) {
    report(`Checking ${title} …`);
    try {
      const isWhole = await models.verify(model);
      report(isWhole ? `${title} is what came from the network.` : `${title} is damaged: remove it, and load it again.`, !isWhole);
    } catch (error) {
      report(this.explain(error), true);
    }
  }

  async #remove(model, title) {
    try {
      if (this.#loaded === model) await this.#close();
      await models.remove(model);
      if (recall(LAST)?.includes(JSON.stringify(model))) remember(LAST, null);
      notify(`${title} was removed.`);
    } catch (error) {
      report(this.explain(error), true);
    }
    await this.#look();
  }

  #source() {
    return this.#files.length > 0 ? this.#files : $("source").value.trim();
  }

  async #inspect() {
    if (this.#source() === "") return report("Name a model, or choose a file.", true);
    report("Reading the head of the file …");
    try {
      const found = await inspect(this.#source(), { contextLength: Number($("context").value) || undefined });
      report(`${describe(found)}\n${found.fits ? "It fits." : `It does not fit: ${found.reasons.join("; ")}.`}`);
    } catch (error) {
      report(this.explain(error), true);
    }
  }

  async #close() {
    const engine = this.#engine;
    [this.#engine, this.#loaded] = [null, null];
    await engine?.close();
  }

  async #load(model, { context, offline }) {
    this.#loading?.stop.abort();
    const mine = { model, stop: new AbortController() };
    this.#loading = mine;
    await this.#close();
    if (this.#loading !== mine) return;
    const known = this.#known.find((m) => m.model === model);
    this.#of = known?.name ?? (typeof model === "string" ? fileOf(model).replace(/\.gguf$/i, "") : model[0].name);
    this.error = null;
    this.busy = { text: "Starting …", share: undefined, cancel: () => mine.stop.abort() };
    this.#show();
    const onProgress = (event) => {
      if (this.#loading !== mine) return;
      this.busy = { ...this.busy, text: progressText(event), share: event.total ? event.loaded / event.total : undefined };
      this.#changed();
    };
    try {
      const engine = await Engine.create({ model, contextLength: context, signal: mine.stop.signal, onProgress, offline: offline && model !== BUILT_IN.model });
      if (this.#loading !== mine) return void engine.close();
      [this.#engine, this.#loaded] = [engine, model];
      if (typeof model === "string") remember(LAST, JSON.stringify({ model, context }));
      const { device, loading: times } = engine.info();
      report(`Ready after ${(times.totalMs / 1000).toFixed(1)} s; ${bytes(engine.memory().total)} of ${device.kind === "cpu" ? "" : "GPU "}memory.`);
    } catch (error) {
      if (this.#loading !== mine) return;
      const isCancelled = error instanceof EngineError && error.code === "aborted";
      this.error = isCancelled ? null : this.explain(error);
      report(this.error ?? "Cancelled.", !isCancelled);
    }
    [this.#loading, this.busy] = [null, null];
    await this.#look();
  }

  #chosen(files) {
    if (this.#files.length > 0 || files.length > 0) report(files.map((f) => `${f.name}, ${bytes(f.size)}`).join("\n"));
    this.#files = files;
  }
}

/** The name of a model's file in its address. */
const fileOf = (model) => model.slice(model.lastIndexOf("/") + 1);
