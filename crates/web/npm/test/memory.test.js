// Memory of the module while it loads a large model; it never shrinks.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { MODEL, MODEL_FILE, open } from "./page.js";
import { synthetic } from "./synthetic.js";

/** How much wider the model is than the default one: 560 MB. */
const FACTOR = 12;
const PIECE = 1 << 20;

let [t, model] = [];
before(async () => {
  model = synthetic(await readFile(MODEL_FILE), FACTOR);
  t = await open((request, response, url) => {
    if (url.pathname !== "/large.gguf") return false;
    response.writeHead(200, { "content-length": model.size });
    let at = 0;
    const more = () => {
      while (at < model.size) {
        const end = Math.min(at + PIECE, model.size);
        const piece = model.bytes(at, end);
        at = end;
        if (!response.write(piece)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
    return true;
  });
});
after(() => t?.close());

test("a model of half a gigabyte is downloaded, stored and loaded in a small heap", async () => {
  assert.ok(model.size > 500e6 && model.size < 600e6, `${model.size} bytes`);
  const found = await t.page.evaluate(async () => {
    const begin = performance.now();
    let stored = 0;
    const onProgress = ({ stage }) => (stored ||= stage === "upload" ? performance.now() : 0);
    const engine = await chaski.Engine.create({ model: "/large.gguf", device: "gpu", chunk: 64, contextLength: 128, onProgress });
    const [heap, { items }, loaded] = [await engine.heap(), engine.memory(), performance.now()];
    await engine.close();
    return { heap, weights: items.weights, ms: [stored - begin, loaded - stored] };
  });
  const [download, load] = found.ms.map((ms) => (ms / 1000).toFixed(1));
  console.log(`${model.size} bytes: ${found.heap} of wasm heap; ${download} s until they are stored, ${load} s to load them`);
  assert.ok(found.weights > 500e6, `${found.weights} bytes of weights on the device`);
  assert.ok(found.heap > 0 && found.heap < 64 << 20, `${found.heap} bytes of wasm heap`);
});
