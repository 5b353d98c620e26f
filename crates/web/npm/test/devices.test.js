// Other ways to run: on the page's own thread, with subgroups, from files of the user's, and after the device was lost.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { MODEL, REPOSITORY, open } from "./page.js";
import { split } from "./split.js";

let [t, parts] = [];
before(async () => {
  parts = split(await readFile(REPOSITORY + MODEL.slice(1)), 2);
  t = await open((request, response, url) => {
    const part = parts[Number(/^\/part\/(\d)/.exec(url.pathname)?.[1])];
    if (part) response.end(part);
    return Boolean(part);
  });
});
after(() => t?.close());

test("a split set of Files loads on the page's own thread, with subgroups, to the same text", async () => {
  const found = await t.page.evaluate(async () => {
    const part = async (i) => new File([await (await fetch(`/part/${i}`)).blob()], `story-0000${i + 1}-of-00002.gguf`);
    globalThis.engine = await chaski.Engine.create({ model: [await part(0), await part(1)], worker: false, chunk: 8, selfTest: false });
    const answer = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 8 });
    return [engine.info().device.caps.subgroups, answer.choices[0].text, (await chaski.models.list()).length];
  });
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
