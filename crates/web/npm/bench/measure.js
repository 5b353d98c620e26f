// The bench page without a person: measures models in Chromium and prints the page's rows as JSON, for `cargo xtask perf-doc`.
//
//   cargo xtask web && node bench/measure.js [--prompt 128,512] [--depth 0,2048] [--ablations] ... [MODEL.gguf ...]
//
// Options are those of `bench` in crates/web/demo/measure.js; lists have commas. Without a model it takes that of the page.
// CHASKI_CHROMIUM and CHASKI_CHROMIUM_FLAGS as for tests.

import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { cpus } from "node:os";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { launch, serve } from "../test/browser.js";

const SITE = fileURLToPath(new URL("../../../../target/web-page", import.meta.url));
const NUMBERS = ["prompt", "answer", "depth", "chunk"];
const WORDS = ["kvType", "inputs"];

const string = { type: "string" };
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ...Object.fromEntries([...NUMBERS, ...WORDS, "device", "runs"].map((name) => [name, string])), ablations: { type: "boolean" } },
});
const options = { prompt: [128], answer: [32], ...values, runs: Number(values.runs ?? 3) };
for (const name of NUMBERS) if (values[name]) options[name] = values[name].split(",").map(Number);
for (const name of WORDS) if (values[name]) options[name] = values[name].split(",");

const paths = positionals.map((path) => resolve(path));
const roots = Object.fromEntries(paths.map((path, i) => [`m${i}`, dirname(path)]));
const model = paths.length > 0 ? paths.map((path, i) => `/m${i}/${basename(path)}`) : "models/storyteller-Q4_K_M.gguf";

const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url)));
const git = (...args) => execFileSync("git", args, { encoding: "utf8", cwd: dirname(fileURLToPath(import.meta.url)) }).trim();
const build_commit = process.env.CHASKI_COMMIT ?? git("rev-parse", "--short", "HEAD");

const server = await serve({ site: SITE, ...roots });
const browser = await launch();
try {
  const page = await browser.context.newPage();
  page.setDefaultTimeout(0);
  await page.goto(`${server.origin}/site/bench.html`);
  await page.exposeFunction("told", (text) => console.error(text));
  const rows = await page.evaluate(async (options) => {
    const { bench } = await import("./measure.js");
    return bench({ ...options, onState: told });
  }, { ...options, model });
  const [{ model: cpu }] = cpus();
  const about = { engine: `chaski ${version}`, build_commit, browser: /(?:Headless)?Chrome\/[\d.]+/.exec(rows[0].cpu_info)?.[0] ?? rows[0].cpu_info, cpu_info: cpu };
  console.log(JSON.stringify(rows.map((row) => ({ ...row, ...about }))));
} finally {
  await browser.close();
  await server.close();
}
