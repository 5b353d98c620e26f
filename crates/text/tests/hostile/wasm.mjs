// Runs the hostile corpora as WebAssembly: `node wasm.mjs FOLDER`, where xtask puts the module and its bindings. Each case
// has an instance of its own, a stack of 1 MB and at most the memory that the module declares; a trap, a stack overflow,
// too much memory or too much time is a failure.

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { pathToFileURL, fileURLToPath } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

// The machine may be busy.
const TIME_MS = 60_000;
// Memory of a rendering: that of the native harness, and a third more for buffers that moved when they grew, because the
// memory of an instance never shrinks.
const TOUCHED = 256 << 20;

const url = (folder) => pathToFileURL(path.join(folder, "hostile.js")).href;

// A fresh instance: a module of JavaScript has the state of one.
async function instance(folder, module, n) {
  const bindings = await import(`${url(folder)}?${n}`);
  return { bindings, memory: bindings.initSync({ module }).memory };
}

async function work({ folder, module }) {
  let n = 0;
  parentPort.on("message", async (name) => {
    try {
      const { bindings, memory } = await instance(folder, module, n++);
      const ended = bindings.run(name);
      parentPort.postMessage({ ended, n_byte: memory.buffer.byteLength });
    } catch (e) {
      parentPort.postMessage({ ended: `${e}` });
    }
  });
}

// A thread that runs one case after another; another one replaces it if a case does not end.
class Thread {
  constructor(data) {
    this.data = data;
    this.start();
  }

  start() {
    this.worker = new Worker(fileURLToPath(import.meta.url), {
      workerData: this.data,
      resourceLimits: { stackSizeMb: 1 },
    });
    this.worker.on("message", (result) => this.end(result));
    this.worker.on("error", (e) => this.end({ ended: `the thread ended: ${e}` }));
  }

  async run(name) {
    let timer;
    const result = await new Promise((resolve) => {
      this.end = resolve;
      timer = setTimeout(() => resolve({ ended: `runs for more than ${TIME_MS / 1000} s` }), TIME_MS);
      this.worker.postMessage(name);
    });
    clearTimeout(timer);
    if (result.n_byte === undefined) {
      await this.worker.terminate();
      this.start();
    }
    return result;
  }
}

function problem(name, { ended, n_byte }) {
  if (!ended.startsWith("ended: ")) return ended;
  if (/panic|\n/.test(ended)) return `its error is not one line: ${ended}`;
  if (name.startsWith("template") && n_byte > TOUCHED) return `takes ${n_byte} bytes`;
}

async function main(folder) {
  const module = await WebAssembly.compile(await readFile(path.join(folder, "hostile_bg.wasm")));
  const only = process.env.CHASKI_HOSTILE_ONLY ?? "";
  const { bindings } = await instance(folder, module, "names");
  const all = JSON.parse(bindings.names());
  const chosen = all.filter(([name, title]) => name.includes(only) || title.includes(only));
  // Neighbors in the list are alike.
  const isFull = process.env.CHASKI_TEST_FULL !== undefined || only !== "";
  const cases = chosen.filter((_, i) => isFull || i % 4 === 0);
  const problems = [];
  let next = 0;
  const threads = Array.from({ length: Math.min(2, availableParallelism()) }, async () => {
    const thread = new Thread({ folder, module });
    while (next < cases.length) {
      const [name, title] = cases[next++];
      const started = performance.now();
      const result = await thread.run(name);
      if (process.env.CHASKI_HOSTILE_VERBOSE) {
        const seconds = ((performance.now() - started) / 1000).toFixed(2);
        console.error(`${seconds} s ${name} (${title}), ${result.n_byte} bytes: ${result.ended.slice(0, 200)}`);
      }
      const found = problem(name, result);
      if (found) problems.push(`${name} (${title}): ${found}`);
    }
    await thread.worker.terminate();
  });
  await Promise.all(threads);
  problems.forEach((line) => console.error(line));
  const n = (list) => list.filter(([name]) => name.startsWith("template")).length;
  const n_grammar = (list) => list.length - n(list);
  const counts = `${n(cases)} of ${n(chosen)} hostile templates and ${n_grammar(cases)} of ${n_grammar(chosen)} grammars`;
  console.log(`NOTE: ${counts} as WebAssembly, 1 MB of stack: ${problems.length} ended otherwise`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}

await (isMainThread ? main(path.resolve(process.argv[2])) : work(workerData));
