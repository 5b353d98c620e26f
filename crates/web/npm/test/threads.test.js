// The engine on the CPU with threads: what isolated pages without a GPU get.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ISOLATED } from "./browser.js";
import { MODEL, open } from "./page.js";

/** Workers whose threads are said to have failed, and that cannot start any. */
const SCRIPTS = {
  "/without.js": `import "/nothing.js"; import "/npm/worker.js";`,
  "/nothing.js": `globalThis.Worker = class { constructor() { throw new Error("no workers here"); } };`,
  "/failing.js": `import "/failures.js"; import "/npm/worker.js";`,
  "/failures.js": `
    const Plain = Worker;
    globalThis.Worker = class extends Plain {
      postMessage(shared) {
        Atomics.add(new Int32Array(shared.memory.buffer), shared.failures >> 2, 1);
        super.postMessage(shared);
      }
    };`,
};

let [t, n] = [null, 0];
before(async () => {
  t = await open((request, response, url) => {
    const text = SCRIPTS[url.pathname];
    if (text) response.writeHead(200, { "content-type": "text/javascript", ...ISOLATED }).end(text);
    return Boolean(text);
  }, ISOLATED);
  n = await t.page.evaluate(() => navigator.hardwareConcurrency);
  assert.ok(n > 1, "threads need cores");
});
after(() => t?.close());

/** Texts that engines of these options write, greedily and by a seed, of a short and of a long prompt. */
const write = (options) =>
  t.page.evaluate(async ([model, options]) => {
    const engine = await chaski.Engine.create({ model, device: "cpu", ...options });
    const texts = [];
    for (const prompt of ["Once upon a time", "The road was long. ".repeat(40)]) {
      for (const more of [{ temperature: 0 }, { temperature: 1, seed: 7 }]) {
        const answer = await engine.completions.create({ prompt, max_tokens: 24, ...more });
        texts.push(answer.choices[0].text);
      }
    }
    const { device } = engine.info();
    await engine.close();
    return { texts, device };
  }, [MODEL, options]);

test("texts do not depend on the number of threads", async () => {
  const one = await write({ threads: 1 });
  const all = await write({});
  assert.deepEqual([one.device.threads, all.device.threads], [1, Math.min(n, 8)]);
  assert.deepEqual(all.texts, one.texts);
  assert.ok(one.texts.every((text) => text.length > 40), JSON.stringify(one.texts));
});

test("there are no more threads than cores, and a number of them is one", async () => {
  assert.equal((await write({ threads: 1000 })).device.threads, n);
  const codes = await t.page.evaluate(
    (model) => Promise.all([0, -1, 1.5, "2"].map(async (threads) => (await failure(chaski.Engine.create({ model, threads }))).message)),
    MODEL,
  );
  codes.forEach((message) => assert.match(message, /threads: expected a positive integer/));
});

test("a page that is not isolated, and an engine without a worker, have one thread", async () => {
  const direct = await write({ worker: false, threads: 2 });
  assert.equal(direct.device.threads, 1);
  const plain = await open();
  try {
    const threads = await plain.page.evaluate(async (model) => {
      const engine = await chaski.Engine.create({ model, device: "cpu", threads: 2 });
      return engine.info().device.threads;
    }, MODEL);
    assert.equal(threads, 1);
  } finally {
    await plain.close();
  }
});

test("a module that does not load is an error that says where it may be", async () => {
  const found = await t.page.evaluate(
    async (model) => failure(chaski.Engine.create({ model, device: "cpu", threadsUrl: "/nowhere.wasm" })),
    MODEL,
  );
  assert.equal(found.code, "wasm_failed");
  assert.match(found.hint, /threadsUrl/);
});

test("threads that nobody asked for and that do not start are a note", async () => {
  const { device, notes } = await t.page.evaluate(async (model) => {
    const engine = await chaski.Engine.create({ model, device: "cpu", workerUrl: "/without.js" });
    return engine.info();
  }, MODEL);
  assert.equal(device.threads, 1);
  assert.match(notes.join(), /there is one thread: no workers here/);
});

test("a thread that fails ends what waits for it", async () => {
  const found = await t.page.evaluate(async (model) => {
    const create = () => chaski.Engine.create({ model, device: "cpu", threads: 2, workerUrl: "/failing.js" });
    return failure(create().then((engine) => engine.completions.create({ prompt: "Once upon a time", max_tokens: 9 })));
  }, MODEL);
  assert.ok(found?.engine, JSON.stringify(found));
});
