// The engine behind OpenAI's HTTP, without a network: clients get it as their `fetch`.

import { EngineError } from "./errors.js";

const json = (value, status = 200) => new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } });

/** Statuses of errors, and OpenAI's words for them; others are the engine's own fault. */
const STATUS = { bad_request: 400, unsupported: 400, context_overflow: 400, template: 400, no_template: 400, not_found: 404, closed: 503, device_lost: 503, worker_failed: 503, out_of_memory: 503 };
const CODES = { context_overflow: "context_length_exceeded" };

function body(error) {
  const { code, message, hint } = EngineError.from(error);
  const status = STATUS[code] ?? 500;
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return [status, { error: { message: hint ? `${message} (${hint})` : message, type, param: null, code: CODES[code] ?? code } }];
}

function refusal(error) {
  const [status, value] = body(error);
  return json(value, status);
}

const none = (message) => new EngineError("not_found", message);

/** Chunks as server-sent events. */
function events(chunks, stop) {
  const iterator = chunks[Symbol.asyncIterator]();
  const bytes = (text) => new TextEncoder().encode(`data: ${text}\n\n`);
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await iterator.next();
        controller.enqueue(bytes(done ? "[DONE]" : JSON.stringify(value)));
        if (done) controller.close();
      } catch (error) {
        if (stop.signal.aborted) return controller.error(aborted(stop.signal));
        controller.enqueue(bytes(JSON.stringify(body(error)[1])));
        controller.close();
      }
    },
    cancel() {
      stop.abort();
      return iterator.return?.();
    },
  });
}

const aborted = (signal) => signal.reason ?? new DOMException("the request was aborted", "AbortError");

/** The first piece of a stream, before its response begins: what is refused then has a status. */
async function begun(stream) {
  const iterator = stream[Symbol.asyncIterator]();
  const first = await iterator.next();
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => (iterator.first ? iterator.next() : ((iterator.first = true), Promise.resolve(first))),
      return: () => iterator.return?.(),
    }),
  };
}

const modelOf = (engine) => ({ id: engine.info().model.file, object: "model", created: 0, owned_by: "chaski", max_model_len: engine.info().contextLength });

/** Answers a request as an OpenAI server would. Hosts do not matter: only the end of the path does. */
export async function answer(engine, input, init) {
  const request = new Request(input instanceof Request ? input : new URL(input, "http://localhost"), init);
  const path = /\/(chat\/completions|completions|embeddings|rerank|reranking|models)(?:\/(.*))?$/.exec(new URL(request.url).pathname);
  const [, what, rest] = path ?? [];
  const { method, signal } = request;
  const stop = new AbortController();
  const abort = () => stop.abort(signal.reason);
  if (signal.aborted) throw aborted(signal);
  signal.addEventListener("abort", abort);
  try {
    if (what === "models" && method === "GET") {
      const model = modelOf(engine);
      if (rest === undefined) return json({ object: "list", data: [model] });
      return rest === encodeURIComponent(model.id) || rest === model.id ? json(model) : refusal(none(`there is no model ${rest}`));
    }
    if (!what || what === "models" || rest !== undefined) return refusal(none(`${method} ${new URL(request.url).pathname} is not supported`));
    if (method !== "POST") return json({ error: { message: "expected POST", type: "invalid_request_error", param: null, code: "method_not_allowed" } }, 405);
    let fields;
    try {
      fields = await request.json();
    } catch (error) {
      if (signal.aborted) throw aborted(signal);
      return refusal(new EngineError("bad_request", `the body is no JSON: ${error.message}`));
    }
    const call = { "chat/completions": engine.chat.completions, completions: engine.completions, embeddings: engine.embeddings, rerank: engine.reranking, reranking: engine.reranking }[what];
    const found = call.create(fields, { signal: stop.signal });
    if (!/completions$/.test(what) || !fields?.stream) return json(await found);
    const headers = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
    return new Response(events(await begun(found), stop), { headers });
  } catch (error) {
    if (signal.aborted) throw aborted(signal);
    return refusal(error);
  }
}
