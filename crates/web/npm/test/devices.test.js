// Other ways to run: on the page's own thread, from a file of the user's, after the device was lost, and with the kernels
// that every device has.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MODEL, open } from "./page.js";

let t;
before(async () => {
  t = await open();
});
after(() => t?.close());

test("a File loads on the page's own thread, with threads that are alone, to the same text", async () => {
  const found = await t.page.evaluate(async (model) => {
    const file = new File([await (await fetch(model)).arrayBuffer()], "story.gguf");
    globalThis.engine = await chaski.Engine.create({ model: file, worker: false });
    const answer = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 8 });
    const { subgroups, alone } = engine.info().device.caps;
    return [subgroups, alone, answer.choices[0].text, (await chaski.models.list()).length];
  }, MODEL);
  assert.deepEqual(found.slice(0, 2), [[4, 4], true]);
  assert.ok(", there lived a small, lively boy named Inti.".startsWith(found[2]) && found[2].length > 15, found[2]);
  assert.equal(found[3], 0, "nothing was stored");
});

test("after a lost device the next request runs on a new one", async () => {
  const found = await t.page.evaluate(async () => {
    const request = { prompt: "Once upon a time", temperature: 0, max_tokens: 4 };
    await engine.loseDevice();
    const error = await failure(engine.completions.create(request));
    const answer = await engine.completions.create(request);
    await engine.close();
    return [error, answer.choices[0].text];
  });
  assert.equal(found[0].code, "device_lost");
  assert.ok(", there lived a small".startsWith(found[1]) && found[1].length > 4, found[1]);
});

test("without subgroups the text is the same", async () => {
  // Without the self-test, and for few columns: a software GPU takes a second for each of these kernels to compile.
  const found = await t.page.evaluate(async (model) => {
    const engine = await chaski.Engine.create({ model, chunk: 8, subgroups: false, selfTest: false });
    const answer = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 4 });
    const { subgroups, alone } = engine.info().device.caps;
    await engine.close();
    return [subgroups, alone, answer.choices[0].text];
  }, MODEL);
  assert.deepEqual(found.slice(0, 2), [null, false]);
  assert.ok(", there lived a small".startsWith(found[2]) && found[2].length > 4, found[2]);
});
