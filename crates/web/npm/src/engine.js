// The engine as a page sees it.

import { listener, open } from "./channel.js";
import { EngineError, badRequest } from "./errors.js";
import { address, allow, isU32 } from "./kinds.js";
import { ChatAnswer, ChatChunks, chatOf, chatRequest } from "./openai.js";
import { stream } from "./stream.js";

/** Options that stay on the page. */
const OWN = ["model", "loras", "draft", "shared", "worker", "workerUrl", "onProgress", "signal"];
const KNOWN = ["device", "contextLength", "sequences", "kvType", "inputs", "memoryBudget", "cache", "offline", "hfToken", "hub", "headers", "sha256", "wasmUrl", "grammarUrl", "folderUrl", "threads", "threadsUrl", "subgroups", "selfTest", "chunk", "retryMs"];

/** Options without those of the page. */
export function forHost(options) {
  allow(options, [...OWN, ...KNOWN]);
  const out = Object.fromEntries(KNOWN.map((key) => [key, options[key] ?? undefined]));
  if (out.headers?.[Symbol.iterator]) out.headers = Object.fromEntries(out.headers);
  for (const key of ["wasmUrl", "grammarUrl", "folderUrl", "threadsUrl"]) if (out[key]) out[key] = address(out[key]);
  if (out.threads !== undefined && !(isU32(out.threads) && out.threads > 0)) throw badRequest("threads: expected a positive integer");
  return JSON.parse(json(out));
}

/** The name of a model in a form that can be posted to a worker. */
export function forWorker(model) {
  if (model === undefined || model === "") throw badRequest("model is missing: an address, hf:owner/repo:quant, or a File");
  if (model instanceof URL) return model.href;
  if (typeof model !== "string" || model.startsWith("hf:")) return model;
  // A repository of Hugging Face, unless it is a file of the page's site.
  if (/^[\w.-]+\/[\w.-]+(?:[:@][\w.:@/-]+)?$/.test(model) && !/^\.|\.gguf$/i.test(model)) return `hf:${model}`;
  try {
    return address(model);
  } catch {
    throw badRequest(`model: not an address: ${model}`);
  }
}

/** A request as text: what frameworks wrap in proxies goes to a worker in no other way. Half of a pair of surrogates is no text. */
function json(value) {
  try {
    return JSON.stringify(value, (_, v) => v?.toWellFormed?.() ?? v);
  } catch (error) {
    throw badRequest(`the request is no JSON: ${error.message}`);
  }
}

const withUsage = (request) => request?.stream_options?.include_usage ?? false;

export class Engine {
  #channel;
  #info;
  #stats = null;
  #memory;

  /** Use {@link Engine.create}. */
  constructor(channel, info) {
    this.#channel = channel;
    this.#info = info;
    this.#memory = info.memory;
    this.chat = { completions: { create: (request, options) => this.#chat(request, options) } };
    this.completions = { create: (request, options) => this.#complete(request, options) };
    this.embeddings = { create: async (request, options) => this.#read("embed", await import("./embeddings.js"), request, options) };
    this.reranking = { create: async (request, options) => this.#read("rank", await import("./rerank.js"), request, options) };
    this.fetch = async (input, init) => (await import("./fetch.js")).answer(this, input, init);
  }

  /** Loads a model. */
  static async create(options) {
    const args = { options: forHost(options), model: forWorker(options.model), draft: options.draft && forWorker(options.draft) };
    args.loras = options.loras?.map((lora) => ({ scale: lora?.scale ?? 1, model: forWorker(lora?.model) }));
    if (options.worker === false && options.cache !== "none") args.options = await (await import("./own.js")).stored(options, args);
    const channel = options.shared ? (await import("./shared.js")).share(options, args) : open(options);
    try {
      const info = await channel.call("create", args, listener(options));
      return new Engine(channel, info);
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  #chat(request, options) {
    return this.#answer(request, options, () => {
      const chunks = new ChatChunks(this.#info.model.file, withUsage(request), request?.return_progress && request.stream);
      return { body: chatRequest(request), chunks, answer: new ChatAnswer() };
    });
  }

  #complete(request, options) {
    return this.#answer(request, options, async () => {
      const { TextAnswer, TextChunks, textRequest } = await import("./texts.js");
      const chunks = new TextChunks(this.#info.model.file, withUsage(request));
      const { prompt, echo } = request ?? {};
      const text = () => (typeof prompt === "string" ? prompt : this.detokenize(prompt));
      return { body: textRequest(request), chunks, answer: new TextAnswer(), first: echo ? async () => chunks.echo(await text()) : null };
    });
  }

  /** Results of a method for texts; the module knows its requests and answers. */
  async #read(method, { asked }, request, options) {
    const { whole, ...args } = asked(request);
    return whole(await this.#channel.call(method, args, { signal: options?.signal ?? request.signal }), this.#info.model.file);
  }

  /** Documents by their relevance to a query, the best first. */
  async rerank(query, documents, options) {
    return (await this.reranking.create({ ...options, query, documents })).results;
  }

  /** A stream of chunks or the promise of a whole answer; a request that is refused makes either fail. */
  #answer(request, options, read) {
    const signal = options?.signal ?? request?.signal;
    if (!request?.stream) return this.#whole(read, signal);
    const parts = (async () => read())();
    // Nobody may read a stream, and so hear of what is wrong with it.
    parts.catch(() => {});
    return stream(async (push, inner) => this.#chunks(await parts, inner, push), signal, parts);
  }

  async #whole(read, signal) {
    const asked = read();
    // At once if that is possible, so that calls are sent in their order.
    const parts = asked.answer ? asked : await asked;
    const { answer } = parts;
    for (const chunk of await this.#chunks(parts, signal, (chunk) => answer.add(chunk))) answer.add(chunk);
    return answer.whole(parts.end);
  }

  /** Runs the request: chunks are pushed, those at its end are the result. */
  async #chunks(parts, signal, push) {
    const { body, chunks, first } = parts;
    if (first) push(await first());
    parts.end = await this.#generate(body, signal, (event) => chunks.event(event).forEach(push));
    return chunks.end(parts.end);
  }

  async #generate({ rule, ...request }, signal, emit) {
    const args = { request: json(request), rule: rule && json(rule) };
    const end = await this.#channel.call("generate", args, { signal, emit: (text) => emit(JSON.parse(text)) });
    this.#stats = {
      promptTokens: end.promptTokens,
      cachedTokens: end.cachedTokens,
      tokens: end.tokens,
      timeToFirstTokenMs: end.firstMs,
      promptTokensPerSecond: end.promptPerSecond,
      tokensPerSecond: end.tokensPerSecond,
      submissions: end.submissions,
      drafted: end.drafted,
      accepted: end.accepted,
      onCpu: end.onCpu,
      deviceLosses: end.losses,
      droppedMessages: end.droppedMessages,
    };
    return end;
  }

  /** Tokens of a text. */
  async tokenize(text, options) {
    if (typeof text !== "string") throw badRequest("text: expected a string");
    const { addSpecial = true, parseSpecial = true } = options ?? {};
    return this.#channel.call("tokenize", { text, addSpecial, parseSpecial });
  }

  /** Text of tokens. */
  async detokenize(tokens, options) {
    const { special = true } = options ?? {};
    const { vocabulary } = this.#info.model;
    if (!tokens?.every?.((t) => isU32(t) && !(t >= vocabulary))) throw badRequest(`tokens: expected a list of integers below ${vocabulary}`);
    return this.#channel.call("detokenize", { tokens, special });
  }

  /** The prompt that a conversation becomes. */
  async applyTemplate(messages, options = {}) {
    return this.#channel.call("applyTemplate", { chat: json(chatOf({ ...options, messages })) });
  }

  /** The conversation as bytes: `restore` goes on with it without running it again, on another day, too. */
  save() {
    return this.#channel.call("save", {});
  }

  /** Goes on with a conversation that `save` gave, of the same model and options. */
  async restore(bytes) {
    if (!(bytes instanceof Uint8Array)) throw badRequest("restore: expected a Uint8Array");
    await this.#channel.call("restore", { bytes });
  }

  /** Counts and speeds of the last answer; null before it. */
  stats() {
    return this.#stats;
  }

  /** Bytes of device memory by what they hold. */
  memory() {
    return this.#memory;
  }

  /** The model and the device. */
  info() {
    return this.#info;
  }

  /** Bytes of the wasm heap. */
  heap() {
    return this.#channel.call("heap", {});
  }

  /** Gives the device up as a driver reset would; for tests. */
  loseDevice() {
    return this.#channel.call("loseDevice", {});
  }

  /** Ends the worker and gives all memory back. */
  async close() {
    this.#channel.close();
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }
}

export { EngineError };
