// A stream that can be awaited first or iterated at once, as clients of OpenAI's interface do either.

import { aborted } from "./errors.js";

/**
 * @template T
 * @param {(push: (item: T) => void, signal: AbortSignal) => Promise<T[]>} run gets where to push items; its result are the last ones
 * @param {AbortSignal | undefined} signal
 */
export function stream(run, signal) {
  const iterable = {
    [Symbol.asyncIterator]: () => iterate(run, signal),
  };
  return {
    ...iterable,
    // The request is sent when the stream is read, so that nothing runs that nobody reads.
    then: (resolve, reject) => Promise.resolve(iterable).then(resolve, reject),
  };
}

async function* iterate(run, signal) {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal?.addEventListener("abort", abort);
  const items = [];
  let [ended, failure, wake] = [false, null, () => {}];
  const push = (item) => {
    items.push(item);
    wake();
  };
  if (signal?.aborted) throw aborted();
  const done = run(push, stop.signal)
    .then((last) => last.forEach(push), (error) => (failure = error))
    .finally(() => {
      ended = true;
      wake();
    });
  // A caller that aborts does not wait for the engine.
  stop.signal.addEventListener("abort", () => wake());
  try {
    for (;;) {
      if (signal?.aborted) throw aborted();
      if (items.length > 0) yield items.shift();
      else if (failure) throw failure;
      else if (ended) return;
      else await new Promise((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    if (!ended) {
      stop.abort();
      await done;
    }
  }
}
