// Firefox, which looks for finished work when something is submitted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { lookForReadbacks } from "../../src/readbacks.js";

/** A browser's classes: what is mapped comes with the third submission after it. */
function browser(userAgent) {
  const [submitted, waiting] = [[], []];
  class GPUQueue {
    submit(commands) {
      submitted.push(commands.length);
      waiting.filter((one) => --one.left === 0).forEach((one) => one.resolve());
    }
  }
  class GPUBuffer {
    mapAsync() {
      return new Promise((resolve) => waiting.push({ left: 3, resolve }));
    }
  }
  lookForReadbacks({ GPUQueue, GPUBuffer, navigator: { userAgent } });
  return { queue: new GPUQueue(), buffer: new GPUBuffer(), submitted };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

test("while a readback waits, nothing is submitted again and again, and then no more", async () => {
  const { queue, buffer, submitted } = browser("Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0");
  for (const rounds of [1, 2]) {
    queue.submit([1]);
    await Promise.all([buffer.mapAsync(), buffer.mapAsync()]);
    await pause();
    assert.deepEqual(submitted.splice(0), [1, 0, 0, 0], `round ${rounds}`);
  }
});

test("other browsers are left alone", async () => {
  const { queue, buffer, submitted } = browser("Mozilla/5.0 AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15");
  queue.submit([1]);
  buffer.mapAsync();
  await pause();
  assert.deepEqual(submitted, [1]);
});
