// Conversations, kept in this browser alone: each under a key of its own, so that tabs do not overwrite each other's.

const PREFIX = "chaski.conversation.";

/** The browser's storage; null where it is blocked. */
export function local() {
  try {
    return globalThis.localStorage;
  } catch {
    return null;
  }
}

/** The first function that the model called at the end of these messages, and that has no result yet. */
export function openCall(messages) {
  const at = messages.findLastIndex(({ role }) => role !== "tool");
  const results = messages.slice(at + 1).map(({ id }) => id);
  return messages[at]?.calls?.find(({ id }) => !results.includes(id));
}

const isText = (value) => typeof value === "string";

/** The calls of a message, if they are some. */
function callsOf({ role, calls }) {
  if (role !== "assistant" || !Array.isArray(calls) || calls.length === 0) return undefined;
  const isCall = (call) => isText(call?.id) && isText(call.name) && isText(call.arguments);
  return calls.every(isCall) ? calls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text })) : undefined;
}

/** A stored message, without what does not belong to it. */
function plain(message) {
  const { role, content, reasoning, id, name } = message;
  if (role === "tool") return { role, content, id, name };
  return { role, content, reasoning: isText(reasoning) ? reasoning : undefined, calls: callsOf(message) };
}

/**
 * Stored data may come from another version, or from anything that writes to this origin. The key identifies the conversation,
 * whatever the data say: deletion uses the key.
 */
function read(key, text) {
  try {
    const { begun, messages } = JSON.parse(text);
    const isResult = (m) => m.role === "tool" && isText(m.id) && isText(m.name);
    const fits = (m) => isText(m?.content) && (m.role === "user" || m.role === "assistant" || isResult(m));
    // Many chat templates refuse two questions in a row: one that has no answer is left out.
    const last = (m, i, all) => m.role === "tool" || m.role !== all[i + 1]?.role;
    return { id: key.slice(PREFIX.length), begun: Number(begun) || 0, messages: messages.filter(fits).filter(last).map(plain) };
  } catch {
    return null;
  }
}

export class Conversations {
  constructor(storage = local()) {
    this.storage = storage;
    const keys = storage ? Array.from({ length: storage.length }, (_, i) => storage.key(i)) : [];
    this.all = keys.filter((key) => key.startsWith(PREFIX)).map((key) => read(key, storage.getItem(key))).filter(Boolean);
    this.all.sort((a, b) => b.begun - a.begun);
    if (this.all.length === 0) this.add();
    this.current = this.all[0];
  }

  /** Begins another one, unless one is empty still; it is kept from its first message on. */
  add() {
    const empty = this.all.find((c) => c.messages.length === 0);
    if (empty) {
      this.current = empty;
      return;
    }
    const begun = Date.now();
    this.current = { id: `${begun.toString(36)}-${Math.random().toString(36).slice(2)}`, begun, messages: [] };
    this.all.unshift(this.current);
  }

  choose(id) {
    this.current = this.all.find((c) => c.id === id) ?? this.current;
  }

  remove(id) {
    this.#forget(id);
    try {
      this.storage?.removeItem(PREFIX + id);
    } catch {
      // Blocked storage has nothing to remove.
    }
  }

  #forget(id) {
    this.all = this.all.filter((c) => c.id !== id);
    if (this.all.length === 0) this.add();
    if (this.current.id === id) this.current = this.all[0];
  }

  title(conversation) {
    return conversation.messages.find((m) => m.role === "user")?.content.slice(0, 60) ?? "(empty)";
  }

  /** Keeps a conversation, unless it is empty or was removed meanwhile; false if the browser does not let us. */
  save(conversation = this.current) {
    if (!this.all.includes(conversation)) return true;
    try {
      // Another tab would take an empty one for its own.
      if (conversation.messages.length === 0) this.storage.removeItem(PREFIX + conversation.id);
      else this.storage.setItem(PREFIX + conversation.id, JSON.stringify(conversation));
      return true;
    } catch {
      return false;
    }
  }

  /** Another tab has changed what is stored under a key; true if that is one of ours. `busy` is written here just now. */
  changed(key, busy = null) {
    if (!key?.startsWith(PREFIX)) return false;
    const text = this.storage.getItem(key);
    const id = key.slice(PREFIX.length);
    if (id === busy?.id) return false;
    const found = read(key, text);
    const at = this.all.findIndex((c) => c.id === id);
    if (!found) this.#forget(id);
    else if (at < 0) this.all = [...this.all, found].sort((a, b) => b.begun - a.begun);
    else {
      if (this.current === this.all[at]) this.current = found;
      this.all[at] = found;
    }
    return true;
  }
}
