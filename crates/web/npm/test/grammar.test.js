// Grammars, forced and strict calls: the second module, which comes with the first request that needs it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MODEL, open } from "./page.js";

const SECOND = /chaski_grammar_bg\.wasm$/;

let t;
/** Requests for the second module; the status that it is refused with, if it is. */
let [asked, refusal] = [0, 0];
before(async () => {
  t = await open((request, response, url) => {
    if (!SECOND.test(url.pathname)) return false;
    asked++;
    if (refusal) response.writeHead(refusal).end("no");
    return refusal > 0;
  });
  await t.page.evaluate(async (model) => {
    globalThis.load = (options) => chaski.Engine.create({ model, device: "cpu", contextLength: 512, ...options });
    globalThis.engine = await load();
    globalThis.say = (fields, options) => engine.chat.completions.create({ messages: [{ role: "user", content: "Who was Inti?" }], temperature: 0, max_tokens: 60, ...fields }, options);
    globalThis.SCHEMA = {
      type: "object",
      properties: { name: { enum: ["Inti", "Quri"] }, age: { type: "integer", minimum: 1, maximum: 99 }, brave: { type: "boolean" } },
      required: ["name", "age", "brave"],
      additionalProperties: false,
    };
    globalThis.strict = { type: "json_schema", json_schema: { name: "person", strict: true, schema: SCHEMA } };
    globalThis.TOOLS = ["run", "rest"].map((name) => ({ type: "function", function: { name, parameters: SCHEMA } }));
  }, MODEL);
});
after(() => t?.close());

/** Fails unless a text is JSON of the schema. */
function conforms(text) {
  const found = JSON.parse(text);
  assert.deepEqual(Object.keys(found), ["name", "age", "brave"]);
  assert.ok(["Inti", "Quri"].includes(found.name) && Number.isInteger(found.age) && found.age >= 1 && found.age <= 99, text);
  assert.equal(typeof found.brave, "boolean");
}

test("nothing of the second module is fetched before a request has a rule", async () => {
  const found = await t.page.evaluate(() => say({ max_tokens: 4, response_format: { type: "text" }, tools: TOOLS, tool_choice: "auto" }));
  assert.ok(found.choices[0].message.content.length > 0);
  assert.equal(asked, 0);
});

test("a module that does not come is an error of the request, and comes with the next", async () => {
  refusal = 503;
  const refused = await t.page.evaluate(() => failure(say({ response_format: strict })));
  refusal = 0;
  assert.deepEqual([refused.engine, refused.code], [true, "wasm_failed"]);
  assert.match(`${refused.message} ${refused.hint}`, /grammars did not load: .*grammarUrl/);
  await t.browser.context.setOffline?.(true);
  const [offline, plain] = await t.page.evaluate(async () => [await failure(say({ response_format: strict })), await say({ max_tokens: 4 })]);
  await t.browser.context.setOffline?.(false);
  if (t.browser.context.setOffline) assert.equal(offline.code, "wasm_failed");
  assert.ok(plain.choices[0].message.content.length > 0, "the engine goes on without it");
  const found = await t.page.evaluate(() => say({ response_format: strict }));
  conforms(found.choices[0].message.content);
  assert.equal(found.choices[0].finish_reason, "stop");
});

test("answers conform to a schema, streamed or sampled, and the module is fetched once", async () => {
  const before = asked;
  const found = await t.page.evaluate(async () => {
    let streamed = "";
    for await (const { choices } of say({ response_format: strict, stream: true, temperature: 2, seed: 7 })) streamed += choices[0].delta.content ?? "";
    const hot = await say({ response_format: strict, temperature: 2, seed: 8, logprobs: true });
    const object = await say({ response_format: { type: "json_object" }, max_tokens: 80 });
    return { streamed, hot: hot.choices[0], object: object.choices[0] };
  });
  conforms(found.streamed);
  conforms(found.hot.message.content);
  assert.ok(found.hot.logprobs.content.length > 3);
  // A small model may go on until its tokens run out.
  assert.match(found.object.message.content, /^\s*\{/);
  if (found.object.finish_reason === "stop") JSON.parse(found.object.message.content);
  assert.equal(asked, before, "no fetch for an engine that has it");
});

test("grammars in Lark and in llama.cpp's notation hold for chats and texts", async () => {
  const found = await t.page.evaluate(async () => {
    const grammars = ['start: "Inti " ("ran" | "slept") "."', 'root ::= "Inti " ("ran" | "slept") "."'];
    const out = [];
    for (const grammar of grammars) {
      out.push((await say({ grammar })).choices[0].message.content);
      out.push((await engine.completions.create({ prompt: "Once", grammar, temperature: 0, max_tokens: 40 })).choices[0].text);
    }
    return out;
  });
  for (const text of found) assert.match(text, /^Inti (ran|slept)\.$/);
});

test("a forced call is one of the tools, or the one that is named, whole or streamed", async () => {
  const found = await t.page.evaluate(async () => {
    const any = await say({ tools: TOOLS, tool_choice: "required", max_tokens: 300 });
    const named = [];
    for await (const { choices } of say({ tools: TOOLS, tool_choice: { type: "function", function: { name: "rest" } }, max_tokens: 300, stream: true })) named.push(choices[0]);
    return { any: any.choices[0], named };
  });
  const [call, ...more] = found.any.message.tool_calls;
  assert.deepEqual([more, found.any.message.content, found.any.finish_reason], [[], null, "tool_calls"]);
  assert.ok(["run", "rest"].includes(call.function.name));
  conforms(call.function.arguments);
  const deltas = found.named.flatMap(({ delta }) => delta.tool_calls ?? []);
  assert.equal(deltas[0].function.name, "rest");
  conforms(deltas.map((delta) => delta.function.arguments).join(""));
  assert.equal(found.named.at(-1).finish_reason, "tool_calls");
});

test("strict tools leave a model alone whose notation has no calls", async () => {
  const found = await t.page.evaluate(async () => {
    const strict = TOOLS.map((tool) => ({ ...tool, function: { ...tool.function, strict: true } }));
    const answers = [await say({ tools: strict, max_tokens: 12 }), await say({ tools: TOOLS, max_tokens: 12 })];
    return answers.map(({ choices }) => choices[0].message.content);
  });
  assert.ok(found[0].length > 5);
  assert.equal(found[0], found[1]);
});

test("rules that cannot be are refused by name", async () => {
  const found = await t.page.evaluate(async () => {
    const wrong = [
      { grammar: "start: unknown" }, { grammar: 'root ::= "x' }, { response_format: { type: "json_schema", json_schema: { schema: { type: "odd" } } } },
      { tools: TOOLS, tool_choice: { type: "function", function: { name: "sleep" } } }, { tools: [], tool_choice: "required" }, { tools: TOOLS, tool_choice: "required", response_format: strict },
      { tools: TOOLS, tool_choice: "some" },
    ];
    const errors = [];
    for (const fields of wrong) errors.push(await failure(say(fields)));
    return { errors, after: (await say({ grammar: 'start: "ok"' })).choices[0].message.content };
  });
  for (const error of found.errors) assert.deepEqual([error?.engine, error?.code], [true, "bad_request"], JSON.stringify(error));
  const words = [/grammar/, /line 1, column/, /JSON schema/, /sleep/, /tools/, /tool_choice/, /tool_choice: expected/];
  found.errors.forEach((error, i) => assert.match(error.message, words[i]));
  assert.equal(found.after, "ok");
});

test("on the page itself, wherever the module is, with an abort on the way", async () => {
  const found = await t.page.evaluate(async () => {
    const ask = { prompt: "Inti", grammar: "start: /( ran| far)+/", temperature: 0, max_tokens: 100 };
    const lost = await load({ worker: false, grammarUrl: "/nothing.wasm" });
    const refused = await failure(lost.completions.create(ask));
    await lost.close();
    const own = await load({ worker: false, grammarUrl: "/npm/wasm/grammar/chaski_grammar_bg.wasm" });
    const controller = new AbortController();
    const stopped = failure(own.completions.create(ask, { signal: controller.signal }));
    controller.abort();
    const { choices } = await own.completions.create({ ...ask, max_tokens: 8 });
    await own.close();
    return { stopped: (await stopped).code, text: choices[0].text, refused: refused?.code };
  });
  assert.equal(found.refused, "wasm_failed");
  assert.equal(found.stopped, "aborted");
  assert.match(found.text, /^( ran| far)+$/);
});
