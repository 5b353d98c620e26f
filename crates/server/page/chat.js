// The chat page: conversations with a model. The model is that of `model.js`, of which each site has its own: it fills the
// form `#model`, calls the function that its constructor gets when anything below changes, and has
// - `isReady`, `name` (in full), `label` (in short), `contextTokens`, `start()`, which is called once the page is there;
// - `cards()`: models to choose from (`{ id, title, detail, note, state, fits, why }`), and `choose(id)`; `fits` is null where nothing is said, undefined where it is not known yet;
// - `busy`: null, or `{ text, share, cancel }` while it is being loaded; `error`: why it was not, as text;
// - `headline`, `lead`, `moreLabel`: what the first screen says while there is no model;
// - `answer(request, signal)`, which gives chunks as OpenAI has them, `stats()` of the last answer, `explain(error)`.

import { Answering, Frames, messagesOf, wholeCalls } from "./answer.js";
import { Composer } from "./composer.js";
import { Conversations, openCall } from "./conversations.js";
import { icon } from "./dom.js";
import { exportAll, exportJson, exportMarkdown, importFile, linkTo, linked } from "./exchange.js";
import { Log } from "./log.js";
import { measured } from "./message.js";
import { Model } from "./model.js";
import { notify } from "./notices.js";
import { Scroller } from "./scroller.js";
import { Settings } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { openStorage, tab } from "./storage.js";
import { Welcome } from "./welcome.js";

const $ = (id) => document.getElementById(id);
/** The conversation that is open, for a reload of this tab. */
const OPEN = "chaski.open";

for (const element of document.querySelectorAll("[data-icon]")) element.prepend(icon(element.dataset.icon));

const storage = await openStorage();
const conversations = await Conversations.open(storage);
const settings = new Settings(() => ready());
const model = new Model(() => ready());
const composer = new Composer(() => ready());
const log = new Log($("log"), {
  copy: ({ node }) => copyText(node.content),
  copyText,
  edit: (view) => view.edit((content) => change(view.node, content)),
  again: ({ node }) => canAnswer() && answer(conversations.current, node.parent),
  fork: ({ node }) => (conversations.fork(conversations.current, node), draw()),
  remove: ({ node }) => removeMessage(node),
  step: ({ node }, by) => step(node, by),
});
const scroller = new Scroller($("scroll"), $("content"), $("jump"));
scroller.isLog = () => $("welcome").hidden;
const welcome = new Welcome($("welcome"));
const sidebar = new Sidebar(
  conversations,
  {
    choose: (c) => (conversations.choose(c.id), draw(), sidebar.close()),
    rename: (c, title) => ((c.title = title || undefined), keep(c), ready()),
    remove: removeConversation,
  },
  () => answering?.conversation,
);
/** The answer in progress. */
let answering = null;
let hasComplained = false;
const PLACEHOLDER = $("text").placeholder;

async function copyText(text, button = null) {
  try {
    await navigator.clipboard.writeText(text);
    if (!button) return notify("Copied.");
    button.replaceChildren(icon("check"));
    setTimeout(() => button.replaceChildren(icon("copy")), 1500);
  } catch {
    notify("The browser does not let this page copy.");
  }
}

const canAnswer = () => model.isReady && answering === null && settings.valid();

/** Shows all that depends on the state of the model, of the answer and of the field. */
function ready() {
  const path = conversations.path();
  const call = openCall(path);
  $("text").placeholder = call ? `Result of ${call.name}` : model.isReady || model.busy ? PLACEHOLDER : "Choose a model first";
  $("send").disabled = !model.isReady || answering !== null || composer.isEmpty;
  $("send").hidden = answering !== null;
  $("stop").hidden = answering === null;
  $("model-label").textContent = model.label;
  const name = model.name ?? "No model is loaded.";
  // A change is read out.
  if ($("loaded").textContent !== name) $("loaded").textContent = name;
  const { busy, error } = model;
  $("busy").hidden = busy === null;
  if (busy) {
    if ($("busy-text").textContent !== busy.text) $("busy-text").textContent = busy.text;
    if (busy.share === undefined) $("progress").removeAttribute("value");
    else $("progress").value = busy.share;
    $("cancel").hidden = !busy.cancel;
  }
  $("trouble").hidden = !error || busy !== null;
  if ($("trouble-text").textContent !== (error ?? "")) $("trouble-text").textContent = error ?? "";
  const isEmpty = path.length === 0 && answering?.conversation !== conversations.current;
  $("welcome").hidden = !isEmpty;
  if (isEmpty) welcome.show(model, (text) => (composer.set(text), $("text").focus()), () => $("models-dialog").showModal());
  const { current } = conversations;
  const title = current.nodes.length > 0 ? conversations.title(current) : "";
  $("title").textContent = title;
  document.title = title ? `${title} · Chaski` : "Chaski";
  $("prompt-of-own").hidden = current.system === undefined;
}

async function keep(conversation) {
  if ((await conversations.save(conversation)) || hasComplained) return;
  hasComplained = true;
  notify("This browser does not let the page keep the conversation.");
}

/** Everything: what is shown already stays. */
function draw() {
  const { current } = conversations;
  const path = conversations.path();
  const live = answering?.conversation === current ? answering : null;
  log.show(current, path.filter((node) => node !== live?.message), (node) => conversations.siblings(current, node));
  if (live) $("log").append(live.view.element);
  $("log").ariaBusy = live ? "true" : "false";
  composer.show(current);
  tab.remember(OPEN, current.nodes.length > 0 ? current.id : null);
  drawList();
  if (path.length > 0 || live) scroller.toEnd();
  else scroller.toBegin();
}

function drawList() {
  sidebar.show();
  ready();
}

function removeConversation(conversation) {
  if (answering?.conversation === conversation) answering.stop.abort();
  const back = conversations.remove(conversation);
  draw();
  notify("The conversation was deleted.", ["Undo", () => (back(), draw())]);
}

function removeMessage(node) {
  const { current } = conversations;
  if (answering?.conversation === current) return;
  const back = conversations.cut(current, node);
  keep(current);
  draw();
  notify("The message was deleted, with what followed it.", ["Undo", () => (back(), conversations.choose(current.id), keep(current), draw())]);
}

function step(node, by) {
  const { current } = conversations;
  if (answering?.conversation === current) return;
  const all = conversations.siblings(current, node);
  const other = all[all.indexOf(node) + by];
  if (!other) return;
  conversations.select(current, other);
  keep(current);
  const follows = scroller.follows;
  draw();
  scroller.follows = follows;
}

/** Sends another version of a question. */
function change(node, content) {
  if (!canAnswer()) return;
  const { current } = conversations;
  const { role, files, call, name } = node;
  conversations.append(current, { role, content, files, call, name }, node.parent);
  draw();
  keep(current);
  if (!openCall(conversations.path())) answer(current);
}

/** Says that the context was full by an answer. */
const cutBy = (stats, finish, maxTokens = Infinity) => {
  if (finish !== "length") return undefined;
  const { contextTokens = 0, promptTokens, tokens } = stats;
  return tokens < maxTokens && promptTokens + tokens >= contextTokens - 1 ? "context" : "length";
};

/** Shows what there is of the answer, in its turn. */
const frames = new Frames(() => {
  if (!answering) return;
  const { view, message, progress } = answering;
  view.show(message, false);
  if (answering.isEmpty) {
    const { processed = 0, total = 0 } = progress ?? {};
    const share = total > 0 ? processed / total : 1;
    if (share < 1) view.wait("Reading the conversation", share);
    else view.wait("Waiting for the first word");
  } else view.wait(null);
  if (!answering.isEmpty) scroller.grown();
});

/** Answers the message `parent` of a conversation, by default its last one. */
async function answer(conversation, parent = conversation.leaf) {
  const before = conversation.leaf;
  conversation.leaf = parent;
  const path = conversations.path(conversation);
  const mine = new Answering(conversation, parent);
  answering = mine;
  mine.view = log.begin("assistant");
  mine.view.wait("Waiting for the model");
  const writing = $("ask").contains(document.activeElement);
  const request = { ...settings.request(), messages: messagesOf(path, conversation.system ?? settings.system), stream: true, return_progress: true };
  let [result, failed, stats] = ["", null, null];
  draw();
  try {
    for await (const chunk of model.answer(request, mine.stop.signal)) {
      mine.take(chunk);
      if (mine.isEmpty) {
        frames.request();
        continue;
      }
      if (mine.message.id === undefined) {
        const { message } = mine;
        mine.message = conversations.append(conversation, { ...message, model: model.label, isPartial: true }, parent);
        keep(conversation);
      } else if (mine.isDue) keep(conversation);
      frames.request();
    }
    stats = model.stats();
    result = measured(stats);
  } catch (error) {
    failed = mine.stop.signal.aborted ? "Stopped." : model.explain(error);
    result = failed;
  }
  frames.stop();
  answering = null;
  end(mine, { before, failed, stats, maxTokens: request.max_tokens });
  $("stats").textContent = result;
  // The button that had the focus may be gone; who went elsewhere stays there.
  if (writing && (document.activeElement === document.body || $("ask").contains(document.activeElement))) $("text").focus();
}

/** Puts an answer that is over, however it ended, into its conversation. */
function end({ conversation, parent, message, view, finish }, { before, failed, stats, maxTokens }) {
  wholeCalls(message);
  const isEmpty = message.content === "" && !message.reasoning && !message.calls;
  const isShown = conversation === conversations.current;
  if (isEmpty && message.id !== undefined) conversations.cut(conversation, message);
  if (isEmpty) conversation.leaf = before;
  else {
    delete message.isPartial;
    if (failed === "Stopped.") message.cut = "stopped";
    else if (!failed) Object.assign(message, { cut: cutBy(stats, finish, maxTokens), stats: numbersOf(stats) });
  }
  conversation.at = Date.now();
  keep(conversation);
  const again = () => canAnswer() && (view.element.remove(), answer(conversation, parent));
  if (isShown) {
    if (!isEmpty) {
      view.show(message);
      const all = conversations.siblings(conversation, message);
      log.adopt(view, all.indexOf(message), all.length);
    }
    if (isEmpty || (failed && failed !== "Stopped.")) {
      const question = conversations.path(conversation).find((node) => node.id === parent);
      const edit = question?.role === "user" && isEmpty ? () => log.views.find((v) => v.node === question)?.edit((content) => change(question, content)) : null;
      // An older answer stands in its place.
      if (isEmpty && before !== parent) draw();
      $("log").append(view.element);
      view.fail(failed ?? "The answer is empty.", again, edit);
    }
    scroller.grown();
  }
  $("log").ariaBusy = "false";
  drawList();
}

const numbersOf = (stats) => Object.fromEntries(Object.entries(stats).filter(([, value]) => Number.isFinite(value)));

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (composer.isEmpty || !canAnswer()) return;
  const { current } = conversations;
  const path = conversations.path();
  const call = openCall(path);
  const { text: content, files } = composer;
  const last = path.at(-1);
  const fields = call ? { role: "tool", content, call: call.id, name: call.name } : { role: "user", content, files: files.length > 0 ? files : undefined };
  // A question that has no answer is replaced; it stays as another version.
  conversations.append(current, fields, last?.role === "user" ? last.parent : current.leaf);
  current.at = Date.now();
  composer.clear();
  draw();
  keep(current);
  // The model goes on when all that it called has come back.
  if (!openCall(conversations.path())) answer(current);
});

$("text").addEventListener("keydown", (event) => {
  if (event.key === "ArrowUp" && $("text").value === "") {
    const last = log.views.findLast(({ node }) => node.role === "user");
    if (!last || answering) return;
    event.preventDefault();
    last.edit((content) => change(last.node, content));
  }
  if (event.key !== "Enter" || event.isComposing) return;
  const sends = settings.enterSends ? !event.shiftKey : event.ctrlKey || event.metaKey;
  if (!sends) return;
  event.preventDefault();
  $("ask").requestSubmit();
});

function begin() {
  conversations.add();
  draw();
  sidebar.close();
  $("text").focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]") && !event.defaultPrevented) answering?.stop.abort();
  if (!(event.ctrlKey || event.metaKey)) return;
  if (event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (getComputedStyle($("menu")).display !== "none") sidebar.open();
    $("search").focus();
  }
  if (event.shiftKey && event.key.toLowerCase() === "o") {
    event.preventDefault();
    begin();
  }
});

const menuOf = (name) => $(`menu-${name}`);
const close = () => $("conversation-menu").hidePopover?.();
const current = () => [conversations.title(conversations.current), conversations.current, conversations.path()];
menuOf("markdown").addEventListener("click", () => {
  close();
  const [title, { system }, path] = current();
  exportMarkdown(title, system, path);
});
menuOf("json").addEventListener("click", () => (close(), exportJson(...current())));
menuOf("all").addEventListener("click", () => (close(), exportAll(conversations.all)));
menuOf("import").addEventListener("click", () => (close(), $("import").click()));
menuOf("link").addEventListener("click", () => {
  close();
  const first = conversations.path().find(({ role }) => role === "user")?.content ?? composer.text;
  if (first === "") return notify("There is no prompt yet.");
  copyText(linkTo(first, conversations.current.system));
});
menuOf("system").addEventListener("click", () => {
  close();
  $("own-system").value = conversations.current.system ?? settings.system;
  $("system-dialog").showModal();
});
$("system-form").addEventListener("submit", () => {
  const value = $("own-system").value.trim();
  conversations.current.system = value === settings.system ? undefined : value;
  keep(conversations.current);
  ready();
});

$("import").addEventListener("change", async () => {
  const [file] = $("import").files;
  $("import").value = "";
  if (!file) return;
  try {
    const found = await importFile(file);
    for (const conversation of found) await conversations.insert(conversation);
    draw();
    notify(found.length === 1 ? "The conversation was imported." : `${found.length} conversations were imported.`);
  } catch (error) {
    notify(`${file.name} cannot be imported: ${error.message}.`);
  }
});

$("stop").addEventListener("click", () => answering?.stop.abort());
$("new").addEventListener("click", begin);
$("new-narrow").addEventListener("click", begin);
$("cancel").addEventListener("click", () => model.busy?.cancel?.());
$("open-settings").addEventListener("click", () => $("settings-dialog").showModal());
$("open-models").addEventListener("click", () => $("models-dialog").showModal());
$("trouble-models").addEventListener("click", () => $("models-dialog").showModal());
for (const button of document.querySelectorAll("[data-closes]")) button.addEventListener("click", () => button.closest("dialog").close());
// A press beside a dialog closes it.
for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());

for (const type of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(type, (event) => {
    // Text may be dragged, too: into a field.
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("over", type === "dragover");
    if (type !== "drop") return;
    const files = [...event.dataTransfer.files];
    if (!model.take?.(files)) composer.attach(files);
  });
}

storage.listen(async (id) => {
  const before = conversations.current;
  if (!(await conversations.changed(id, answering?.conversation))) return;
  if (conversations.current === before) drawList();
  else draw();
});

conversations.choose(tab.recall(OPEN));
const prompt = linked();
if (prompt) {
  conversations.add({ system: prompt.system });
  draw();
  composer.set(prompt.prompt);
}
draw();
$("text").focus({ preventScroll: true });
model.start();
