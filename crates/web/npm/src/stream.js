// A stream that can be awaited first or iterated at once, as clients of OpenAI's interface do either.

import { badRequest, check } from "./errors.js";

/**
 * @template T
 * @param {(push: (item: T) => void, signal: AbortSignal) => Promise<T[]>} run gets where to push items; its result are the last ones
 * @param {AbortSignal | undefined} signal
 * @param {Promise<unknown>} asked fails if the request is refused: awaited or read, the stream then fails, too
 */
export function stream(run, signal, asked) {
  let read = false;
  const iterable = {
    [Symbol.asyncIterator]() {
      if (read) throw badRequest("a stream can be read once: send the request again for another answer");
      read = true;
      return iterate(run, signal);
    },
  };
  return {
    ...iterable,
    // The request is sent when the stream is read, so that nothing runs that nobody reads.
    then: (resolve, reject) => asked.then(() => iterable).then(resolve, reject),
  };
}

async function* iterate(run, signal) {
  check(signal);
  const stop = new AbortController();
  const items = [];
  let [ended, failure, wake] = [false, null, () => {}];
  const abort = () => {
    stop.abort();
    wake();
  };
  signal?.addEventListener("abort", abort);
  const push = (item) => {
    items.push(item);
    wake();
  };
  run(push, stop.signal)
    .then((last) => last.forEach(push), (error) => (failure = error))
    .finally(() => {
      ended = true;
      wake();
    });
  try {
    for (;;) {
      check(signal);
      if (items.length > 0) yield items.shift();
      else if (failure) throw failure;
      else if (ended) return;
      else await new Promise((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    // Whoever leaves does not wait for the engine; the next request does.
    if (!ended) stop.abort();
  }
}
