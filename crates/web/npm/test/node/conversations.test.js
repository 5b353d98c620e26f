// Conversations of the chat page, in storage that other tabs share, that is full, or that is not there.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Conversations } from "../../../../server/page/conversations.js";

class Storage extends Map {
  get length() {
    return this.size;
  }
  key(i) {
    return [...this.keys()][i];
  }
  getItem(key) {
    return this.get(key) ?? null;
  }
  setItem(key, text) {
    this.set(key, text);
  }
  removeItem(key) {
    this.delete(key);
  }
}

const say = (conversations, content) => {
  conversations.current.messages.push({ role: "user", content });
  return conversations.save();
};
const titles = (conversations) => conversations.all.map((c) => conversations.title(c));

test("two tabs keep each other's conversations", () => {
  const storage = new Storage();
  const [a, b] = [new Conversations(storage), new Conversations(storage)];
  say(b, "of b");
  say(a, "of a");
  a.add();
  assert.deepEqual(titles(new Conversations(storage)).sort(), ["of a", "of b"]);
  for (const key of storage.keys()) a.changed(key);
  assert.ok(titles(a).includes("of b"));
});

test("a tab sees what another one removes and adds, but not while it writes there itself", () => {
  const storage = new Storage();
  const a = new Conversations(storage);
  say(a, "one");
  const [key] = storage.keys();
  const b = new Conversations(storage);
  b.current.messages.push({ role: "assistant", content: "two" });
  b.save();
  assert.equal(a.changed(key, a.current), false);
  assert.equal(a.current.messages.length, 1);
  assert.equal(a.changed(key), true);
  assert.equal(a.current.messages.length, 2);
  b.remove(b.current.id);
  assert.equal(a.changed(key), true);
  assert.deepEqual(titles(a), ["(empty)"]);
  assert.equal(a.changed("something else"), false);
});

test("a conversation that is empty again is another tab's no more", () => {
  const storage = new Storage();
  const a = new Conversations(storage);
  say(a, "one");
  a.current.messages.pop();
  a.save();
  const b = new Conversations(storage);
  b.add();
  assert.notEqual(b.current.id, a.current.id);
  assert.equal(storage.size, 0);
});

test("anything may be stored", () => {
  const strange = ["{}", "[null]", "null", '"x"', "{", '{"id":"a","messages":[null,{"role":"user"},{"role":"x","content":""}]}', '{"id":1,"messages":[]}'];
  for (const text of strange) {
    const storage = new Storage([["chaski.conversation.a", text], ["other", text]]);
    const conversations = new Conversations(storage);
    assert.deepEqual(conversations.current.messages, [], text);
    assert.equal(say(conversations, "Hi"), true);
  }
});

test("without storage, or with a full one, the conversation goes on", () => {
  const full = new Storage();
  full.setItem = () => {
    throw new Error("QuotaExceededError");
  };
  for (const storage of [full, null]) {
    const conversations = new Conversations(storage);
    assert.equal(say(conversations, "Hi"), false);
    conversations.remove(conversations.current.id);
    assert.deepEqual(conversations.current.messages, []);
  }
});
