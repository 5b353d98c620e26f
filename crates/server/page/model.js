// The chat page's model on a server: one of those that it offers. A page on a site of its own has another file of this
// name, with the engine in the page.

import { events } from "./events.js";
import { recall, remember } from "./storage.js";
import { recent } from "./turns.js";

const $ = (id) => document.getElementById(id);
const KEY = "chaski.key";
const MODEL = "chaski.model";

/** An error in words, with a name for programs. */
class ServerError extends Error {
  constructor(code, message, more = {}) {
    super(message);
    Object.assign(this, { code, ...more });
  }
}

function report(text, isError = false) {
  $("report").textContent = text;
  $("report").classList.toggle("error", isError);
}

/** The error of a response: the server's words where it has some. */
async function refusal(response) {
  const { error } = await response.json().catch(() => ({}));
  const seconds = Number(response.headers.get("retry-after"));
  const wait = seconds > 0 ? ` Try again in ${seconds} s.` : "";
  const said = typeof error === "string" ? error : error?.message;
  const message = said ? `The server says: ${said}.${wait}` : `The server answers with status ${response.status}.${wait}`;
  return new ServerError(response.status === 401 ? "key" : (error?.code ?? response.status), message, { seconds, error });
}

const pause = (seconds, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });

export class Model {
  headline = "No model answers yet";
  lead = "This page talks with the models of its server.";
  moreLabel = "The server …";
  busy = null;
  error = null;
  #changed;
  #isReady = false;
  #key = recall(KEY) ?? "";
  #models = [];
  #stats = null;

  constructor(changed) {
    this.#changed = changed;
    $("model").append($("of-server").content.cloneNode(true));
    $("key").value = this.#key;
    $("model").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#key = $("key").value.trim();
      remember(KEY, this.#key);
      this.#connect(true);
    });
    $("source").addEventListener("change", () => {
      remember(MODEL, $("source").value);
      this.#changed();
    });
    $("source").addEventListener("focus", () => this.#list().catch(() => {}));
  }

  start() {
    this.#connect();
  }

  get isReady() {
    return this.#isReady;
  }

  get label() {
    return this.#model()?.id ?? "Models of this server";
  }

  get contextTokens() {
    return this.#model()?.max_model_len ?? undefined;
  }

  /** The models that the server offers. */
  cards() {
    const state = ({ id }) => (id === $("source").value ? "loaded" : "stored");
    return this.#models.map((m) => ({ id: m.id, title: m.id, detail: detailOf(m), note: "", state: state(m), fits: null }));
  }

  choose(id) {
    $("source").value = id;
    $("source").dispatchEvent(new Event("change"));
  }

  get name() {
    const model = this.#model();
    if (!model) return null;
    const n = model.max_model_len;
    return n ? `${model.id}, a context of ${n} tokens` : model.id;
  }

  /** Chunks of an answer, as OpenAI has them. */
  async *answer(request, signal) {
    const begun = performance.now();
    const [response, nDropped] = await this.#ask(request, signal);
    let [first, usage, timings, ended] = [null, {}, {}, false];
    try {
      for await (const data of events(response.body)) {
        ended = data === "[DONE]";
        if (ended) break;
        const chunk = JSON.parse(data);
        if (chunk.error) throw new ServerError(chunk.error.code, `The server says: ${chunk.error.message}.`);
        usage = chunk.usage ?? usage;
        timings = chunk.timings ?? timings;
        const [choice] = chunk.choices ?? [];
        if (!choice && !chunk.prompt_progress) continue;
        // The first chunk only has the role.
        if (choice && choice.delta?.role === undefined) first ??= performance.now() - begun;
        yield chunk;
      }
    } catch (error) {
      throw signal.aborted || error instanceof ServerError ? error : broken();
    }
    // A server that ends closes its streams.
    if (!ended) throw broken();
    this.#stats = {
      promptTokens: usage.prompt_tokens ?? 0,
      cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
      promptTokensPerSecond: timings.prompt_per_second ?? 0,
      tokens: usage.completion_tokens ?? 0,
      tokensPerSecond: timings.predicted_per_second ?? 0,
      timeToFirstTokenMs: first ?? 0,
      droppedMessages: nDropped,
      contextTokens: this.contextTokens,
    };
    this.#list().catch(() => {});
  }

  stats() {
    return this.#stats;
  }

  explain(error) {
    if (error.name === "AbortError") return "Cancelled.";
    if (error.code === "key") {
      $("key-field").hidden = false;
      if (!$("models-dialog").open) $("models-dialog").showModal();
      $("key").focus();
      return this.#key ? "The server does not know this key." : "This server wants a key.";
    }
    if (error.code === "context_length_exceeded") return `${error.message} Please shorten the conversation.`;
    return String(error.message ?? error);
  }

  /** The response to a request, without the oldest messages if the context has no room for them, and their number. */
  async #ask(request, signal) {
    const body = { ...request, model: $("source").value, stream_options: { include_usage: true } };
    let [messages, more, whole] = [request.messages, 0, null];
    for (;;) {
      try {
        const response = await this.#fetch("v1/chat/completions", { method: "POST", body: JSON.stringify({ ...body, messages }), signal });
        return [response, request.messages.length - messages.length];
      } catch (error) {
        if (error.code === "model_loading") {
          await pause(error.seconds || 1, signal);
          continue;
        }
        if (error.code !== "context_length_exceeded") throw error;
        whole ??= { found: error.error.n_prompt_tokens, limit: error.error.n_ctx };
        const shorter = recent(request.messages, whole, more++, messages.length);
        if (!shorter) throw error;
        messages = shorter;
      }
    }
  }

  /** A response of the server that is none of an error. */
  async #fetch(path, options = {}) {
    const headers = { "content-type": "application/json", ...(this.#key && { authorization: `Bearer ${this.#key}` }) };
    let response;
    try {
      response = await fetch(new URL(path, document.baseURI), { ...options, headers, cache: "no-store", credentials: "omit" });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new ServerError("network", "The server cannot be reached. Is it still running?");
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }

  async #connect(pressed = false) {
    report("Asking the server for its models …");
    try {
      await this.#list();
      this.error = this.#models.length > 0 ? null : "This server offers no model that answers.";
      $("key-field").hidden = this.#key === "";
      if (pressed && !this.error) $("models-dialog").close();
    } catch (error) {
      this.#isReady = false;
      this.error = this.explain(error);
    }
    report(this.error ?? "", this.error !== null);
    this.#changed();
  }

  /** Shows the models as the server has them now; the chosen one stays. */
  async #list() {
    const { data } = await (await this.#fetch("v1/models")).json();
    const before = $("source").value || recall(MODEL);
    this.#models = data.filter(({ capabilities }) => capabilities?.includes("completion") ?? true);
    const option = ({ id, status }) => {
      const state = status?.failed ? " (cannot be loaded)" : { loaded: "", loading: " (is being loaded)" }[status?.value] ?? " (not loaded)";
      return new Option(id + state, id, false, id === before);
    };
    const options = this.#models.map(option);
    // Nothing moves while somebody chooses.
    if (!options.every((o, i) => o.isEqualNode($("source").options[i])) || options.length !== $("source").options.length) {
      $("source").replaceChildren(...options);
      if (this.#models.some(({ id }) => id === before)) $("source").value = before;
    }
    this.#isReady = this.#models.length > 0;
    this.#changed();
  }

  /** The chosen model. */
  #model() {
    return this.#models.find(({ id }) => id === $("source").value);
  }
}

/** State and context of a model, as the server has them. */
function detailOf({ status, max_model_len: n }) {
  const state = status?.failed ? "cannot be loaded" : ({ loaded: "loaded", loading: "is being loaded" }[status?.value] ?? "is loaded when it is asked");
  return n ? `${state} · context of ${n} tokens` : state;
}

const broken = () => new ServerError("network", "The connection to the server broke off before the end of the answer.");
