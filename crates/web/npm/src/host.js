// The engine itself, in a worker or on the page: loads models, answers as many requests at once as it has sequences.

import { load } from "./module.js";
import { Turns, choose } from "./device.js";
import { store } from "./download.js";
import { EngineError, badRequest, check } from "./errors.js";
import { StoredFile, blobFile, remoteFile } from "./files.js";
import { grammars } from "./grammar.js";
import { locate } from "./locate.js";
import { promiseFrom, withPromises } from "./pipelines.js";
import { entry, full, hold } from "./store.js";
import { hasSubgroups, withSubgroups } from "./subgroups.js";
import { isTrusted, trust } from "./trust.js";

/** Downloads report at most so often, in milliseconds. */
const REPORT = 100;

/** Bytes that `inspect` reads at most where a server sends files only as a whole. */
const HEAD = 64 << 20;

/** Bytes that a module can have. */
const WASM = 2 ** 32;
const SMALLER = 'use a smaller contextLength, kvType "q8_0", or a smaller model';

/** Calls that throw what the wasm module throws, as EngineErrors. */
async function guarded(f) {
  try {
    return await f();
  } catch (error) {
    throw EngineError.from(error);
  }
}

export class Host {
  #engine = null;
  #releases = [];
  #files = [];
  /** Calls that wait for their turn, how many are at work, and how many may be. */
  #waiting = [];
  #busy = 0;
  #sequences = 1;
  /** Requests without an answer, and the loop that works on them. */
  #asked = 0;
  #working = null;
  /** The module in use: its bindings, its memory, its threads. */
  #wasm = null;
  #width = 0;
  #subgroups = false;
  #grammars = null;
  #grammarUrl;
  /** The CPU computes here, and must let messages in. */
  #turns = null;

  /** Runs `f`, beside as many others as there are sequences, or alone. */
  #enter(alone, f) {
    return new Promise((resolve, reject) => {
      this.#waiting.push([alone, () => f().then(resolve, reject)]);
      this.#next();
    });
  }

  #next() {
    const [[alone, run] = []] = this.#waiting;
    if (!run || this.#busy > (alone ? 0 : this.#sequences - 1)) return;
    this.#waiting.shift();
    this.#busy += alone ? Infinity : 1;
    run().finally(() => {
      this.#busy = alone ? 0 : this.#busy - 1;
      this.#next();
    });
    this.#next();
  }

  /** Runs what needs the engine alone, after what came before. */
  #alone(f) {
    return this.#enter(true, async () => {
      await this.#working;
      return f();
    });
  }

  /** Runs what asks the engine for something (`#ask`). */
  #beside(signal, f) {
    return this.#enter(false, async () => {
      check(signal);
      return f(this.#loaded());
    });
  }

  /** Asks the engine, and works until it has answered. */
  async #ask(f) {
    this.#asked++;
    try {
      const answer = guarded(f);
      this.#work();
      return await answer;
    } finally {
      this.#asked--;
    }
  }

  #work() {
    const run = async () => {
      while (this.#asked > 0) {
        // Whoever asked hears of errors.
        const more = await this.#engine.turn().catch(() => false);
        if (!more || this.#turns?.due()) await (this.#turns?.take() ?? new Promise((done) => setTimeout(done)));
      }
    };
    // The engine opens a device that is lost again, reads the model again from where it is, and goes on.
    this.#working ??= (this.#turns ? run() : this.#opening(run)).finally(() => {
      this.#working = null;
      if (this.#asked > 0) this.#work();
    });
  }

  #loaded() {
    if (!this.#engine) throw badRequest("there is no model: create the engine first");
    return this.#engine;
  }

  create(args, tools) {
    return this.#alone(() => this.#create(args, tools));
  }

  async #create({ model, loras = [], draft, options }, { signal, emit }) {
    const { device, fallback } = await choose(options.device);
    this.#wasm = await load(options, device);
    const { WebEngine, version } = this.#wasm.bindings;
    this.#grammarUrl = options.grammarUrl;
    check(signal);
    const asked = await this.#settings(options, device, loras.map(({ scale }) => scale));
    const report = progress(emit);
    report({ stage: "resolve", loaded: 0, total: null, file: null });
    const found = await locate(model, { ...options, signal });
    const isNew = await this.#foresee(found, options, device, signal);
    const own = await this.#open(found, options, signal, report);
    const open = async (model) => this.#open(await locate(model, { ...options, signal }), options, signal, report);
    const ofLoras = [];
    for (const { model } of loras) {
      const [file, ...others] = await open(model);
      if (others.length > 0) throw badRequest("loras: expected a file each");
      ofLoras.push(file);
    }
    const files = [...own, ...ofLoras, ...(draft ? await open(draft) : [])];
    const gpu = device !== "cpu";
    const subgroups = gpu && options.subgroups !== false && (await hasSubgroups());
    const known = gpu && options.selfTest === undefined && (await isTrusted(version(), subgroups));
    const trusted = options.selfTest === false || known;
    const watched = files.map((file) => ({
      name: file.name,
      size: file.size,
      read: (offset, length) => {
        check(signal);
        return file.read(offset, length);
      },
    }));
    const settings = { ...asked, trusted, subgroups };
    this.#subgroups = subgroups;
    const make = (opened) => {
      const step = (stage, loaded, total) => {
        // There is a device to compile for, or to upload to.
        opened?.();
        if (stage === "compile") promiseFrom();
        report({ stage, loaded, total, file: files[0].name });
      };
      const [from, to] = [own.length, own.length + loras.length];
      return WebEngine.create(watched.slice(0, from), JSON.stringify(settings), step, watched.slice(from, to), watched.slice(to));
    };
    const start = performance.now();
    try {
      this.#engine = await (gpu ? this.#opening(make) : guarded(() => make()));
    } catch (error) {
      if (error.code === "bad_file" || error.code === "read_failed") await forget(files);
      // A file that was just stored, and cannot be used here, is of no use.
      if (isNew && error.code?.startsWith("unsupported")) await forget(own, true);
      throw error;
    } finally {
      files.forEach((file) => file.close());
    }
    if (signal?.aborted) this.#free();
    check(signal);
    // Files are read again if the device is lost, however the caller feels about its signal by then.
    watched.forEach((file, i) => (file.read = (offset, length) => files[i].read(offset, length)));
    this.#files = files;
    const info = JSON.parse(this.#engine.describe());
    this.#width = info.embedding;
    this.#sequences = settings.sequences;
    const tested = !trusted && info.device.kind === "gpu";
    if (tested && info.device.distrust === null) await trust(version(), subgroups);
    this.#turns = info.device.kind === "cpu" ? new Turns() : null;
    const totalMs = performance.now() - start;
    const loading = info.loading ?? { compileMs: 0, uploadMs: totalMs, totalMs };
    const notes = [...this.#wasm.notes, ...files.flatMap((file) => file.notes ?? [])];
    return { ...info, notes, loading, device: { ...info.device, fallback: info.device.fallback ?? fallback, tested, threads: gpu ? null : this.#wasm.threads } };
  }

  /** The engine's options, validated before anything is loaded: a misspelt word must not cost a download. */
  async #settings(options, device, loras = []) {
    const found = {
      contextLength: options.contextLength ?? 0,
      kvType: options.kvType ?? "auto",
      inputs: options.inputs ?? "auto",
      chunk: options.chunk ?? 0,
      sequences: options.sequences || 1,
      loras,
      memoryBudget: options.memoryBudget ?? null,
      device,
    };
    await guarded(() => this.#wasm.bindings.WebEngine.check(JSON.stringify(found)));
    return found;
  }

  /**
   * Reads the heads of files that would be downloaded, and fails where they cannot be used: their architecture, their format,
   * their memory, the browser's room. True if there is something to download. Servers without ranges tell it afterwards.
   */
  async #foresee(found, options, device, signal) {
    const remote = found.filter((file) => !file.blob);
    if (options.cache === "none" || options.offline || remote.length === 0) return false;
    const stored = await Promise.all(remote.map((file) => storedFile(file.url)));
    if (stored.every(Boolean)) return false;
    let facts;
    try {
      facts = await this.#inspect(found, { ...options, device }, signal, 0);
    } catch (error) {
      if (signal?.aborted || /^(unsupported|bad_file$)/.test(error.code)) throw error;
      return true;
    }
    const { total } = facts.memory;
    const budget = Math.min(options.memoryBudget ?? Infinity, device === "cpu" ? WASM : Infinity);
    if (total > budget) {
      throw new EngineError("out_of_memory", `the model takes ${total} bytes of memory, but ${options.memoryBudget === budget ? "the budget" : "the limit without a GPU"} is ${budget} bytes`, SMALLER, { bytes: total, budget });
    }
    const { quota = Infinity, usage = 0 } = (await navigator.storage?.estimate?.()) ?? {};
    const kept = sum(await Promise.all(remote.map(async ({ url }) => (await entry(url).catch(() => null))?.bytes() ?? 0)));
    const needed = facts.downloadBytes - (stored.some(Boolean) ? 0 : kept);
    if (needed > quota - usage) throw full(needed, Math.max(0, quota - usage));
    return true;
  }

  /** The files, ready to be read: stored first where they come from the network and there is a place for them. */
  async #open(found, options, signal, report) {
    let { cache } = options;
    const out = [];
    for (const file of found) {
      try {
        if (!file.blob && cache !== "none") {
          out.push(await this.#stored(file, options, signal, report));
          continue;
        }
      } catch (error) {
        if (error.code !== "storage_unavailable" || cache || options.offline) throw error;
        cache = "none";
      }
      if (options.sha256?.[file.name] != null) {
        const hint = "leave out sha256";
        throw new EngineError("bad_request", `sha256: ${file.name} is not stored, so nothing checks it`, hint);
      }
      out.push(file.blob ? blobFile(file.name, file.blob) : await remoteFile(file, { ...options, signal }));
    }
    return this.#whole(found, out, options);
  }

  /** The files of a model: as they are, or the one that a folder is. */
  async #whole(found, files, options) {
    if (!found.folder) return files;
    const { openFolder } = await import("./folder.js");
    try {
      return [await openFolder(found.folder, files, options.folderUrl)];
    } catch (error) {
      await forget(files);
      throw error;
    }
  }

  async #stored(file, options, signal, report) {
    const stored = await store(file, {
      newHash: () => new this.#wasm.bindings.Sha256(),
      signal,
      offline: options.offline,
      retryMs: options.retryMs,
      progress: (event) => report({ ...event, file: file.name }),
    });
    const waiting = () => report({ stage: "wait", loaded: 0, total: null, file: file.name });
    this.#releases.push(await hold(file.url, { signal, waiting }));
    const { manifest } = (await stored.complete()) ?? {};
    if (!manifest) throw new EngineError("in_use", `${file.name} was removed while it was loaded`, "load it again");
    return new StoredFile(file.name, manifest, stored);
  }

  generate({ request, rule }, { signal, emit }) {
    return this.#beside(signal, async (engine) => {
      const asked = rule && (await this.#rule(rule));
      check(signal);
      const event = (text) => {
        emit(text);
        return signal?.aborted ?? false;
      };
      const end = JSON.parse(await this.#ask(() => engine.generate(request, event, asked)));
      if (end.losses > 0) this.#files.forEach((file) => file.close());
      return end;
    });
  }

  /** A rule of an answer, which gives the masks of its tokens. */
  async #rule(rule) {
    const engine = this.#loaded();
    this.#grammars ??= await guarded(() => grammars(() => engine.vocabulary(), this.#grammarUrl));
    return { start: (template, prompt) => this.#grammars.start(rule, template, prompt) };
  }

  /** Runs what opens a device and makes kernels for it. */
  #opening(make) {
    return guarded(() => withPromises(() => (this.#subgroups ? withSubgroups(make) : make())));
  }

  tokenize({ text, addSpecial, parseSpecial }) {
    return guarded(() => [...this.#loaded().tokenize(text, addSpecial, parseSpecial)]);
  }

  detokenize({ tokens, special }) {
    return guarded(() => this.#loaded().detokenize(Uint32Array.from(tokens), special));
  }

  /** The conversation as bytes. */
  save() {
    return this.#alone(() => guarded(() => this.#loaded().save()));
  }

  restore({ bytes }) {
    return this.#alone(() => guarded(() => this.#loaded().restore(bytes)));
  }

  /** For each text its tokens and its vectors. */
  embed({ texts, pooling, lora }, { signal }) {
    return this.#beside(signal, async (engine) => {
      const out = [];
      for (const text of texts) {
        check(signal);
        const found = await this.#ask(() => engine.embed(text, pooling, lora));
        const vectors = [];
        for (let at = 1; at < found.length; at += this.#width) vectors.push(found.slice(at, at + this.#width));
        out.push({ tokens: found[0], vectors });
      }
      return out;
    });
  }

  /** The number of tokens, and a score for each document. */
  rank({ query, documents, lora }, { signal }) {
    return this.#beside(signal, async (engine) => {
      let tokens = 0;
      const scores = [];
      for (let at = 0; at < documents.length; at += this.#sequences) {
        check(signal);
        const some = documents.slice(at, at + this.#sequences);
        const [n, ...found] = await this.#ask(() => engine.rank(query, some, lora));
        tokens += n;
        scores.push(...found);
      }
      return { tokens, scores };
    });
  }

  applyTemplate({ chat }) {
    return guarded(() => this.#loaded().apply_template(chat));
  }

  /** Reads the head of a file: from the store if it is there, else by ranges. */
  async inspect({ model, options }, { signal }) {
    this.#wasm ??= await load(options, options.device === "gpu" ? "gpu" : undefined);
    return this.#inspect(await locate(model, { ...options, signal }), options, signal, HEAD);
  }

  async #inspect(found, options, signal, head) {
    const files = [];
    try {
      for (const file of found) {
        const stored = file.blob ? null : await storedFile(file.url);
        if (file.blob) files.push(blobFile(file.name, file.blob));
        else if (stored) files.push(new StoredFile(file.name, stored.manifest, stored.entry));
        else files.push(await remoteFile(file, { ...options, signal, head }));
      }
      const subgroups = options.subgroups !== false && (await hasSubgroups());
      const cpu = (await choose(options.device)).device === "cpu";
      const settings = { contextLength: options.contextLength ?? 0, kvType: options.kvType ?? "auto", sequences: options.sequences ?? 1, subgroups, cpu };
      const whole = await this.#whole(found, files, options);
      const text = await guarded(() => this.#wasm.bindings.inspect(whole, JSON.stringify(settings)));
      const downloads = files.map((f, i) => (found[i].blob || f instanceof StoredFile ? 0 : f.size));
      return { ...JSON.parse(text), device: cpu ? "cpu" : "gpu", fileBytes: sum(files.map((f) => f.size)), downloadBytes: sum(downloads) };
    } finally {
      files.forEach((file) => file.close());
    }
  }

  async adapter({ wasmUrl }) {
    const { bindings } = await load({ wasmUrl }, "gpu");
    return JSON.parse(await bindings.adapter(await hasSubgroups()));
  }

  /** Stores a model's files without loading them. */
  async download({ model, options }, { signal, emit }) {
    this.#wasm = await load(options);
    await this.#settings(options, "cpu");
    if (options.cache === "none") throw badRequest('cache: "none" stores nothing');
    const found = await locate(model, { ...options, signal });
    if (found.some((file) => file.blob)) throw badRequest("model: a File is there already");
    const files = await this.#open(found, { ...options, cache: "opfs" }, signal, progress(emit));
    this.#free();
    return { files: files.map(({ name, size }) => ({ name, size })), heap: this.#heapOf() };
  }

  #heapOf() {
    return this.#wasm?.memory.buffer.byteLength ?? 0;
  }

  /** Hashes stored files again: true if they are what they were when they came. */
  async verify({ urls, options }, { signal }) {
    const { bindings } = await load(options);
    for (const url of urls) if (!(await unchanged(url, signal, new bindings.Sha256()))) return false;
    return true;
  }

  /** Bytes of the wasm heap, for tests and statistics. */
  heap() {
    return this.#heapOf();
  }

  loseDevice() {
    this.#loaded().lose();
  }

  #free() {
    this.#releases.splice(0).forEach((release) => release());
    this.#files.splice(0).forEach((file) => {
      file.close();
      file.free?.();
    });
    this.#grammars?.free();
    this.#grammars = null;
    this.#engine?.free();
    this.#engine = null;
    this.#turns?.close();
    this.#turns = null;
  }

  /** Gives everything back, after what is running; whoever closes aborts that. */
  close() {
    return this.#alone(() => this.#free());
  }
}

async function unchanged(url, signal, hash) {
  const stored = await storedFile(url);
  if (!stored) throw new EngineError("not_stored", `${url} is not stored`, "download it first");
  const release = await hold(url, { signal });
  try {
    for (const reader = stored.file.stream().getReader(); ; ) {
      check(signal);
      const { done, value } = await reader.read();
      if (done) break;
      hash.update(value);
    }
    return hash.hex() === stored.manifest.sha256;
  } finally {
    release();
  }
}

/** A stored file that turns out to be none, and that nobody knew the length of, came incomplete: it is not kept. */
async function forget(files, all = false) {
  for (const file of files.flatMap((file) => file.parts ?? file)) {
    file.close();
    if (file.manifest && (all || file.manifest.sure === false)) await file.entry.forget(file.manifest);
  }
}

async function storedFile(url) {
  try {
    const found = await entry(url);
    const whole = await found?.complete();
    return whole ? { entry: found, ...whole } : null;
  } catch (error) {
    if (error.code === "storage_unavailable") return null;
    throw error;
  }
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** Adds speed and time left, and drops what comes too fast. */
function progress(emit) {
  let [stage, file, from, start, last] = [null, null, 0, 0, 0];
  return (event) => {
    const now = performance.now();
    if (event.stage !== stage || event.file !== file) {
      [stage, file, from, start, last] = [event.stage, event.file, event.loaded, now, -REPORT];
    }
    const ended = event.loaded === event.total;
    if (now - last < REPORT && !ended) return;
    last = now;
    const seconds = (now - start) / 1000;
    const rate = seconds > 0 ? (event.loaded - from) / seconds : 0;
    const left = rate > 0 && event.total !== null ? (event.total - event.loaded) / rate : null;
    emit({ fromCache: false, ...event, bytesPerSecond: event.stage === "compile" ? null : rate, etaSeconds: left });
  };
}
