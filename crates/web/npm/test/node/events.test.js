// Server-sent events as the chat page reads them, in whatever pieces they come.

import assert from "node:assert/strict";
import { test } from "node:test";
import { events } from "../../../../server/page/events.js";

/** A stream of a text in pieces of so many bytes, which notes that it was closed. */
function stream(text, nByte) {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  const source = {
    closed: false,
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, (at += nByte)));
    },
    cancel() {
      source.closed = true;
    },
  };
  return Object.assign(new ReadableStream(source), { source });
}

async function all(text, nByte) {
  const found = [];
  for await (const data of events(stream(text, nByte))) found.push(data);
  return found;
}

test("events are the same in pieces of any size", async () => {
  const text = ": ping\n\ndata: {\"a\": \"é😀\"}\n\nevent: x\ndata:b\r\ndata: c\r\n\r\ndata: [DONE]\n\ndata: without its end";
  for (const n of [1, 2, 3, 7, 1000]) assert.deepEqual(await all(text, n), ['{"a": "é😀"}', "b\nc", "[DONE]"], `${n} bytes`);
});

test("a reader that stops closes the stream", async () => {
  const endless = stream("data: a\n\n".repeat(1000), 9);
  for await (const data of events(endless)) {
    assert.equal(data, "a");
    break;
  }
  assert.ok(endless.source.closed);
});
