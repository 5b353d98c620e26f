// OpenAI's shapes: requests to the engine's own, events to chunks and completions.

import { EngineError, badRequest } from "./errors.js";
import { allow, verify } from "./kinds.js";

/** Fields without effect that clients send. */
const IGNORED = ["model", "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prediction", "verbosity", "stream", "stream_options", "signal", "n"];

/** Fields of the engine, in camel case there. */
const SAMPLING = ["temperature", "top_p", "top_k", "min_p", "typical_p", "repeat_penalty", "repeat_last_n", "frequency_penalty", "presence_penalty", "seed", "ignore_eos", "lora", "context_drop", "interval"];

const CHAT = ["messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "max_completion_tokens", "logprobs", "top_logprobs", "return_progress", "reasoning_effort", "enable_thinking", "parse_special", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"];
const BOTH = ["max_tokens", "stop", "logit_bias", "grammar", "context_shift", "n_keep", ...SAMPLING, ...IGNORED];

/** Fields common to chat and text completions. */
export function common(request, known) {
  allow(request, [...known, ...BOTH]);
  const out = {};
  for (const key of SAMPLING) out[key.replace(/_(.)/g, (_, c) => c.toUpperCase())] = request[key] ?? undefined;
  out.maxTokens = request.max_completion_tokens ?? request.max_tokens;
  out.stop = [request.stop ?? []].flat();
  if (!out.stop.every((s) => typeof s === "string" && s !== "")) throw badRequest("stop: expected texts");
  out.logitBias = Object.entries(request.logit_bias ?? {}).map(([id, bias]) => [Number(id), Number(bias)]);
  if (request.context_shift) out.contextShift = request.n_keep ?? 0;
  if (request.grammar) out.rule = { grammar: request.grammar };
  return out;
}

/** The engine's request for a chat completion. */
export function chatRequest(request) {
  const out = { ...common(request, CHAT), chat: chatOf(request) };
  const format = request.response_format ?? { type: "text" };
  if (format.type === "json_object") out.rule = { jsonSchema: { type: "object" } };
  else if (format.type === "json_schema") out.rule = { jsonSchema: format.json_schema?.schema ?? {} };
  else if (format.type !== "text") throw badRequest(`response_format: expected text, json_object or json_schema, found ${format.type}`);
  if (request.logprobs) out.logprobs = request.top_logprobs ?? 0;
  return { ...out, ...callsOf(request, out) };
}

/** The rule of an answer that has to consist of calls, or whose calls conform to the schemas of strict tools; it is that of the whole answer. */
function callsOf({ tool_choice: choice, parallel_tool_calls: parallel }, { rule, chat: { tools, enableThinking } }) {
  if (choice === "required" || choice?.function) {
    if (rule) throw badRequest("tool_choice: a forced call cannot be beside a response_format or grammar");
    // Small models call until their tokens run out, so several calls are for those who ask for them.
    return { calls: true, rule: { calls: { tools, name: choice.function?.name ?? null, parallel: parallel === true, mayReason: enableThinking !== false } } };
  }
  const strict = !rule && tools.some((tool) => (tool?.function ?? tool)?.strict === true);
  return strict ? { strict: true, rule: { strict: tools } } : {};
}

/** The part of a chat request that the template sees. */
export function chatOf(request) {
  if (!Array.isArray(request.messages)) throw badRequest("messages: expected a list");
  const { reasoning_effort: effort } = request;
  const { enable_thinking: thinking = effort === "none" ? false : undefined, ...variables } = { ...(effort && effort !== "none" && { reasoning_effort: effort }), ...request.chat_template_kwargs };
  verify({ enable_thinking: thinking, ...request });
  request.messages.forEach((message, i) => {
    // The usual template would write an image's address as if it were said.
    const other = message?.content?.find?.((part) => part && part.type !== "text");
    if (other) throw new EngineError("unsupported", `messages[${i}]: parts of type ${other.type} are not supported`);
  });
  if (request.add_generation_prompt && request.continue_final_message) throw badRequest("continue_final_message: expected false beside add_generation_prompt");
  const now = new Date();
  return {
    messages: request.messages,
    tools: request.tool_choice === "none" ? [] : (request.tools ?? []),
    enableThinking: request.enable_thinking ?? thinking ?? null,
    variables,
    parseSpecial: !!request.parse_special,
    addGenerationPrompt: request.add_generation_prompt,
    continueFinalMessage: request.continue_final_message,
    now: [now.getFullYear(), now.getMonth() + 1, now.getDate(), now.getHours(), now.getMinutes(), now.getSeconds()],
  };
}

export const FINISH = { stop: "stop", length: "length", context: "length", aborted: "stop" };

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
  ...(end.drafted > 0 && { draft_n: end.drafted, draft_n_accepted: end.accepted }),
  predicted_n: end.tokens,
  predicted_ms: end.restMs,
  predicted_per_second: end.tokensPerSecond,
});

/** OpenAI writes a probability of 0 so. */
const NEVER = -9999;

/** A token's entry; JSON has no infinity, so the engine says null. */
export const entryOf = ({ logprob, top_logprobs, ...rest }) => ({
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
  #withProgress;
  /** A call that has begun: only when it has ended is it known to be one. */
  #call = null;

  constructor(model, withUsage, withProgress) {
    this.#head = head("chatcmpl", "chat.completion.chunk", model);
    this.#withUsage = withUsage;
    this.#withProgress = withProgress;
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
      case "prompt":
        return this.#withProgress ? [{ ...this.#head, choices: [], prompt_progress: { total: event.total, processed: event.done } }] : [];
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

export const head = (kind, object, model) => ({ id: identifier(kind), object, created: Math.floor(Date.now() / 1000), model });

/** Not by `randomUUID`, which pages without https lack. */
function identifier(kind) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `${kind}-${[...bytes].map((b) => b.toString(16).padStart(2, "0")).join("")}`;
}
