// OpenAI's shapes: requests to the engine's own, events to chunks and completions.

import { badRequest } from "./errors.js";

/** Fields that change nothing here, and are accepted because clients send them. */
const IGNORED = ["model", "user", "metadata", "store", "service_tier", "parallel_tool_calls", "reasoning_effort", "stream", "stream_options", "signal", "n"];

/** Fields that go to the engine under another name. */
const SAMPLING = {
  temperature: "temperature",
  top_p: "topP",
  top_k: "topK",
  min_p: "minP",
  typical_p: "typicalP",
  repeat_penalty: "repeatPenalty",
  repeat_last_n: "repeatLastN",
  frequency_penalty: "frequencyPenalty",
  presence_penalty: "presencePenalty",
  seed: "seed",
  ignore_eos: "ignoreEos",
};

const CHAT = ["messages", "tools", "tool_choice", "response_format", "max_completion_tokens", "logprobs", "top_logprobs", "enable_thinking", "chat_template_kwargs"];
const TEXT = ["prompt", "echo", "logprobs"];
const BOTH = ["max_tokens", "stop", "logit_bias", "grammar", "context_shift", "n_keep"];

function expect(request, known) {
  if (request === null || typeof request !== "object") throw badRequest("expected a request object");
  const all = [...IGNORED, ...Object.keys(SAMPLING), ...BOTH, ...known];
  const strange = Object.keys(request).find((key) => request[key] !== undefined && !all.includes(key));
  if (strange) throw badRequest(`${strange} is not supported; known are ${[...known, ...BOTH, ...Object.keys(SAMPLING)].join(", ")}`);
  if ((request.n ?? 1) !== 1) throw badRequest("n: only 1 is supported");
}

function number(request, key) {
  const value = request[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value)) throw badRequest(`${key}: expected a number, found ${JSON.stringify(value)}`);
  return value;
}

/** What chat and text have in common. */
function common(request) {
  const out = {};
  for (const [key, name] of Object.entries(SAMPLING)) {
    const value = key === "ignore_eos" ? request[key] : number(request, key);
    if (value !== undefined) out[name] = value;
  }
  const max = number(request, "max_completion_tokens") ?? number(request, "max_tokens");
  if (max !== undefined) out.maxTokens = max;
  const stop = request.stop ?? [];
  out.stop = Array.isArray(stop) ? stop : [stop];
  if (!out.stop.every((s) => typeof s === "string" && s !== "")) throw badRequest("stop: expected texts");
  out.logitBias = Object.entries(request.logit_bias ?? {}).map(([id, bias]) => [Number(id), Number(bias)]);
  if (request.context_shift) out.contextShift = number(request, "n_keep") ?? 0;
  if (request.grammar) out.rule = { grammar: request.grammar };
  return out;
}

/** The engine's request for a chat completion. */
export function chatRequest(request) {
  expect(request, CHAT);
  const out = { ...common(request), chat: chatOf(request) };
  const format = request.response_format ?? { type: "text" };
  if (format.type === "json_object") out.rule = { jsonSchema: { type: "object" } };
  else if (format.type === "json_schema") out.rule = { jsonSchema: format.json_schema?.schema ?? {} };
  else if (format.type !== "text") throw badRequest(`response_format: expected text, json_object or json_schema, found ${format.type}`);
  if (request.logprobs) out.logprobs = request.top_logprobs ?? 0;
  return out;
}

/** The part of a chat request that the template sees. */
export function chatOf(request) {
  if (!Array.isArray(request.messages)) throw badRequest("messages: expected a list");
  const choice = request.tool_choice ?? "auto";
  if (choice !== "auto" && choice !== "none") throw badRequest("tool_choice: only auto and none are supported");
  const { enable_thinking: thinking, ...variables } = request.chat_template_kwargs ?? {};
  const now = new Date();
  return {
    messages: request.messages,
    tools: choice === "none" ? [] : (request.tools ?? []),
    enableThinking: request.enable_thinking ?? thinking ?? null,
    variables,
    now: [now.getFullYear(), now.getMonth() + 1, now.getDate(), now.getHours(), now.getMinutes(), now.getSeconds()],
  };
}

/** The engine's request for a text completion. */
export function textRequest(request) {
  expect(request, TEXT);
  const out = common(request);
  const { prompt } = request;
  if (typeof prompt === "string") out.prompt = prompt;
  else if (Array.isArray(prompt) && prompt.every((t) => Number.isInteger(t))) out.tokens = prompt;
  else throw badRequest("prompt: expected a text or a list of tokens");
  if (typeof request.logprobs === "number") out.logprobs = request.logprobs;
  return out;
}

const FINISH = { stop: "stop", length: "length", context: "length", aborted: "stop" };

export const usageOf = (end) => ({
  prompt_tokens: end.promptTokens,
  completion_tokens: end.tokens,
  total_tokens: end.promptTokens + end.tokens,
  prompt_tokens_details: { cached_tokens: end.cachedTokens },
});

/** As llama-server says it. */
export const timingsOf = (end) => ({
  prompt_n: end.promptTokens - end.cachedTokens,
  prompt_ms: end.firstMs,
  prompt_per_second: end.promptPerSecond,
  predicted_n: end.tokens,
  predicted_ms: end.restMs,
  predicted_per_second: end.tokensPerSecond,
});

/** OpenAI writes a probability of 0 so. */
const NEVER = -9999;

/** A token's entry; JSON has no infinity, so the engine says null. */
const entryOf = ({ logprob, top_logprobs, ...rest }) => ({
  ...rest,
  logprob: logprob ?? NEVER,
  ...(top_logprobs && { top_logprobs: top_logprobs.map(entryOf) }),
});

/** Turns events of one chat answer into chunks. */
export class ChatChunks {
  #head;
  #role = true;
  #calls = 0;
  #withUsage;
  /** A call that has begun: only when it has ended is it known to be one. */
  #call = null;

  constructor(model, withUsage) {
    this.#head = head("chatcmpl", "chat.completion.chunk", model);
    this.#withUsage = withUsage;
  }

  #chunk(delta, rest = {}) {
    if (this.#role) delta = { role: "assistant", content: "", ...delta };
    this.#role = false;
    return { ...this.#head, choices: [{ index: 0, delta, finish_reason: null, logprobs: null, ...rest }] };
  }

  #content(text) {
    return text ? [this.#chunk({ content: text })] : [];
  }

  /** The chunks that an event makes. */
  event(event) {
    switch (event.type) {
      case "content":
        return this.#content(event.text);
      case "reasoning":
        return [this.#chunk({ reasoning_content: event.text })];
      case "logprobs":
        return [this.#chunk({}, { logprobs: { content: [entryOf(event.logprobs)], refusal: null } })];
      case "call":
        this.#call = { name: event.name, arguments: "" };
        return [];
      case "arguments":
        this.#call.arguments += event.text;
        return [];
      case "call_end":
        return event.valid ? this.#called() : this.#content(event.written);
      default:
        return [];
    }
  }

  /** The name once, then the arguments. */
  #called() {
    const [index, { name, arguments: text }] = [this.#calls++, this.#call];
    const call = { index, id: identifier("call"), type: "function", function: { name, arguments: "" } };
    return [[call], [{ index, function: { arguments: text } }]].map((tool_calls) => this.#chunk({ tool_calls }));
  }

  end(end) {
    const finish_reason = end.finish === "stop" && this.#calls > 0 ? "tool_calls" : FINISH[end.finish];
    const last = { ...this.#chunk({}, { finish_reason }), timings: timingsOf(end) };
    if (!this.#withUsage) return [last];
    return [last, { ...this.#head, choices: [], usage: usageOf(end) }];
  }
}

/** Puts chunks together to a whole answer. */
export class ChatAnswer {
  #message = { role: "assistant", content: "", refusal: null };
  #logprobs = [];
  #first = null;

  add(chunk) {
    this.#first ??= chunk;
    const [choice] = chunk.choices;
    if (!choice) return;
    const { content, reasoning_content, tool_calls } = choice.delta;
    if (content) this.#message.content += content;
    if (reasoning_content) this.#message.reasoning_content = (this.#message.reasoning_content ?? "") + reasoning_content;
    for (const { index, ...call } of tool_calls ?? []) {
      this.#message.tool_calls ??= [];
      const known = this.#message.tool_calls[index];
      if (known) known.function.arguments += call.function.arguments;
      else this.#message.tool_calls[index] = structuredClone(call);
    }
    this.#logprobs.push(...(choice.logprobs?.content ?? []));
    this.finish = choice.finish_reason ?? this.finish;
  }

  whole(end) {
    const message = this.#message;
    if (message.tool_calls && message.content === "") message.content = null;
    const logprobs = this.#logprobs.length > 0 ? { content: this.#logprobs, refusal: null } : null;
    const { id, created, model } = this.#first;
    const choices = [{ index: 0, message, finish_reason: this.finish, logprobs }];
    return { id, object: "chat.completion", created, model, choices, usage: usageOf(end), timings: timingsOf(end) };
  }
}

/** Turns events of one text answer into chunks. */
export class TextChunks {
  #head;
  #withUsage;
  /** Characters so far. */
  #at = 0;

  constructor(model, withUsage) {
    this.#head = head("cmpl", "text_completion", model);
    this.#withUsage = withUsage;
  }

  #chunk(text, finish_reason, logprobs = null) {
    this.#at += text.length;
    return { ...this.#head, choices: [{ index: 0, text, finish_reason, logprobs }] };
  }

  /** The prompt as the beginning of the answer. */
  echo(text) {
    return this.#chunk(text, null);
  }

  event({ type, text, logprobs }) {
    if (type !== "text" || (!text && !logprobs)) return [];
    return [this.#chunk(text, null, logprobs ? listsOf(entryOf(logprobs), this.#at) : null)];
  }

  end(end) {
    const last = { ...this.#chunk("", FINISH[end.finish]), timings: timingsOf(end) };
    return this.#withUsage ? [last, { ...this.#head, choices: [], usage: usageOf(end) }] : [last];
  }
}

/** A token as text completions have it: in lists, and as llama-server has it in `content`. */
const listsOf = (entry, at) => ({
  content: [entry],
  tokens: [entry.token],
  token_logprobs: [entry.logprob],
  top_logprobs: [Object.fromEntries((entry.top_logprobs ?? []).map((top) => [top.token, top.logprob]))],
  text_offset: [at],
});

export class TextAnswer {
  #text = "";
  #logprobs = null;
  #first = null;

  add(chunk) {
    this.#first ??= chunk;
    const [choice] = chunk.choices;
    if (!choice) return;
    this.#text += choice.text;
    for (const [key, list] of Object.entries(choice.logprobs ?? {})) {
      this.#logprobs ??= {};
      this.#logprobs[key] = [...(this.#logprobs[key] ?? []), ...list];
    }
    this.finish = choice.finish_reason ?? this.finish;
  }

  whole(end) {
    const { id, created, model } = this.#first;
    const choices = [{ index: 0, text: this.#text, finish_reason: this.finish, logprobs: this.#logprobs }];
    return { id, object: "text_completion", created, model, choices, usage: usageOf(end), timings: timingsOf(end) };
  }
}

const head = (kind, object, model) => ({ id: identifier(kind), object, created: Math.floor(Date.now() / 1000), model });

/** Not by `randomUUID`, which pages without https lack. */
function identifier(kind) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `${kind}-${[...bytes].map((b) => b.toString(16).padStart(2, "0")).join("")}`;
}
