// The engine as a page sees it.

import { open } from "./channel.js";
import { EngineError, aborted, badRequest } from "./errors.js";
import { ChatAnswer, ChatChunks, TextAnswer, TextChunks, chatOf, chatRequest, textRequest } from "./openai.js";
import { stream } from "./stream.js";

/** Options that stay on the page. */
const OWN = ["model", "worker", "workerUrl", "onProgress", "signal"];
const KNOWN = ["contextLength", "kvType", "memoryBudget", "cache", "offline", "hfToken", "hub", "headers", "sha256", "wasmUrl", "subgroups", "selfTest", "chunk", "retryMs"];

/** Options without those of the page; a misspelt one is an error. */
export function forHost(options) {
  const strange = Object.keys(options).find((key) => ![...OWN, ...KNOWN].includes(key));
  if (strange) throw badRequest(`there is no option ${strange}; known are ${["model", ...OWN.slice(1), ...KNOWN].join(", ")}`);
  const out = Object.fromEntries(KNOWN.filter((key) => options[key] !== undefined).map((key) => [key, options[key]]));
  if (!["opfs", "none", undefined].includes(out.cache)) throw badRequest(`cache: expected "opfs" or "none", found ${out.cache}`);
  if (out.wasmUrl) out.wasmUrl = new URL(out.wasmUrl, globalThis.location?.href).href;
  return out;
}

/** Addresses are meant from the page's place, wherever the engine runs. */
export function forWorker(model) {
  if (model === undefined) throw badRequest("model is missing: an address, hf:owner/repo:quant, or a File");
  if (model instanceof URL) return model.href;
  if (typeof model !== "string" || model.startsWith("hf:")) return model;
  try {
    return new URL(model, globalThis.location?.href).href;
  } catch {
    throw badRequest(`model: not an address: ${model}`);
  }
}

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
  }

  /** Loads a model. */
  static async create(options) {
    if (options === null || typeof options !== "object") throw badRequest("expected options");
    const { onProgress = () => {}, signal } = options;
    const args = { model: forWorker(options.model), options: forHost(options) };
    const channel = open(options);
    try {
      const info = await channel.call("create", args, { signal, emit: onProgress });
      return new Engine(channel, info);
    } catch (error) {
      channel.close();
      throw signal?.aborted ? aborted() : error;
    }
  }

  #chat(request, { signal = request?.signal } = {}) {
    const model = this.#info.model.file;
    const withUsage = request?.stream_options?.include_usage ?? false;
    const body = chatRequest(request);
    const chunks = new ChatChunks(model, withUsage);
    return request.stream ? this.#stream(body, chunks, signal) : this.#whole(body, chunks, new ChatAnswer(), signal);
  }

  #complete(request, { signal = request?.signal } = {}) {
    const body = textRequest(request);
    const chunks = new TextChunks(this.#info.model.file, request.stream_options?.include_usage ?? false);
    if (request.stream) return this.#stream(body, chunks, signal);
    const prefix = request.echo && typeof request.prompt === "string" ? request.prompt : "";
    return this.#whole(body, chunks, new TextAnswer(prefix), signal);
  }

  #stream(body, chunks, signal) {
    return stream(async (push, inner) => {
      const end = await this.#generate(body, inner, (event) => {
        const chunk = chunks.event(event);
        if (chunk) push(chunk);
      });
      return chunks.end(end);
    }, signal);
  }

  async #whole(body, chunks, answer, signal) {
    const end = await this.#generate(body, signal, (event) => {
      const chunk = chunks.event(event);
      if (chunk) answer.add(chunk);
    });
    if (signal?.aborted) throw aborted();
    chunks.end(end).forEach((chunk) => answer.add(chunk));
    return answer.whole(end);
  }

  async #generate(request, signal, emit) {
    const end = await this.#channel.call("generate", { request }, { signal, emit: (text) => emit(JSON.parse(text)) });
    this.#memory = end.memory;
    this.#stats = {
      promptTokens: end.promptTokens,
      cachedTokens: end.cachedTokens,
      tokens: end.tokens,
      timeToFirstTokenMs: end.firstMs,
      promptTokensPerSecond: end.promptPerSecond,
      tokensPerSecond: end.tokensPerSecond,
      submissions: end.submissions,
      onProcessor: end.onProcessor,
    };
    return end;
  }

  /** Tokens of a text. */
  tokenize(text, { addSpecial = true, parseSpecial = true } = {}) {
    return this.#channel.call("tokenize", { text, addSpecial, parseSpecial });
  }

  /** Text of tokens. */
  detokenize(tokens, { special = true } = {}) {
    return this.#channel.call("detokenize", { tokens, special });
  }

  /** The prompt that a conversation becomes. */
  applyTemplate(messages, options = {}) {
    return this.#channel.call("applyTemplate", { chat: chatOf({ ...options, messages }) });
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
