// Conversations of the chat page, in storage that other tabs share, that is full, or that is not there.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Conversations, imported, openCall, read } from "../../../../server/page/conversations.js";

/** A storage like the page's; `put` may be told to fail. */
class Storage extends Map {
  isFull = false;
  async all() {
    return [...this];
  }
  async get(id) {
    return super.get(id);
  }
  async put(id, value) {
    if (this.isFull) throw new Error("QuotaExceededError");
    super.set(id, structuredClone(value));
  }
  async remove(id) {
    super.delete(id);
  }
  text(id) {
    return super.get(id);
  }
}

async function say(conversations, content, role = "user") {
  conversations.append(conversations.current, { role, content });
  return conversations.save();
}
const titles = ({ all, ...rest }) => all.map((c) => Conversations.prototype.title.call(rest, c));
const shown = (conversations) => conversations.path().map(({ content }) => content);

test("two tabs keep each other's conversations", async () => {
  const storage = new Storage();
  const [a, b] = [await Conversations.open(storage), await Conversations.open(storage)];
  await say(b, "of b");
  await say(a, "of a");
  a.add();
  assert.deepEqual(titles(await Conversations.open(storage)).sort(), ["New conversation", "of a", "of b"]);
  for (const id of storage.keys()) await a.changed(id);
  assert.ok(titles(a).includes("of b"));
});

test("a tab sees what another one removes and adds, but not while it writes there itself", async () => {
  const storage = new Storage();
  const a = await Conversations.open(storage);
  await say(a, "one");
  const [id] = storage.keys();
  const b = await Conversations.open(storage);
  b.choose(id);
  await say(b, "two", "assistant");
  assert.equal(await a.changed(id, a.current), false);
  assert.deepEqual(shown(a), ["one"]);
  assert.equal(await a.changed(id), true);
  assert.deepEqual(shown(a), ["one", "two"]);
  b.remove(b.current);
  assert.equal(await a.changed(id), true);
  assert.deepEqual(titles(a), ["New conversation"]);
  assert.equal(await a.changed("something else"), false);
});

test("messages have versions, and each goes on in its own way", async () => {
  const c = await Conversations.open(new Storage());
  const first = c.append(c.current, { role: "user", content: "1" });
  const answer = c.append(c.current, { role: "assistant", content: "a" });
  c.append(c.current, { role: "user", content: "2" });
  const other = c.append(c.current, { role: "assistant", content: "b" }, first.id);
  assert.deepEqual(shown(c), ["1", "b"]);
  assert.deepEqual(c.siblings(c.current, other), [answer, other]);
  c.select(c.current, answer);
  assert.deepEqual(shown(c), ["1", "a", "2"]);
  const back = c.cut(c.current, answer);
  assert.deepEqual(shown(c), ["1", "b"]);
  back();
  assert.deepEqual(shown(c), ["1", "a", "2"]);
  await c.fork(c.current, answer);
  assert.deepEqual(shown(c), ["1", "a"]);
  assert.equal(c.all.length, 2);
});

test("a conversation that was deleted can be brought back", async () => {
  const storage = new Storage();
  const c = await Conversations.open(storage);
  await say(c, "one");
  const back = c.remove(c.current);
  assert.deepEqual([storage.size, titles(c)], [0, ["New conversation"]]);
  await back();
  assert.deepEqual([storage.size, shown(c)], [1, ["one"]]);
});

test("anything may be stored, and hinders nothing else", async () => {
  const strange = [
    {}, [null], null, "x", undefined, { messages: [null, { role: "user" }, { role: "x", content: "" }] }, { nodes: "x" }, { nodes: [null, { id: 1 }] },
    { nodes: [{ id: 0, parent: 1, role: "user", content: "a" }, { id: 1, parent: 0, role: "user", content: "b" }] },
    { get nodes() { throw new Error("it cannot be read"); } },
  ];
  for (const value of strange) {
    const storage = new Storage();
    storage.all = async () => [["a", value], ["b", { nodes: [{ id: 3, parent: null, role: "user", content: "kept", calls: 7, stats: { a: "x", b: 1 } }] }]];
    const c = await Conversations.open(storage);
    assert.deepEqual(shown(c), []);
    assert.ok(titles(c).includes("kept"));
    assert.equal(await say(c, "Hi"), true);
  }
  const [node] = read("b", { nodes: [{ id: 3, parent: null, role: "user", content: "kept", calls: 7, stats: { a: "x", b: 1 }, files: [{ name: 1 }] }] }).nodes;
  assert.deepEqual([node.calls, node.stats, node.files], [undefined, { b: 1 }, undefined]);
});

test("what an earlier version stored, and what other programs write, is read", () => {
  const question = { role: "user", content: "1 + 2?" };
  const call = { role: "assistant", content: "", calls: [{ id: "a", name: "add", arguments: "[1, 2]" }] };
  const found = read("x", { id: "other", begun: 5, messages: [{ role: "user", content: "unanswered" }, question, call, { role: "tool", content: "3", id: "a", name: "add" }] });
  assert.deepEqual([found.id, found.begun, found.nodes.map(({ content, parent }) => [content, parent])], ["x", 5, [["1 + 2?", null], ["", 0], ["3", 1]]]);
  assert.equal(openCall(found.nodes), undefined);
  assert.equal(openCall(found.nodes.slice(0, 2)).id, "a");
  const other = imported([{ role: "system", content: "Be brief." }, question, { role: "assistant", content: "3" }]);
  assert.deepEqual([other.system, other.nodes.length], ["Be brief.", 2]);
  for (const value of [null, 1, "x", [], {}, [{ role: "system", content: "a" }]]) assert.equal(imported(value), null);
});

test("without storage, or with a full one, the conversation goes on", async () => {
  const full = new Storage();
  full.isFull = true;
  const c = await Conversations.open(full);
  assert.equal(await say(c, "Hi"), false);
  c.remove(c.current);
  assert.deepEqual(shown(c), []);
  const broken = { all: () => Promise.reject(new Error("no")), get: async () => undefined, put: () => Promise.reject(new Error("no")), remove: () => Promise.reject(new Error("no")) };
  const d = await Conversations.open(broken);
  assert.equal(await say(d, "Hi"), false);
});

test("titles end between characters as people see them, and words are found", async () => {
  const c = await Conversations.open(new Storage());
  await say(c, `${"a".repeat(59)}👩‍👩‍👧 family`);
  assert.equal(c.title(c.current), `${"a".repeat(59)}👩‍👩‍👧…`);
  c.current.title = "Named";
  assert.equal(c.title(c.current), "Named");
  assert.deepEqual([c.search("FAMILY named").length, c.search("family nothing").length, c.search(" ").length], [1, 0, 1]);
});
