// The chat page.

import { Engine, EngineError, inspect } from "./chaski/index.js";
import { Conversations } from "./conversations.js";
import { bytes, describe, progressText } from "./format.js";
import { markdown } from "./markdown.js";

const $ = (id) => document.getElementById(id);
const conversations = new Conversations();
let [engine, loading, answering, files] = [null, null, null, []];

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
  loading?.abort();
  loading = new AbortController();
  await engine?.close();
  engine = null;
  ready();
  $("cancel").hidden = $("progress").hidden = false;
  $("load").disabled = true;
  $("progress").removeAttribute("value");
  report("");
  try {
    engine = await Engine.create({ model: source(), ...options(), signal: loading.signal, onProgress: show });
    const { model, device, loading: times } = engine.info();
    report(`Ready after ${(times.totalMs / 1000).toFixed(1)} s; ${bytes(engine.memory().total)} of GPU memory.`);
    $("loaded").textContent = `${model.file}: ${model.description}${device.name ? ` on ${device.name}` : ""}`;
  } catch (error) {
    report(explain(error), true);
  } finally {
    loading = null;
    $("cancel").hidden = $("progress").hidden = true;
    $("load").disabled = false;
    ready();
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
$("source").addEventListener("input", () => take([]));

function take(chosen) {
  files = chosen;
  if (files.length > 0) report(files.map((f) => `${f.name}, ${bytes(f.size)}`).join("\n"));
}

for (const type of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(type, (event) => {
    event.preventDefault();
    $("model").classList.toggle("over", type === "dragover");
    if (type === "drop" && event.dataTransfer.files.length > 0) take([...event.dataTransfer.files]);
  });
}

// ---- the conversation

function ready() {
  const can = engine !== null && answering === null;
  $("text").disabled = engine === null;
  $("send").disabled = !can;
  $("again").disabled = !can || conversations.current.messages.at(-1)?.role !== "assistant";
  $("stop").hidden = answering === null;
  if (engine === null) $("loaded").textContent = "No model is loaded.";
}

function item(message) {
  const li = document.createElement("li");
  li.dataset.role = message.role;
  fill(li, message);
  $("log").append(li);
  return li;
}

function fill(li, { role, content, reasoning }) {
  const who = Object.assign(document.createElement("span"), { className: "visually-hidden", textContent: role === "user" ? "You: " : "Answer: " });
  const parts = [who];
  if (reasoning) {
    const details = document.createElement("details");
    details.append(Object.assign(document.createElement("summary"), { textContent: "Thoughts" }), reasoning);
    parts.push(details);
  }
  parts.push(role === "user" ? content : markdown(content));
  li.replaceChildren(...parts);
}

function draw() {
  $("log").replaceChildren();
  conversations.current.messages.forEach(item);
  $("conversations").replaceChildren(
    ...conversations.all.map((c) => {
      const li = document.createElement("li");
      const open = Object.assign(document.createElement("button"), { type: "button", textContent: conversations.title(c) });
      if (c === conversations.current) open.setAttribute("aria-current", "true");
      open.addEventListener("click", () => (conversations.choose(c.id), draw()));
      const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "×", ariaLabel: "Delete this conversation" });
      remove.addEventListener("click", () => (conversations.remove(c.id), draw()));
      li.append(open, remove);
      return li;
    }),
  );
  ready();
}

const number = (id) => ($(id).value === "" ? undefined : Number($(id).value));

async function answer() {
  const { current } = conversations;
  const system = $("system").value.trim();
  const messages = [...(system ? [{ role: "system", content: system }] : []), ...current.messages.map(({ role, content }) => ({ role, content }))];
  const message = { role: "assistant", content: "" };
  answering = new AbortController();
  ready();
  const li = item(message);
  const request = {
    messages,
    stream: true,
    temperature: number("temperature"),
    top_p: number("top-p"),
    top_k: number("top-k"),
    max_tokens: number("max-tokens"),
    seed: number("seed"),
  };
  try {
    for await (const chunk of engine.chat.completions.create(request, { signal: answering.signal })) {
      const delta = chunk.choices[0]?.delta ?? {};
      message.content += delta.content ?? "";
      if (delta.reasoning_content) message.reasoning = (message.reasoning ?? "") + delta.reasoning_content;
      fill(li, message);
      li.scrollIntoView({ block: "end" });
    }
    const s = engine.stats();
    $("stats").textContent =
      `Prompt: ${s.promptTokens} tokens (${s.cachedTokens} in the cache), ${s.promptTokensPerSecond.toFixed(1)}/s. ` +
      `Answer: ${s.tokens} tokens, ${s.tokensPerSecond.toFixed(1)}/s. First after ${Math.round(s.timeToFirstTokenMs)} ms.`;
  } catch (error) {
    $("stats").textContent = error.code === "aborted" ? "Stopped." : explain(error);
  } finally {
    answering = null;
    if (message.content !== "" || message.reasoning) current.messages.push(message);
    else li.remove();
    conversations.save();
    draw();
    $("text").focus();
  }
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const content = $("text").value.trim();
  if (content === "" || $("send").disabled) return;
  conversations.current.messages.push({ role: "user", content });
  conversations.save();
  $("text").value = "";
  draw();
  answer();
});

$("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("ask").requestSubmit();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") answering?.abort();
});
$("stop").addEventListener("click", () => answering?.abort());
$("again").addEventListener("click", () => {
  conversations.current.messages.pop();
  draw();
  answer();
});
$("new").addEventListener("click", () => {
  conversations.add();
  draw();
});

draw();
