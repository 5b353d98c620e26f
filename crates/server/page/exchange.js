// Conversations as files and links: what others can read, and what comes from elsewhere.

import { imported } from "./conversations.js";
import { messagesOf } from "./answer.js";

/** Bytes of a file that is imported. */
const LARGEST = 20 << 20;
/** Characters of a prompt in a link. */
const LONGEST = 8000;

const nameOf = (title) => title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "conversation";

/** Offers a text as a file. */
function offer(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const SPEAKERS = { user: "You", assistant: "Answer", tool: "Result" };

/** A conversation as Markdown. */
export function markdownOf(title, system, path) {
  const parts = path.map(({ role, content, calls = [], files = [] }) => {
    const made = calls.map(({ name, arguments: text }) => `\`${name}(${text})\``);
    const attached = files.map(({ name }) => `*${name}*`);
    return [`## ${SPEAKERS[role]}`, ...attached, content, ...made].filter(Boolean).join("\n\n");
  });
  return `${[`# ${title}`, system ? `> ${system.replaceAll("\n", "\n> ")}` : "", ...parts].filter(Boolean).join("\n\n")}\n`;
}

export const exportMarkdown = (title, system, path) => offer(`${nameOf(title)}.md`, "text/markdown", markdownOf(title, system, path));

/** All versions of all messages for this page; `messages` has what is shown, as OpenAI's API and `/load` have it. */
export function exportJson(title, conversation, path) {
  const { system, nodes, leaf, begun } = conversation;
  const whole = { title, messages: messagesOf(path, system), system, begun, nodes, leaf };
  offer(`${nameOf(title)}.json`, "application/json", `${JSON.stringify(whole, null, 1)}\n`);
}

/** All conversations in one file. */
export function exportAll(conversations) {
  const kept = conversations.filter((c) => c.nodes.length > 0);
  offer("conversations.json", "application/json", `${JSON.stringify({ conversations: kept }, null, 1)}\n`);
}

/** The conversations in a file. */
export async function importFile(file) {
  if (file.size > LARGEST) throw new Error("the file is larger than 20 MB");
  const value = JSON.parse(await file.text());
  const found = (Array.isArray(value?.conversations) ? value.conversations : [value]).map(imported).filter(Boolean);
  if (found.length === 0) throw new Error("it has no conversation");
  return found;
}

/** An address of this page with a prompt: it stands behind the `#`, so no server sees it. */
export function linkTo(prompt, system) {
  const url = new URL(location.href);
  url.hash = new URLSearchParams({ prompt: prompt.slice(0, LONGEST), ...(system && { system: system.slice(0, LONGEST) }) });
  return url.href;
}

/** The prompt in this page's address, which is taken out of it; null if there is none. It is not sent by itself. */
export function linked() {
  const found = new URLSearchParams(location.hash.slice(1));
  if (!found.has("prompt")) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return { prompt: found.get("prompt").slice(0, LONGEST), system: found.get("system")?.slice(0, LONGEST) };
}
