// The chat page: conversations with a model. The model is that of `model.js`, of which each site has its own: it fills the
// form `#model`, calls the function that its constructor gets when `isReady` or `name` changes, and has `answer(request,
// signal)`, which gives chunks as OpenAI has them, `stats()` of the last answer, and `explain(error)`.

import { Conversations, openCall } from "./conversations.js";
import { Message } from "./message.js";
import { Model } from "./model.js";

const $ = (id) => document.getElementById(id);
const conversations = new Conversations();
/** The answer in progress: its conversation, its message on the page, and what stops it. */
let answering = null;
const PLACEHOLDER = $("text").placeholder;
const model = new Model(() => ready());

function ready() {
  const can = model.isReady && answering === null;
  const { messages } = conversations.current;
  const call = openCall(messages);
  $("text").disabled = !model.isReady;
  $("text").placeholder = call ? `Result of ${call.name}` : PLACEHOLDER;
  $("send").disabled = !can;
  $("again").disabled = !can || messages.length === 0 || (call && messages.at(-1).role === "tool");
  $("stop").hidden = answering === null;
  const name = model.name ?? "No model is loaded.";
  // A change is read out.
  if ($("loaded").textContent !== name) $("loaded").textContent = name;
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

/** The functions that the model may call; null if the setting is none. */
function tools() {
  const text = $("tools").value.trim();
  try {
    const list = text === "" ? [] : JSON.parse(text);
    return Array.isArray(list) ? list : null;
  } catch {
    return null;
  }
}

/** Checks that the model accepts the settings; otherwise the browser marks the first invalid one. */
function valid() {
  $("tools").setCustomValidity(tools() ? "" : "A list of functions in JSON, as OpenAI's API has it");
  const wrong = [...$("settings").querySelectorAll("input, textarea")].find((input) => !input.checkValidity());
  if (!wrong) return true;
  // The browser points at nothing that is folded away.
  $("settings").open = true;
  return wrong.reportValidity();
}

const number = (id) => ($(id).value === "" ? undefined : Number($(id).value));

/** Says that the context was full, before an answer or by it. */
function aboutContext(stats, finish, maxTokens = Infinity) {
  const { droppedMessages: n, contextTokens = 0 } = stats;
  const dropped = n > 0 ? `\nThe context is full: the model no longer sees the ${n} oldest messages.` : "";
  const cut = finish === "length" && stats.tokens < maxTokens && stats.promptTokens + stats.tokens >= contextTokens - 1;
  return dropped + (cut ? "\nThe answer is cut because the context is full; the next question goes on without the oldest messages." : "");
}

/** A message as the model reads it. */
function told({ role, content, calls, id }) {
  if (role === "tool") return { role, content, tool_call_id: id };
  if (!calls) return { role, content };
  const call = ({ id, name, arguments: text }) => ({ id, type: "function", function: { name, arguments: text } });
  return { role, content, tool_calls: calls.map(call) };
}

/** Adds a delta to the message of an answer. */
function add(message, { content, reasoning_content: reasoning, tool_calls: calls = [] }) {
  message.content += content ?? "";
  if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
  for (const { index, id, function: f } of calls) {
    message.calls ??= [];
    const call = (message.calls[index] ??= { id, name: f.name, arguments: "" });
    call.arguments += f.arguments ?? "";
  }
}

/** Drops calls whose arguments broke off. */
function wholeCalls(message) {
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

/** Answers the last question; `before` is the answer that stands there if this one comes to nothing. */
async function answer(before = null) {
  const { current } = conversations;
  const system = $("system").value.trim();
  const messages = [...(system ? [{ role: "system", content: system }] : []), ...current.messages.map(told)];
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
    tools: tools().length > 0 ? tools() : undefined,
  };
  let [result, failed, finish] = [];
  try {
    for await (const chunk of model.answer(request, stop.signal)) {
      finish = chunk.choices[0]?.finish_reason ?? finish;
      add(message, chunk.choices[0]?.delta ?? {});
      const follow = atEnd();
      shown.show(message);
      if (follow) shown.element.scrollIntoView({ block: "end" });
    }
    const s = model.stats();
    result =
      `Prompt: ${s.promptTokens} tokens (${s.cachedTokens} in the cache), ${s.promptTokensPerSecond.toFixed(1)}/s. ` +
      `Answer: ${s.tokens} tokens, ${s.tokensPerSecond.toFixed(1)}/s. First after ${Math.round(s.timeToFirstTokenMs)} ms.` +
      aboutContext(s, finish, request.max_tokens);
  } catch (error) {
    failed = !stop.signal.aborted;
    result = failed ? model.explain(error) : "Stopped.";
  } finally {
    answering = null;
    wholeCalls(message);
    const final = message.content !== "" || message.reasoning || message.calls ? message : before;
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
  const { messages } = conversations.current;
  const call = openCall(messages);
  const message = call ? { role: "tool", content, id: call.id, name: call.name } : { role: "user", content };
  // Many chat templates refuse two questions in a row: this one replaces one that has no answer.
  if (messages.at(-1)?.role === "user") takeBack();
  messages.push(message);
  $("text").value = "";
  item(message);
  drawList();
  keep();
  // The model goes on when all that it called has come back.
  if (!openCall(messages)) answer();
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
