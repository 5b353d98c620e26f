// The page and the engine, with a worker that is a port and an engine that is a script.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { DirectChannel, WorkerChannel } from "../../src/channel.js";
import { Engine, forHost } from "../../src/engine.js";
import { EngineError } from "../../src/errors.js";
import { serve } from "../../src/serve.js";

const END = { finish: "stop", promptTokens: 1, cachedTokens: 0, tokens: 1, memory: {} };
const INFO = { memory: {}, model: { file: "m.gguf" } };

/** A worker of the caller's, with a host for each port. */
class FakeWorker extends EventTarget {
  hosts = [];
  ports = [];
  terminated = false;
  constructor(make = () => new Script()) {
    super();
    this.make = make;
  }
  postMessage({ chaski }) {
    this.hosts.push(this.make());
    this.ports.push(chaski);
    serve(chaski, this.hosts.at(-1));
  }
  terminate() {
    this.terminated = true;
    this.ports.forEach((port) => port.close());
  }
}

/** An engine that says what it is told to. */
class Script {
  closed = 0;
  requests = [];
  signals = [];
  constructor(events = [], { hangs = false } = {}) {
    Object.assign(this, { events, hangs });
  }
  async create() {
    return INFO;
  }
  async inspect() {
    return "an inspection";
  }
  async detokenize({ tokens }) {
    return tokens.join(" ");
  }
  async generate({ request }, { signal, emit }) {
    this.requests.push(JSON.parse(request));
    this.signals.push(signal);
    for (const event of this.events) emit(JSON.stringify(event));
    // An engine inside a long dispatch hears of nothing.
    if (this.hangs) await new Promise(() => {});
    return END;
  }
  close() {
    this.closed++;
  }
}

const workers = [];
afterEach(() => workers.splice(0).forEach((worker) => worker.terminate()));

function worker(...script) {
  const made = new FakeWorker(() => new Script(...script));
  workers.push(made);
  return made;
}

async function engine(...script) {
  const made = worker(...script);
  const engine = await Engine.create({ model: "https://h.org/m.gguf", worker: made });
  return { engine, host: made.hosts[0], worker: made };
}

const code = (expected) => (error) => error instanceof EngineError && error.code === expected;
const soon = (promise) => Promise.race([promise, new Promise((_, reject) => setTimeout(() => reject(new Error("it hangs")), 1000).unref())]);
const messages = [{ role: "user", content: "Hi" }];

test("engines in one worker do not take each other's answers, and close alone", async () => {
  const shared = worker();
  const [a, b] = [new WorkerChannel(shared, false), new WorkerChannel(shared, false)];
  assert.deepEqual(await Promise.all([a.call("create", {}), b.call("inspect", {})]), [INFO, "an inspection"]);
  a.close();
  assert.equal(await b.call("inspect", {}), "an inspection");
  assert.deepEqual(shared.hosts.map((h) => h.closed), [1, 0]);
  await assert.rejects(a.call("inspect", {}), code("closed"));
  b.close();
});

test("an abort ends the wait at once, and the engine hears of it", async () => {
  const { engine: e, host } = await engine([], { hangs: true });
  const controller = new AbortController();
  const answer = e.completions.create({ prompt: "x" }, { signal: controller.signal });
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(soon(answer), code("aborted"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(host.signals[0].aborted);
});

test("leaving a stream does not wait for the engine", async () => {
  const { engine: e } = await engine([{ type: "text", text: "a" }], { hangs: true });
  const read = async () => {
    for await (const chunk of e.completions.create({ prompt: "x", stream: true })) return chunk.choices[0].text;
  };
  assert.equal(await soon(read()), "a");
});

test("an abort while a model loads ends its worker", async () => {
  const loading = worker();
  loading.make = () => ({ create: () => new Promise(() => {}), close() {} });
  const channel = new WorkerChannel(loading, true);
  const controller = new AbortController();
  const wait = channel.call("create", {}, { signal: controller.signal });
  controller.abort();
  await assert.rejects(soon(wait), code("aborted"));
  channel.close();
  assert.ok(loading.terminated);
});

test("closing an engine on the page's thread ends what runs", async () => {
  const host = new Script([], { hangs: true });
  const channel = new DirectChannel(async () => host);
  const answer = channel.call("generate", { request: "{}" });
  await new Promise((resolve) => setTimeout(resolve, 10));
  channel.close();
  await assert.rejects(soon(answer), code("closed"));
  assert.ok(host.signals[0].aborted);
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(host.closed, 1);
});

test("requests may be proxies; what is no JSON is refused", async () => {
  const { engine: e, host } = await engine([{ type: "content", text: "Hello" }]);
  const proxy = new Proxy([new Proxy({ role: "user", content: "Hi" }, {})], {});
  const answer = await e.chat.completions.create({ messages: proxy });
  assert.equal(answer.choices[0].message.content, "Hello");
  assert.deepEqual(host.requests[0].chat.messages, messages);
  const round = { role: "user", content: "Hi" };
  round.self = round;
  await assert.rejects(e.chat.completions.create({ messages: [round] }), code("bad_request"));
  await assert.rejects(e.tokenize(() => {}), code("bad_request"));
});

test("what is null or undefined is not there", async () => {
  const { engine: e, host } = await engine([]);
  await e.chat.completions.create({ messages, audio: null, grammar: null, tools: null });
  assert.deepEqual(host.requests[0].rule, undefined);
  const of = (headers) => forHost({ headers }).headers;
  assert.deepEqual(of({ authorization: undefined, a: "b" }), { a: "b" });
  assert.deepEqual(of(new Headers([["a", "b"]])), { a: "b" });
  assert.deepEqual(of([["a", "b"]]), { a: "b" });
});

test("a bad request fails where a promise or a stream fails", async () => {
  const { engine: e } = await engine();
  for (const bad of [{ messages: "Hi" }, null, undefined]) {
    await assert.rejects(e.chat.completions.create(bad), code("bad_request"));
  }
  const bad = () => e.completions.create({ prompt: 1, stream: true });
  await assert.rejects(async () => await bad(), code("bad_request"));
  await assert.rejects(async () => {
    for await (const _ of bad());
  }, code("bad_request"));
});

test("a stream is read once", async () => {
  const { engine: e, host } = await engine([{ type: "content", text: "Hello" }]);
  const stream = e.chat.completions.create({ messages, stream: true });
  const read = async () => {
    const found = [];
    for await (const chunk of stream) found.push(chunk.choices[0].delta.content);
    return found;
  };
  assert.deepEqual(await read(), ["Hello", undefined]);
  await assert.rejects(read(), code("bad_request"));
  assert.equal(host.requests.length, 1);
});

test("echo begins the answer with the prompt, streamed or not, as text or tokens", async () => {
  const { engine: e } = await engine([{ type: "text", text: " b" }]);
  for (const [prompt, expected] of [["a", "a b"], [[1, 2], "1 2 b"]]) {
    const whole = await e.completions.create({ prompt, echo: true });
    assert.equal(whole.choices[0].text, expected);
    let text = "";
    for await (const chunk of e.completions.create({ prompt, echo: true, stream: true })) text += chunk.choices[0].text;
    assert.equal(text, expected);
  }
});

const CALL = [{ type: "call", name: "f" }, { type: "arguments", text: '{"x":' }, { type: "arguments", text: "1}" }];

test("a tool call is one when its end is right; else its text is content", async () => {
  const right = await engine([...CALL, { type: "call_end", valid: true, written: "" }]);
  const [called] = (await right.engine.chat.completions.create({ messages })).choices;
  assert.equal(called.finish_reason, "tool_calls");
  assert.deepEqual(called.message.tool_calls.map((c) => c.function), [{ name: "f", arguments: '{"x":1}' }]);
  assert.equal(called.message.content, null);

  const written = '<tool_call>{"name": "f", "arguments": {"x":1}';
  const wrong = await engine([...CALL, { type: "call_end", valid: false, written }]);
  const [choice] = (await wrong.engine.chat.completions.create({ messages })).choices;
  assert.equal(choice.finish_reason, "stop");
  assert.equal(choice.message.content, written);
  assert.equal(choice.message.tool_calls, undefined);
});

test("logprobs have OpenAI's shapes, and a probability of 0 is a number", async () => {
  const top = [{ token: "b", id: 2, logprob: -1, bytes: [98] }];
  const logprobs = { token: "a", id: 1, logprob: null, bytes: [97], top_logprobs: top };
  const chat = await engine([{ type: "logprobs", logprobs }, { type: "content", text: "a" }]);
  const [choice] = (await chat.engine.chat.completions.create({ messages, logprobs: true })).choices;
  assert.deepEqual(choice.logprobs, { content: [{ ...logprobs, logprob: -9999 }], refusal: null });
  const text = await engine([{ type: "text", text: "a", logprobs }, { type: "text", text: "a", logprobs }]);
  const found = (await text.engine.completions.create({ prompt: "x", echo: true, logprobs: 1 })).choices[0].logprobs;
  assert.deepEqual(found.tokens, ["a", "a"]);
  assert.deepEqual(found.token_logprobs, [-9999, -9999]);
  assert.deepEqual(found.top_logprobs, [{ b: -1 }, { b: -1 }]);
  assert.deepEqual(found.text_offset, [1, 2]);
});
