// The chat page.

import { Engine, EngineError, inspect } from "./chaski/index.js";
import { Conversations } from "./conversations.js";
import { bytes, describe, progressText } from "./format.js";
import { Message } from "./message.js";

const $ = (id) => document.getElementById(id);
const conversations = new Conversations();
let [engine, loading, files] = [null, null, []];
/** The answer in progress: its conversation, and a function that stops it. */
let answering = null;

// ---- the model

const source = () => (files.length > 0 ? files : $("source").value.trim());
const options = () => ({ contextLength: Number($("context").value) || undefined });

function report(text, isError = false) {
  $("report").textContent = text;
  $("report").classList.toggle("error", isError);
}

function explain(error) {
  if (error instanceof EngineError && error.code === "aborted") return "Cancelled.";
  return error.hint ? `${error.message}\n${error.hint}` : String(error.message ?? error);
}

$("inspect").addEventListener("click", async () => {
  if (!$("model").reportValidity()) return;
  report("Reading the head of the file ...");
  try {
    const found = await inspect(source(), options());
    report(`${describe(found)}\n${found.fits ? "It fits." : `It does not fit: ${found.reasons.join("; ")}.`}`);
  } catch (error) {
    report(explain(error), true);
  }
});

$("model").addEventListener("submit", async (event) => {
  event.preventDefault();
  const pressed = document.activeElement === $("load");
  loading?.abort();
  loading = new AbortController();
  await engine?.close();
  engine = null;
  ready();
  $("cancel").hidden = $("progress").hidden = false;
  $("load").disabled = true;
  $("progress").removeAttribute("value");
  // Ten reports a second are for the eye; the last one is announced.
  $("report").ariaLive = "off";
  report("");
  try {
    engine = await Engine.create({ model: source(), ...options(), signal: loading.signal, onProgress: show });
    const { model, device, loading: times } = engine.info();
    $("report").ariaLive = "polite";
    report(`Ready after ${(times.totalMs / 1000).toFixed(1)} s; ${bytes(engine.memory().total)} of ${device.kind === "cpu" ? "" : "GPU "}memory.`);
    $("loaded").textContent = `${model.file}: ${model.description}${device.name ? ` on ${device.name}` : ""}`;
  } catch (error) {
    $("report").ariaLive = "polite";
    report(explain(error), true);
  } finally {
    loading = null;
    // A button that is disabled or hidden loses the focus; who went elsewhere meanwhile stays there.
    const { activeElement } = document;
    const lost = activeElement === $("cancel") || (pressed && [document.body, $("load")].includes(activeElement));
    $("cancel").hidden = $("progress").hidden = true;
    $("load").disabled = false;
    ready();
    if (lost) $(engine ? "text" : "load").focus();
  }
});

function show(progress) {
  const bar = $("progress");
  if (progress.total) Object.assign(bar, { max: progress.total, value: progress.loaded });
  else bar.removeAttribute("value");
  report(progressText(progress));
}

$("cancel").addEventListener("click", () => loading?.abort());
$("file").addEventListener("change", () => take([...$("file").files]));
$("source").addEventListener("input", () => {
  $("file").value = "";
  take([]);
});

function take(chosen) {
  if (files.length > 0 || chosen.length > 0) report(chosen.map((f) => `${f.name}, ${bytes(f.size)}`).join("\n"));
  files = chosen;
  // A file needs no address.
  $("source").required = files.length === 0;
}

for (const type of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(type, (event) => {
    // Text may be dragged, too: into a field.
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    $("model").classList.toggle("over", type === "dragover");
    if (type !== "drop") return;
    $("file").files = event.dataTransfer.files;
    take([...event.dataTransfer.files]);
  });
}

// ---- the conversation

function ready() {
  const can = engine !== null && answering === null;
  $("text").disabled = engine === null;
  $("send").disabled = !can;
  $("again").disabled = !can || conversations.current.messages.length === 0;
  $("stop").hidden = answering === null;
  if (engine === null) $("loaded").textContent = "No model is loaded.";
}

function item(message) {
  const shown = new Message(message.role);
  shown.show(message);
  $("log").append(shown.element);
  return shown;
}

/** True if the end of the page is in view; otherwise the reader's scroll position is kept. */
function atEnd() {
  const { scrollHeight, scrollTop, clientHeight } = document.scrollingElement;
  return scrollHeight - scrollTop - clientHeight < 100;
}

function keep(conversation) {
  if (!conversations.save(conversation)) $("stats").textContent = "This browser does not let the page keep the conversation.";
}

/** The whole conversation: only when it is another one, since what is put here is read out. */
function draw() {
  $("log").replaceChildren();
  conversations.current.messages.forEach(item);
  if (answering?.conversation === conversations.current) $("log").append(answering.shown.element);
  drawList();
}

function drawList() {
  const list = $("conversations");
  const before = [...list.children];
  const at = before.findIndex((li) => li.contains(document.activeElement));
  const button = at < 0 ? -1 : [...before[at].children].indexOf(document.activeElement);
  list.replaceChildren(
    ...conversations.all.map((c) => {
      const li = document.createElement("li");
      li.dataset.id = c.id;
      const title = conversations.title(c);
      const open = Object.assign(document.createElement("button"), { type: "button", textContent: title });
      if (c === conversations.current) open.setAttribute("aria-current", "true");
      open.addEventListener("click", () => (conversations.choose(c.id), draw()));
      const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "×", ariaLabel: `Delete “${title}”` });
      remove.addEventListener("click", () => (conversations.remove(c.id), draw()));
      li.append(open, remove);
      return li;
    }),
  );
  if (at >= 0) {
    // The focus stays with its conversation; where that was deleted, with the place in the list.
    const now = [...list.children];
    const same = now.find((li) => li.dataset.id === before[at].dataset.id);
    (same?.children[button] ?? now[Math.min(at, now.length - 1)].firstChild).focus();
  }
  ready();
}

/** Checks that the engine accepts the settings; otherwise the browser marks the first invalid one. */
function valid() {
  const wrong = [...$("settings").querySelectorAll("input")].find((input) => !input.checkValidity());
  if (!wrong) return true;
  // The browser points at nothing that is folded away.
  $("settings").open = true;
  return wrong.reportValidity();
}

const number = (id) => ($(id).value === "" ? undefined : Number($(id).value));

/** Says that the context was full, before an answer or by it. */
function aboutContext(stats, finish, maxTokens = Infinity) {
  const { droppedMessages: n } = stats;
  const dropped = n > 0 ? `\nThe context is full: the model no longer sees the ${n} oldest messages.` : "";
  const cut = finish === "length" && stats.tokens < maxTokens;
  return dropped + (cut ? "\nThe answer is cut because the context is full; the next question goes on without the oldest messages." : "");
}

/** Answers the last question; `before` is the answer that stands there if this one comes to nothing. */
async function answer(before = null) {
  const { current } = conversations;
  const system = $("system").value.trim();
  const messages = [...(system ? [{ role: "system", content: system }] : []), ...current.messages.map(({ role, content }) => ({ role, content }))];
  const message = { role: "assistant", content: "" };
  const [stop, shown] = [new AbortController(), item(message)];
  answering = { conversation: current, stop, shown };
  const writing = $("ask").contains(document.activeElement);
  ready();
  $("log").ariaBusy = "true";
  shown.element.scrollIntoView({ block: "end" });
  const request = {
    messages,
    stream: true,
    temperature: number("temperature"),
    top_p: number("top-p"),
    top_k: number("top-k"),
    max_tokens: number("max-tokens"),
    seed: number("seed"),
  };
  let [result, failed, finish] = [];
  try {
    for await (const chunk of engine.chat.completions.create(request, { signal: stop.signal })) {
      const delta = chunk.choices[0]?.delta ?? {};
      finish = chunk.choices[0]?.finish_reason ?? finish;
      message.content += delta.content ?? "";
      if (delta.reasoning_content) message.reasoning = (message.reasoning ?? "") + delta.reasoning_content;
      const follow = atEnd();
      shown.show(message);
      if (follow) shown.element.scrollIntoView({ block: "end" });
    }
    const s = engine.stats();
    result =
      `Prompt: ${s.promptTokens} tokens (${s.cachedTokens} in the cache), ${s.promptTokensPerSecond.toFixed(1)}/s. ` +
      `Answer: ${s.tokens} tokens, ${s.tokensPerSecond.toFixed(1)}/s. First after ${Math.round(s.timeToFirstTokenMs)} ms.` +
      aboutContext(s, finish, request.max_tokens);
  } catch (error) {
    failed = error.code !== "aborted";
    result = failed ? explain(error) : "Stopped.";
  } finally {
    answering = null;
    const final = message.content !== "" || message.reasoning ? message : before;
    if (final) current.messages.push(final);
    if (final) shown.show(final);
    else shown.element.remove();
    // A question that cannot be answered would make those after it fail, too: it may be changed and sent again.
    if (failed && !final && current === conversations.current && $("text").value === "") $("text").value = takeBack();
    $("log").ariaBusy = "false";
    drawList();
    $("stats").textContent = result;
    keep(current);
    // The button that had the focus may be gone; who went elsewhere stays there.
    if (writing && (document.activeElement === document.body || $("ask").contains(document.activeElement))) $("text").focus();
  }
}

/** Removes the question at the end of the conversation, and returns its text. */
function takeBack() {
  $("log").lastChild.remove();
  return conversations.current.messages.pop().content;
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const content = $("text").value.trim();
  if (content === "" || $("send").disabled || !valid()) return;
  const message = { role: "user", content };
  const { messages } = conversations.current;
  // Many chat templates refuse two questions in a row: this one replaces one that has no answer.
  if (messages.at(-1)?.role === "user") takeBack();
  messages.push(message);
  $("text").value = "";
  item(message);
  drawList();
  keep();
  answer();
});

$("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("ask").requestSubmit();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") answering?.stop.abort();
});
$("stop").addEventListener("click", () => answering?.stop.abort());
$("again").addEventListener("click", () => {
  if (!valid()) return;
  const { messages } = conversations.current;
  const before = messages.at(-1).role === "assistant" ? messages.pop() : null;
  if (before) $("log").lastChild.remove();
  answer(before);
});
$("new").addEventListener("click", () => {
  conversations.add();
  draw();
});

addEventListener("storage", ({ key }) => {
  const before = conversations.current;
  if (!conversations.changed(key, answering?.conversation)) return;
  if (conversations.current === before) drawList();
  else draw();
});

draw();
