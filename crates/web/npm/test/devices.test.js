// Other ways to run: on the page's own thread, with subgroups, from a file of the user's, and after the device was lost.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MODEL, open } from "./page.js";

let t;
before(async () => {
  t = await open();
});
after(() => t?.close());

test("a File loads on the page's own thread, with subgroups, to the same text", async () => {
  const found = await t.page.evaluate(async (model) => {
    const file = new File([await (await fetch(model)).arrayBuffer()], "story.gguf");
    globalThis.engine = await chaski.Engine.create({ model: file, worker: false, chunk: 8, selfTest: false });
    const answer = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 8 });
    return [engine.info().device.caps.subgroups, answer.choices[0].text, (await chaski.models.list()).length];
  }, MODEL);
  assert.deepEqual(found[0], [4, 4]);
  assert.ok(", there lived a small, lively boy named Inti.".startsWith(found[1]) && found[1].length > 15, found[1]);
  assert.equal(found[2], 0, "nothing was stored");
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
