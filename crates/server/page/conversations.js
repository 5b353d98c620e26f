// Conversations: trees of messages, of which one path is shown. A message that is edited or answered again gets a sibling.

import { shortened } from "./dom.js";

const isText = (value) => typeof value === "string";
const isId = (value) => Number.isInteger(value) && value >= 0;
const text = (value) => (isText(value) ? value : undefined);

/** The first function that the model called at the end of these messages, and that has no result yet. */
export function openCall(messages) {
  const at = messages.findLastIndex(({ role }) => role !== "tool");
  const results = messages.slice(at + 1).map(({ call }) => call);
  return messages[at]?.calls?.find(({ id }) => !results.includes(id));
}

/** The calls of a message, if they are some. */
function callsOf({ role, calls }) {
  if (role !== "assistant" || !Array.isArray(calls) || calls.length === 0) return undefined;
  const isCall = (call) => isText(call?.id) && isText(call.name) && isText(call.arguments);
  return calls.every(isCall) ? calls.map(({ id, name, arguments: words }) => ({ id, name, arguments: words })) : undefined;
}

const filesOf = ({ files }) => {
  const found = Array.isArray(files) ? files.filter((f) => isText(f?.name) && isText(f.text)) : [];
  return found.length > 0 ? found.map(({ name, text }) => ({ name, text })) : undefined;
};

/** Numbers about an answer. */
const statsOf = ({ stats }) => {
  const entries = Object.entries(stats ?? {}).filter(([, value]) => Number.isFinite(value));
  return entries.length > 0 ? Object.fromEntries(entries.slice(0, 20)) : undefined;
};

/** A stored message, without what does not belong to it; null if it is none. */
function plain(node) {
  const { role, content } = node ?? {};
  if (!isText(content) || !["user", "assistant", "tool"].includes(role)) return null;
  if (role === "tool" && !(isText(node.call) && isText(node.name))) return null;
  return {
    id: node.id, parent: isId(node.parent) ? node.parent : null, role, content, at: Number(node.at) || 0,
    reasoning: text(node.reasoning), thoughtMs: Number(node.thoughtMs) || undefined, calls: callsOf(node), call: text(node.call), name: text(node.name), files: filesOf(node),
    model: text(node.model), stats: statsOf(node), isPartial: node.isPartial === true || undefined, cut: text(node.cut),
  };
}

/** Messages in a row, as an earlier version stored them and other programs write them, as nodes. */
function chain(messages) {
  // Many chat templates refuse two questions in a row: one that has no answer is left out.
  const last = (m, i, all) => m.role === "tool" || m.role !== all[i + 1]?.role;
  const found = messages.map((m) => plain({ ...m, id: 0, call: m?.id ?? m?.tool_call_id, name: m?.name ?? "function" })).filter(Boolean);
  return found.filter(last).map((node, i) => ({ ...node, id: i, parent: i === 0 ? null : i - 1 }));
}

/** Nodes without those that hang on nothing. A parent is older than its children, so there is no circle. */
function tree(nodes) {
  const known = new Map();
  for (const node of nodes.map((n) => (isId(n?.id) ? plain(n) : null)).filter(Boolean).sort((a, b) => a.id - b.id)) {
    if (!known.has(node.id) && (node.parent === null || known.has(node.parent))) known.set(node.id, node);
  }
  return [...known.values()];
}

/**
 * Stored data may come from another version, or from anything that writes to this origin. The key identifies the
 * conversation, whatever the data say: deletion uses the key.
 */
export function read(id, value) {
  try {
    const nodes = Array.isArray(value.nodes) ? tree(value.nodes) : Array.isArray(value.messages) ? chain(value.messages) : null;
    if (!nodes) return null;
    const begun = Number(value.begun) || 0;
    const leaf = nodes.some((n) => n.id === value.leaf) ? value.leaf : (nodes.at(-1)?.id ?? null);
    const at = Number(value.at) || begun;
    return { id, begun, at, title: text(value.title), system: text(value.system), nodes, leaf };
  } catch {
    return null;
  }
}

/** A conversation of messages as OpenAI's API has them, or of what the page exports. */
export function imported(value) {
  const found = read(newId(), Array.isArray(value) ? { messages: value } : value);
  const messages = Array.isArray(value) ? value : (value?.messages ?? []);
  if (!found) return null;
  const system = messages.find((m) => ["system", "developer"].includes(m?.role) && isText(m.content));
  Object.assign(found, { system: found.system ?? system?.content, begun: Date.now(), at: Date.now() });
  return found.nodes.length > 0 ? found : null;
}

const newId = () => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;

export class Conversations {
  #storage;

  /** Reads what is stored; what cannot be read hinders nothing else. */
  static async open(storage) {
    const conversations = new Conversations();
    conversations.#storage = storage;
    const found = await storage.all().catch(() => []);
    conversations.all = found.map(([id, value]) => read(String(id), value)).filter((c) => c && c.nodes.length > 0);
    conversations.#sort();
    conversations.add();
    return conversations;
  }

  #sort() {
    this.all.sort((a, b) => b.at - a.at);
  }

  /** Begins another one, unless one is empty still; it is kept from its first message on. */
  add(fields = {}) {
    const now = Date.now();
    const empty = this.all.find((c) => c.nodes.length === 0);
    this.current = empty ?? { id: newId(), begun: now, at: now, nodes: [], leaf: null };
    Object.assign(this.current, fields);
    if (!empty) this.all.unshift(this.current);
    return this.current;
  }

  choose(id) {
    this.current = this.all.find((c) => c.id === id) ?? this.current;
  }

  /** Adds a whole one, as an import or an undone removal brings it. */
  insert(conversation) {
    this.all = [...this.all.filter((c) => c.id !== conversation.id), conversation];
    this.#sort();
    this.current = conversation;
    return this.save(conversation);
  }

  /** Removes one; the result puts it back. */
  remove(conversation) {
    this.#forget(conversation.id);
    this.#storage.remove(conversation.id).catch(() => {});
    return () => this.insert(conversation);
  }

  #forget(id) {
    this.all = this.all.filter((c) => c.id !== id);
    if (this.current.id === id) this.add();
  }

  title({ title, nodes }) {
    const first = nodes.find((n) => n.role === "user");
    const words = title || first?.content.trim() || first?.files?.[0].name;
    return words ? shortened(words.replace(/\s+/g, " "), 60) : "New conversation";
  }

  /** Messages from the first one to that which is shown last. */
  path({ nodes, leaf } = this.current) {
    const byId = new Map(nodes.map((n) => [n.id, n]));
    const out = [];
    for (let node = byId.get(leaf); node; node = byId.get(node.parent)) out.unshift(node);
    return out;
  }

  /** The messages that stand in the same place. */
  siblings({ nodes }, node) {
    return nodes.filter((n) => n.parent === node.parent);
  }

  /** Adds a message behind another one, by default the last, and shows it. */
  append(conversation, fields, parent = conversation.leaf) {
    const id = conversation.nodes.reduce((most, n) => Math.max(most, n.id), -1) + 1;
    const node = { id, parent, at: Date.now(), ...fields };
    conversation.nodes.push(node);
    conversation.leaf = id;
    return node;
  }

  /** Shows a message, with what follows it: of several the newest. */
  select(conversation, node) {
    let last = node;
    for (let next = node; next; next = conversation.nodes.findLast((n) => n.parent === last.id)) last = next;
    conversation.leaf = last.id;
  }

  /** Removes a message with all that follows it; the result puts them back. */
  cut(conversation, node) {
    const { nodes, leaf } = conversation;
    const gone = new Set([node.id]);
    for (const n of nodes) if (gone.has(n.parent)) gone.add(n.id);
    conversation.nodes = nodes.filter((n) => !gone.has(n.id));
    const other = conversation.nodes.findLast((n) => n.parent === node.parent);
    if (other) this.select(conversation, other);
    else conversation.leaf = node.parent;
    return () => Object.assign(conversation, { nodes, leaf });
  }

  /** A conversation of its own that ends with this message. */
  fork(conversation, node) {
    const path = this.path(conversation);
    const nodes = path.slice(0, path.indexOf(node) + 1).map((n) => structuredClone(n));
    const { system, title } = conversation;
    return this.insert({ id: newId(), begun: Date.now(), at: Date.now(), system, title, nodes, leaf: node.id });
  }

  /** Conversations that have all words of a query in their titles or messages. */
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return this.all;
    return this.all.filter((c) => {
      const all = [c.title ?? "", ...c.nodes.map((n) => n.content)].join("\n").toLowerCase();
      return words.every((word) => all.includes(word));
    });
  }

  /** Keeps a conversation, unless it is empty or was removed meanwhile; false if the browser does not let us. */
  async save(conversation = this.current) {
    if (!this.all.includes(conversation)) return true;
    try {
      // Another tab would take an empty one for its own.
      if (conversation.nodes.length === 0) await this.#storage.remove(conversation.id);
      else await this.#storage.put(conversation.id, structuredClone(conversation));
      return true;
    } catch {
      return false;
    }
  }

  /** Another tab has changed a conversation; true if anything is another now. `busy` is written here just now. */
  async changed(id, busy = null) {
    if (id === busy?.id) return false;
    const value = await this.#storage.get(id).catch(() => undefined);
    const found = value === undefined ? null : read(id, value);
    const at = this.all.findIndex((c) => c.id === id);
    if (!found) {
      if (at >= 0 && this.all[at].nodes.length > 0) this.#forget(id);
      return at >= 0;
    }
    if (at < 0) this.all.push(found);
    else {
      if (this.current === this.all[at]) this.current = found;
      this.all[at] = found;
    }
    this.#sort();
    return true;
  }
}
