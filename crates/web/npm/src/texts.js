// Text completions in OpenAI's shapes; loaded with the first of them.

import { badRequest } from "./errors.js";
import { isU32 } from "./kinds.js";
import { FINISH, common, entryOf, head, timingsOf, usageOf } from "./openai.js";

const TEXT = ["prompt", "echo", "logprobs"];

/** The engine's request for a text completion. */
export function textRequest(request) {
  const out = common(request, TEXT);
  const { prompt } = request;
  if (typeof prompt === "string") out.prompt = prompt;
  else if (Array.isArray(prompt) && prompt.every(isU32)) out.tokens = prompt;
  else throw badRequest("prompt: expected a text or a list of tokens");
  if (typeof request.logprobs === "number") out.logprobs = request.logprobs;
  return out;
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
