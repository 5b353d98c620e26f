// An answer in progress: what comes of it, shown once a frame, and kept so that a reload loses none of it.

/** The page may spend a quarter of its time on showing an answer. */
const REST = 3;
/** How often a part of an answer is kept, in milliseconds. */
const KEEP = 1000;

/** Runs a function at most once a frame, and less often if it takes long. */
export class Frames {
  #f;
  #due = false;
  #next = 0;
  #timer = null;

  constructor(f) {
    this.#f = f;
  }

  request() {
    if (this.#due) return;
    this.#due = true;
    const wait = this.#next - performance.now();
    // A hidden page has no frames; it is shown as it is when it comes back.
    if (wait > 0) this.#timer = setTimeout(() => requestAnimationFrame(() => this.#run()), wait);
    else requestAnimationFrame(() => this.#run());
  }

  #run() {
    if (!this.#due) return;
    this.#due = false;
    const begun = performance.now();
    this.#f();
    const end = performance.now();
    this.#next = end + REST * (end - begun);
  }

  stop() {
    this.#due = false;
    clearTimeout(this.#timer);
  }
}

/** Adds a delta to the message of an answer. */
export function add(message, { content, reasoning_content: reasoning, tool_calls: calls = [] }) {
  message.content += content ?? "";
  if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
  for (const { index, id, function: f } of calls) {
    message.calls ??= [];
    const call = (message.calls[index] ??= { id, name: f.name, arguments: "" });
    call.arguments += f.arguments ?? "";
  }
}

/** Drops calls whose arguments broke off. */
export function wholeCalls(message) {
  const isWhole = ({ arguments: text }) => {
    try {
      return Boolean(JSON.parse(text));
    } catch {
      return false;
    }
  };
  const calls = message.calls?.filter(isWhole) ?? [];
  message.calls = calls.length > 0 ? calls : undefined;
}

const fence = (text) => "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));

/** A message's text with the files that came with it. */
function whole({ content, files = [] }) {
  const parts = files.map(({ name, text }) => `File \`${name}\`:\n${fence(text)}\n${text}\n${fence(text)}`);
  return [...parts, content].filter(Boolean).join("\n\n");
}

/** A message as the model reads it. */
function told(message) {
  const { role, content, calls, call } = message;
  if (role === "tool") return { role, content, tool_call_id: call };
  if (!calls) return { role, content: whole(message) };
  return { role, content, tool_calls: calls.map(({ id, name, arguments: text }) => ({ id, type: "function", function: { name, arguments: text } })) };
}

/** The messages of a path. Many chat templates refuse two questions in a row: one without an answer is left out. */
export function messagesOf(path, system) {
  const asked = path.filter((m, i) => m.role !== "user" || path[i + 1]?.role !== "user");
  return [...(system ? [{ role: "system", content: system }] : []), ...asked.map(told)];
}

/** One answer: its conversation, its node there, and what stops it. */
export class Answering {
  constructor(conversation, parent) {
    Object.assign(this, { conversation, parent, stop: new AbortController(), began: performance.now() });
    this.message = { role: "assistant", content: "" };
    this.progress = null;
    this.finish = null;
    this.#kept = performance.now();
  }

  #kept;
  #thoughtFrom = null;

  get isEmpty() {
    const { content, reasoning, calls } = this.message;
    return content === "" && !reasoning && !calls;
  }

  /** True if it is time to keep what there is. */
  get isDue() {
    if (performance.now() - this.#kept < KEEP) return false;
    this.#kept = performance.now();
    return true;
  }

  /** Takes a chunk as OpenAI has them. */
  take(chunk) {
    const { message } = this;
    const [choice] = chunk.choices ?? [];
    if (chunk.prompt_progress) this.progress = chunk.prompt_progress;
    this.finish = choice?.finish_reason ?? this.finish;
    add(message, choice?.delta ?? {});
    if (message.reasoning && message.content === "" && !message.calls) {
      this.#thoughtFrom ??= performance.now();
      message.thoughtMs = Math.round(performance.now() - this.#thoughtFrom);
    }
  }
}
