// Other ways to run: on the page's own thread, from files of the user's, after the device was lost, and with the kernels that
// every device has.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { MODEL, MODEL_FILE, open } from "./page.js";
import { split } from "./split.js";

let [t, parts] = [];
before(async () => {
  parts = split(await readFile(MODEL_FILE), 2);
  t = await open((request, response, url) => {
    const part = parts[Number(/^\/part\/(\d)/.exec(url.pathname)?.[1])];
    if (part) response.end(part);
    return Boolean(part);
  });
});
after(() => t?.close());

test("a split set of Files loads on the page's own thread, with threads that are alone, to the same text", async () => {
  const found = await t.page.evaluate(async () => {
    const part = async (i) => new File([await (await fetch(`/part/${i}`)).blob()], `story-0000${i + 1}-of-00002.gguf`);
    globalThis.engine = await chaski.Engine.create({ model: [await part(0), await part(1)], worker: false, device: "gpu" });
    const answer = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 8 });
    const { subgroups, alone } = engine.info().device.caps;
    return [subgroups, alone, answer.choices[0].text, (await chaski.models.list()).length];
  });
  assert.deepEqual(found.slice(0, 2), [[4, 4], true]);
  assert.ok(", there lived a small, lively boy named Inti.".startsWith(found[2]) && found[2].length > 15, found[2]);
  assert.equal(found[3], 0, "nothing was stored");
});

test("after a lost device the next request runs on a new one", async () => {
  const found = await t.page.evaluate(async () => {
    const request = { prompt: "Once upon a time", temperature: 0, max_tokens: 4 };
    await engine.loseDevice();
    const answer = await engine.completions.create(request);
    await engine.close();
    return answer.choices[0].text;
  });
  assert.ok(", there lived a small".startsWith(found) && found.length > 4, found);
});

test("without subgroups the text is the same", async () => {
  // Without the self-test, and for few columns: a software GPU takes a second for each of these kernels to compile.
  const found = await t.page.evaluate(async (model) => {
    const engine = await chaski.Engine.create({ model, device: "gpu", chunk: 8, subgroups: false, selfTest: false });
    const answer = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 4 });
    const { subgroups, alone } = engine.info().device.caps;
    await engine.close();
    return [subgroups, alone, answer.choices[0].text];
  }, MODEL);
  assert.deepEqual(found.slice(0, 2), [null, false]);
  assert.ok(", there lived a small".startsWith(found[2]) && found[2].length > 4, found[2]);
});
