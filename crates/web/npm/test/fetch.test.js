// Clients of OpenAI's API, with the engine as their `fetch`.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "vite";
import { MODEL, PACKAGE, open } from "./page.js";

const CLIENTS = `
export { default as OpenAI } from "openai";
export { createOpenAICompatible } from "@ai-sdk/openai-compatible";
export { generateText, streamText, embed, tool, jsonSchema } from "ai";
export { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
`;

let [t, page, folder] = [];
before(async () => {
  // Clients come as bundles, as pages have them.
  folder = await mkdtemp(join(tmpdir(), "chaski-clients-"));
  const entry = join(PACKAGE, "test-results-clients.js");
  await writeFile(entry, CLIENTS);
  try {
    const lib = { entry, formats: ["es"], fileName: "clients" };
    await build({ root: PACKAGE, configFile: false, logLevel: "error", define: { "process.env": "{}" }, build: { lib, outDir: folder, minify: false, emptyOutDir: true } });
  } finally {
    await rm(entry);
  }
  const asked = [];
  t = await open(async (request, response, url) => {
    asked.push(url.pathname);
    if (!url.pathname.startsWith("/clients/")) return false;
    response.writeHead(200, { "content-type": "text/javascript" }).end(await readFile(join(folder, url.pathname.slice(9))));
    return true;
  });
  page = t.page;
  await page.evaluate(async (model) => {
    globalThis.engine = await chaski.Engine.create({ model, device: "cpu" });
    globalThis.clients = await import("/clients/clients.js");
    globalThis.name = engine.info().model.file;
    globalThis.asked = [];
    const { fetch } = globalThis;
    globalThis.fetch = (...args) => (asked.push(String(args[0]?.url ?? args[0])), fetch(...args));
  }, MODEL);
});
after(async () => {
  await t?.close();
  await rm(folder, { recursive: true, force: true });
});

test("the package openai: whole and streamed chats, texts, embeddings, models, errors, aborts", async () => {
  const found = await page.evaluate(async () => {
    const client = new clients.OpenAI({ apiKey: "none", baseURL: "http://engine.invalid/v1", fetch: engine.fetch, dangerouslyAllowBrowser: true, maxRetries: 0 });
    const messages = [{ role: "user", content: "Hi" }];
    const rest = { model: name, temperature: 0, max_tokens: 5 };
    const whole = await client.chat.completions.create({ ...rest, messages });
    let [text, usage] = ["", null];
    for await (const chunk of await client.chat.completions.create({ ...rest, messages, stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    const plain = await client.completions.create({ ...rest, prompt: "Once upon" });
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    const one = await client.models.retrieve(name);
    const status = (promise) => promise.then(() => null, (e) => [e.status, e.code]);
    const stop = new AbortController();
    const long = await client.chat.completions.create({ ...rest, max_tokens: 400, messages, stream: true }, { signal: stop.signal });
    let n = 0;
    for await (const chunk of long) if (chunk.choices[0]?.delta.content && ++n === 3) stop.abort();
    const after = await client.chat.completions.create({ ...rest, messages });
    return {
      same: whole.choices[0].message.content === text && after.choices[0].message.content === text, text, usage: usage?.completion_tokens, plain: plain.choices[0].text.length, ids, one: one.id, n,
      embedded: await client.embeddings.create({ model: name, input: ["a", "b"], pooling: "mean" }).then(({ data }) => [data.length, data[0].embedding.length > 8]),
      long: await status(client.chat.completions.create({ ...rest, messages: [{ role: "user", content: "word ".repeat(9000) }] })),
      unknown: await status(client.chat.completions.create({ ...rest, messages, temperature: "warm" })),
      other: await status(client.models.retrieve("other")),
      images: await status(client.images.generate({ prompt: "x" })),
    };
  });
  assert.match(found.text, /Hello/);
  assert.deepEqual({ ...found, text: "", plain: 0, ids: found.ids.length, one: "" }, {
    same: true, text: "", usage: 5, plain: 0, ids: 1, one: "", n: 3, embedded: [2, true], long: [400, "context_length_exceeded"], unknown: [400, "bad_request"], other: [404, "not_found"], images: [404, "not_found"],
  });
});

test("Vercel's AI SDK", async () => {
  const found = await page.evaluate(async () => {
    const { createOpenAICompatible, generateText, streamText, embed } = clients;
    const provider = createOpenAICompatible({ name: "chaski", baseURL: "http://engine.invalid/v1", fetch: engine.fetch, includeUsage: true });
    const rest = { model: provider(name), prompt: "Hi", temperature: 0, maxOutputTokens: 5, maxRetries: 0 };
    const { text, usage, finishReason } = await generateText(rest);
    let streamed = "";
    for await (const piece of streamText(rest).textStream) streamed += piece;
    // The model says nothing of pooling, and these clients cannot.
    const refused = await embed({ model: provider.embeddingModel(name), value: "a", maxRetries: 0 }).catch((error) => error.statusCode);
    return [text, streamed === text, usage.outputTokens, finishReason, refused];
  });
  assert.match(found[0], /Hello/);
  assert.deepEqual(found.slice(1), [true, 5, "length", 400]);
});

test("LangChain.js", async () => {
  const found = await page.evaluate(async () => {
    const { ChatOpenAI, OpenAIEmbeddings } = clients;
    const configuration = { baseURL: "http://engine.invalid/v1", fetch: engine.fetch, dangerouslyAllowBrowser: true };
    const model = new ChatOpenAI({ model: name, apiKey: "none", temperature: 0, maxTokens: 5, maxRetries: 0, configuration });
    const { content } = await model.invoke("Hi");
    let streamed = "";
    for await (const piece of await model.stream("Hi")) streamed += piece.content;
    const refused = await new OpenAIEmbeddings({ model: name, apiKey: "none", maxRetries: 0, configuration }).embedQuery("a").catch((error) => error.status);
    return [content, streamed === content, refused];
  });
  assert.match(found[0], /Hello/);
  assert.deepEqual(found.slice(1), [true, 400]);
});

test("plain requests: statuses of what is no request, and nothing reaches the network", async () => {
  const found = await page.evaluate(async () => {
    const ask = async (path, init) => (await engine.fetch(`/v1/${path}`, init)).status;
    const post = (body) => ({ method: "POST", body });
    const stop = AbortSignal.abort();
    return [
      await ask("chat/completions"), await ask("chat/completions", post("{")), await ask("chat/completions", post("null")), await ask("chat/completions", post('{"messages": 1}')),
      await ask("chat/completions", post('{"messages": [], "stream": true, "top_k": "x"}')), await ask("files", post("{}")), await ask("models/%ff").catch((e) => e.name),
      await engine.fetch(new Request("http://x.invalid/v1/models")).then((r) => r.status),
      await engine.fetch("/v1/models", { signal: stop }).catch((e) => e.name), asked,
    ];
  });
  assert.deepEqual(found, [405, 400, 400, 400, 400, 404, 404, 200, "AbortError", []]);
});
