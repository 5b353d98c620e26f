// Folders of Hugging Face and of MLC as models: the tokens with the largest of the golden logits.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { REPOSITORY, open } from "./page.js";

const DATA = `${REPOSITORY}fixtures/weights`;
const json = async (path) => JSON.parse(await readFile(path, "utf8"));

/** The configuration that MLC's `gen_config` writes for a checkpoint. */
async function chatConfig(checkpoint, quantization) {
  const config = await json(`${DATA}/checkpoints/${checkpoint}/config.json`);
  const model = { context_window_size: config.max_position_embeddings, prefill_chunk_size: 512, position_embedding_base: config.rope_parameters.rope_theta };
  for (const key of ["hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "rms_norm_eps", "vocab_size", "tie_word_embeddings", "head_dim", "hidden_act"]) {
    if (config[key] != null) model[key] = config[key];
  }
  return {
    version: "0.1.0", model_type: config.model_type, quantization, model_config: model, vocab_size: config.vocab_size, context_window_size: 512,
    bos_token_id: config.bos_token_id, eos_token_id: config.eos_token_id, tokenizer_files: ["tokenizer.json", "tokenizer_config.json"],
    conv_template: { name: "test", system_template: "{system_message}", system_message: "", roles: { user: "U", assistant: "A" }, seps: ["\n"], role_content_sep: ": ", role_empty_sep: ":", stop_str: [], stop_token_ids: [7] },
  };
}

const CHECKPOINT = "llama-gqa";
const QUANTIZATION = "q4f16_1";
/** Paths on the server, and the folders behind them: that of MLC lacks what its converter does not write. */
const folders = {
  "/hf/": [`${DATA}/checkpoints/${CHECKPOINT}`],
  "/mlc/": [`${DATA}/mlc/${CHECKPOINT}-${QUANTIZATION}`, `${DATA}/checkpoints/${CHECKPOINT}`],
};
const NAMES = {
  "/hf/": ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"],
  "/mlc/": ["mlc-chat-config.json", "params_shard_0.bin", "tensor-cache.json", "tokenizer.json", "tokenizer_config.json"],
};
const HUB = "/hub/";

let [t, config, asked] = [null, null, []];

const fileOf = async (folder, name) => {
  if (!NAMES[folder]?.includes(name)) return null;
  if (name === "mlc-chat-config.json") return Buffer.from(JSON.stringify(config));
  const place = folders[folder].find((place) => existsSync(`${place}/${name}`));
  return place ? readFile(`${place}/${name}`) : null;
};

before(async () => {
  config = await chatConfig(CHECKPOINT, QUANTIZATION);
  t = await open(async (request, response, { pathname }) => {
    const inHub = /^\/hub\/api\/models\/org\/(hf|mlc)\/tree\/main$/.exec(pathname)?.[1];
    if (inHub) {
      const names = [...NAMES[`/${inHub}/`], "README.md", "other.bin"];
      const files = await Promise.all(names.map(async (path) => ({ type: "file", path, size: (await fileOf(`/${inHub}/`, path))?.length ?? 1 })));
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(files));
      return true;
    }
    const [, folder, name] = /^(?:\/hub\/org)?(\/(?:hf|mlc)\/)(?:resolve\/main\/)?([^/]+)$/.exec(pathname) ?? [];
    const bytes = folder && (await fileOf(folder, name));
    if (!bytes) return false;
    asked.push(`${request.method} ${name}`);
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const [from, to] = range ? [Number(range[1]), Math.min(bytes.length, Number(range[2] || bytes.length - 1) + 1)] : [0, bytes.length];
    const part = range ? { "content-range": `bytes ${from}-${to - 1}/${bytes.length}` } : {};
    response.writeHead(range ? 206 : 200, { "accept-ranges": "bytes", etag: `"${bytes.length}"`, "content-length": to - from, ...part });
    response.end(request.method === "HEAD" ? undefined : bytes.subarray(from, to));
    return true;
  });
});
after(() => t?.close());

/** The tokens of the golden prompt, and the one with the largest logit after each. */
async function golden(logits) {
  const { tokens, shape: [n, width] } = (await json(`${DATA}/checkpoints/index.json`))[CHECKPOINT];
  const bytes = await readFile(logits);
  const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  assert.equal(values.length, n * width);
  const rows = Array.from({ length: n }, (_, i) => values.subarray(i * width, (i + 1) * width));
  return { tokens, next: rows.map((row) => row.indexOf(row.reduce((a, b) => Math.max(a, b)))) };
}

/** Texts of the next token after each of the prompt's, as the engine chooses them and as they are said to be. */
const compare = (model, found, options = {}) =>
  t.page.evaluate(async ([model, { tokens, next }, options]) => {
    if (Array.isArray(model)) {
      model = await Promise.all(model.map(async ([name, url]) => new File([await (await fetch(url)).arrayBuffer()], name)));
    }
    const engine = await chaski.Engine.create({ model, contextLength: 64, kvType: "f32", ...options });
    const [chosen, expected] = [[], []];
    for (let i = 0; i < tokens.length; i++) {
      const answer = await engine.completions.create({ prompt: tokens.slice(0, i + 1), max_tokens: 1, temperature: 0, ignore_eos: true });
      chosen.push(answer.choices[0].text);
      expected.push(await engine.detokenize([next[i]]));
    }
    const { model: info, device } = engine.info();
    await engine.close();
    return { chosen, expected, info, kind: device.kind };
  }, [model, found, options]);

for (const [kind, logits, type] of [
  ["hf", `${DATA}/checkpoints/${CHECKPOINT}/logits.f32`, null],
  ["mlc", `${DATA}/mlc/${CHECKPOINT}-${QUANTIZATION}/logits.f32`, "Q4_0"],
]) {
  test(`a folder of ${kind} at an address writes the tokens of the golden logits, on the CPU and by WebGPU`, async () => {
    const found = await golden(logits);
    for (const device of ["cpu", "gpu"]) {
      const { chosen, expected, info, kind: ran } = await compare(`${t.server.origin}/${kind}/`, found, { device });
      assert.deepEqual(chosen, expected);
      assert.equal(ran, device);
      assert.equal(info.architecture, "llama");
      if (type) assert.ok(info.description.includes(type), info.description);
    }
  });

  test(`a repository that is a folder of ${kind} is stored, and works offline`, async () => {
    const found = await golden(logits);
    const options = { device: "cpu", hub: `${t.server.origin}${HUB}` };
    const { chosen, expected } = await compare(`org/${kind}`, found, options);
    assert.deepEqual(chosen, expected);
    assert.ok(!asked.some((request) => /README|other/.test(request)), asked.join());
    asked = [];
    const again = await compare(`org/${kind}`, found, { ...options, offline: true });
    assert.deepEqual([again.chosen, asked], [expected, []]);
    const removed = await t.page.evaluate(async ([model, hub]) => {
      const isWhole = await chaski.models.verify(model, { hub });
      return [isWhole, await chaski.models.remove(model, { hub }), await chaski.models.remove(model, { hub })];
    }, [`org/${kind}`, options.hub]);
    assert.deepEqual(removed, [true, true, false]);
  });

  test(`files of a folder of ${kind} that a user has chosen are a model`, async () => {
    const found = await golden(logits);
    const files = [...NAMES[`/${kind}/`].map((name) => [name, `/${kind}/${name}`])];
    const { chosen, expected } = await compare(files, found, { device: "cpu" });
    assert.deepEqual(chosen, expected);
  });
}

test("weights that are converted are a note", async () => {
  const converted = `${CHECKPOINT}-q3f16_1`;
  const [places, before] = [folders["/mlc/"], config];
  folders["/mlc/"] = [`${DATA}/mlc/${converted}`, places[1]];
  config = { ...config, quantization: "q3f16_1" };
  try {
    const notes = await t.page.evaluate(async (model) => {
      const engine = await chaski.Engine.create({ model, device: "cpu", contextLength: 64, cache: "none" });
      const { notes } = engine.info();
      await engine.close();
      return notes;
    }, `${t.server.origin}/mlc/`);
    assert.match(notes.join(), /q3f16_1 are converted/);
  } finally {
    [folders["/mlc/"], config] = [places, before];
  }
});

test("its head is enough to say what it is", async () => {
  asked = [];
  const told = await t.page.evaluate((model) => chaski.inspect(model, { device: "cpu", contextLength: 64 }), `${t.server.origin}/mlc/`);
  assert.equal(told.model?.architecture ?? told.architecture, "llama");
  assert.ok(told.memory.total > 0 && told.fits, JSON.stringify(told));
});

test("folders that are no model are refused, and say why", async () => {
  const refused = (model) => t.page.evaluate(async (model) => failure(chaski.Engine.create({ model, device: "cpu", cache: "none" })), model);
  const nothing = await refused(`${t.server.origin}/nothing/`);
  assert.deepEqual([nothing.code, nothing.engine], ["not_found", true]);
  assert.match(nothing.message, /no mlc-chat-config.json and no config.json/);
  config = { ...config, model_type: "rwkv" };
  const unknown = await refused(`${t.server.origin}/mlc/`);
  assert.equal(unknown.code, "unsupported_format");
  assert.match(unknown.message, /rwkv/);
});
