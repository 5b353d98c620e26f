// Chaski and wllama side by side: the same file, prompts and clock, each in a browser of its own.
//
//   npm install --prefix ../../../target/wllama @wllama/wllama
//   node bench/against.js ../../../target/wllama/node_modules/@wllama/wllama [MODEL.gguf] [--json]
//
// Times are those of whole requests as the page sees them: a prompt is a request of one token, decoding what a request of
// more takes beyond that. PROMPT, ANSWER and RUNS change the sizes; ONLY is an expression for names of engines.

import { execFileSync } from "node:child_process";
import { readFile, readdir, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { cpus } from "node:os";
import { basename, resolve } from "node:path";
import { ISOLATED, launch, sendFile, serve } from "../test/browser.js";

const args = process.argv.slice(2);
const asJson = args.includes("--json");
const [wllama, model = fileURLToPath(new URL("../../../chaski/model/storyteller-Q4_K_M.gguf", import.meta.url))] = args.filter((a) => a !== "--json");
if (!wllama) throw new Error("usage: node bench/against.js FOLDER_OF_WLLAMA [MODEL.gguf]");
const number = (name, standard) => Number(process.env[name] ?? standard);
const SIZES = { prompt: number("PROMPT", 64), answer: number("ANSWER", 64), runs: number("RUNS", 3) };

/** How each engine loads the file and answers: the functions run in the page. */
const ENGINES = [
  ...[
    ["chaski, on the CPU", { device: "cpu" }],
    ["chaski, on the CPU, 1 thread", { device: "cpu", threads: 1 }],
    ["chaski, on the GPU", { device: "gpu" }],
  ].map(([name, more]) => ({
    name,
    more,
    version: async () => JSON.parse(await readFile(new URL("../package.json", import.meta.url))).version,
    load: async (blob, more) => {
      const { Engine } = await import("/chaski/index.js");
      const engine = await Engine.create({ model: new File([blob], "model.gguf"), contextLength: 512, ...more });
      return async (request) => (await engine.completions.create(request)).usage.prompt_tokens;
    },
  })),
  ...[
    ["wllama, its defaults", {}],
    ["wllama, on the CPU", { n_gpu_layers: 0 }],
    ["wllama, on the CPU, 2 threads", { n_gpu_layers: 0, n_threads: 2 }],
  ].map(([name, more]) => ({
    name,
    more,
    version: async () => JSON.parse(await readFile(`${wllama}/package.json`)).version,
    load: async (blob, more) => {
      const { Wllama } = await import("/wllama/esm/index.js");
      const engine = new Wllama({ default: "/wllama/esm/wasm/wllama.wasm" });
      await engine.loadModel([blob], { n_ctx: 512, ...more });
      return async (request) => (await engine.createCompletion(request)).usage.prompt_tokens;
    },
  })),
];

/** Runs in the page: loads the model and times requests. */
async function measure({ load, more, sizes }) {
  const blob = await (await fetch("/model.gguf")).blob();
  let start = performance.now();
  const complete = await new Function(`return ${load}`)()(blob, more);
  const loadMs = performance.now() - start;
  const timed = async (prompt, n) => {
    start = performance.now();
    const nPrompt = await complete({ prompt, max_tokens: n, temperature: 0, ignore_eos: true });
    return [performance.now() - start, nPrompt];
  };
  const words = ["sun", "moon", "road", "bird", "stone", "hill", "boy", "girl", "house", "river", "cat"];
  // Prompts that begin differently, so that none is in a cache.
  const prompt = (run) => Array.from({ length: sizes.prompt }, (_, i) => words[(7 * i + 5 * run + (i * i) % 13) % words.length]).join(" ");
  const [firstMs] = await timed(prompt(0), 1);
  await timed("Once upon a time", sizes.answer);
  const [prefill, decode] = [[], []];
  for (let run = 1; run <= sizes.runs; run++) {
    const [ms, n] = await timed(prompt(run), 1);
    prefill.push((1000 * n) / ms);
    await timed("Once upon a time", 1);
    const [one] = await timed("Once upon a time", 1);
    const [all] = await timed("Once upon a time", sizes.answer + 1);
    decode.push((1000 * sizes.answer) / (all - one));
  }
  return { loadMs, firstMs, prefill, decode };
}

/** Most memory that the browser's page and GPU processes had, in MiB; `null` where there is no /proc. */
async function peakMemory() {
  let sum = 0;
  for (const pid of await readdir("/proc").catch(() => [])) {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (!/--type=(renderer|gpu-process)/.test(line) || !isOf(Number(pid))) continue;
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    sum += Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0);
  }
  return sum > 0 ? sum / 1024 : null;
}

/** True if a process descends from this one. */
function isOf(pid) {
  for (let at = pid; at > 1; ) {
    if (at === process.pid) return true;
    at = Number(execFileSync("ps", ["-o", "ppid=", "-p", String(at)]).toString().trim() || 0);
  }
  return false;
}

const server = await serve({}, async (request, response, url) => {
  const paths = { "/chaski/": fileURLToPath(new URL("..", import.meta.url)), "/wllama/": `${resolve(wllama)}/` };
  if (url.pathname === "/") {
    response.writeHead(200, { "content-type": "text/html", ...ISOLATED }).end("<!doctype html>");
    return true;
  }
  const [prefix, folder] = Object.entries(paths).find(([prefix]) => url.pathname.startsWith(prefix)) ?? [];
  const path = url.pathname === "/model.gguf" ? model : folder && folder + url.pathname.slice(prefix.length);
  const info = path && (await stat(path).catch(() => null));
  if (!info?.isFile()) return false;
  sendFile(request, response, path, info.size, ISOLATED);
  return true;
});

const median = (xs) => xs.toSorted((a, b) => a - b)[xs.length >> 1];
if (!asJson) {
  console.log(`${basename(model)}: prompts of ${SIZES.prompt} words, ${SIZES.answer} tokens, median of ${SIZES.runs}`);
  console.log("| engine | prefill t/s | decode t/s | load s | first prompt s | MiB at most |\n| --- | --- | --- | --- | --- | --- |");
}
const records = [];
for (const { name, version, load, more } of ENGINES.filter(({ name }) => new RegExp(process.env.ONLY ?? "").test(name))) {
  const browser = await launch();
  const page = await browser.context.newPage();
  page.setDefaultTimeout(0);
  await page.goto(`${server.origin}/`);
  const r = await page.evaluate(measure, { load: String(load), more, sizes: SIZES });
  const record = {
    engine: `${name} ${await version()}`,
    browser: await page.evaluate(() => navigator.userAgent),
    model_filename: basename(model),
    n_prompt: SIZES.prompt,
    n_gen: SIZES.answer,
    test_time: new Date().toISOString(),
    cpu_info: cpus()[0]?.model ?? "",
    n_threads: more.threads ?? more.n_threads ?? cpus().length,
    prefill_ts: median(r.prefill),
    decode_ts: median(r.decode),
    load_ms: r.loadMs,
    first_ms: r.firstMs,
    peak_mib: await peakMemory(),
  };
  records.push(record);
  const cells = [record.prefill_ts.toFixed(1), record.decode_ts.toFixed(1), (r.loadMs / 1000).toFixed(1), (r.firstMs / 1000).toFixed(2)];
  if (!asJson) console.log(`| ${record.engine} | ${cells.join(" | ")} | ${record.peak_mib?.toFixed(0) ?? "?"} |`);
  await browser.close();
}
if (asJson) console.log(JSON.stringify(records, null, 1));
await server.close();
