// Conversations that no longer fit the context of a server's model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { recent } from "../../../../server/page/turns.js";

/** A conversation of so many turns; each message has a character per token. */
const turns = (n, nToken) => Array.from({ length: n }, (_, i) => [{ role: "user", content: `${i}`.padEnd(nToken, "?") }, { role: "assistant", content: ".".repeat(nToken) }]).flat();
const found = (messages) => messages.reduce((n, { content }) => n + content.length, 0);
const without = (messages, limit, more = 0) => recent(messages, { found: found(messages), limit }, more);

test("whole turns go, and there is room for more", () => {
  const system = { role: "system", content: "Be brief." };
  const messages = [system, ...turns(10, 10), { role: "user", content: "last" }];
  const rest = without(messages, 160);
  assert.equal(rest[0], system);
  assert.equal(rest[1].role, "user");
  assert.equal(rest.at(-1), messages.at(-1));
  assert.ok(found(rest) <= 120 && found(rest) > 60, `${found(rest)}`);
});

test("the next prompts begin like the one before, until the context is full again", () => {
  const begins = new Set();
  for (let n = 21; n <= 25; n++) begins.add(without(turns(n, 10), 400)[0].content);
  assert.equal(begins.size, 1, [...begins].join());
});

test("more goes each time, and the last question stays", () => {
  const messages = [...turns(10, 10), { role: "user", content: "last" }];
  let before = messages.length;
  for (let more = 0; more < 3; more++) {
    const rest = without(messages, 100, more);
    assert.ok(rest.length < before || rest.length === 1);
    before = rest.length;
  }
  assert.deepEqual(without(messages, 20, 10), [messages.at(-1)]);
  assert.equal(without([{ role: "system", content: "x" }, { role: "user", content: "y".repeat(100) }], 50), null);
});

test("a long turn does not hide those after it", () => {
  // The cut after the long turn serves for several goals.
  const messages = [...turns(1, 200), ...turns(4, 5), { role: "user", content: "last" }];
  const whole = { found: found(messages), limit: 100 };
  let [before, n] = [messages, 0];
  for (let rest; (rest = recent(messages, whole, n, before.length)); n++) {
    assert.ok(rest.length < before.length, `${rest.length} after ${before.length}`);
    before = rest;
  }
  assert.deepEqual(before, [messages.at(-1)], `after ${n} tries`);
});

test("calls and their results stay with their question", () => {
  const call = { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: "{}" } }] };
  const turn = (i) => [{ role: "user", content: `${i}`.padEnd(20) }, call, { role: "tool", content: ".".repeat(20) }];
  const messages = [0, 1, 2, 3, 4].flatMap(turn);
  const rest = recent(messages, { found: 300, limit: 200 }, 0);
  assert.equal(rest[0].role, "user");
  assert.equal(rest.length % 3, 0);
});
