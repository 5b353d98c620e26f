// Lighthouse on the chat page of `target/web-page`, served as a host of static files does: compressed, over http on this machine.
//
// `node bench/lighthouse.js FOLDER`, where FOLDER has npm's `lighthouse` (`npm install --prefix FOLDER lighthouse`). Prints scores and
// what costs points, of the median of three runs; fails below the targets. CHASKI_CHROMIUM names the browser, CHASKI_PAGE another folder
// than `target/web-page`. It needs Xvfb (`apt-get install xvfb xauth`).

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompressSync } from "node:zlib";

const TARGETS = { performance: 95, accessibility: 100, "best-practices": 100 };
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json", ".wasm": "application/wasm" };

const tool = resolve(process.argv[2] ?? ".", "node_modules/lighthouse/cli/index.js");
const root = process.env.CHASKI_PAGE ?? fileURLToPath(new URL("../../../../target/web-page", import.meta.url));

/** Files by their path, compressed once. */
const files = new Map();
async function file(name) {
  const path = normalize(join(root, name));
  if (!files.has(path)) files.set(path, await readFile(path).then(brotliCompressSync, () => null));
  return files.get(path);
}

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const name = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
  const body = await file(name);
  if (!body) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(name)] ?? "application/octet-stream", "content-encoding": "br", "cache-control": "max-age=31536000" }).end(body);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
// On a display, of Xvfb: headless Chromium without a GPU draws one frame a second, for which a paint may wait.
const FLAGS = "--no-sandbox --enable-unsafe-webgpu";

/** One run, as Lighthouse comes: a phone, whose network and CPU are simulated. */
async function run() {
  const args = [tool, `http://127.0.0.1:${server.address().port}/`, "--output=json", "--quiet", `--only-categories=${Object.keys(TARGETS)}`, `--chrome-flags=${FLAGS}`];
  const env = { ...process.env, CHROME_PATH: process.env.CHASKI_CHROMIUM ?? "/usr/bin/chromium" };
  const { stdout } = await promisify(execFile)("xvfb-run", ["-a", "node", ...args], { env, maxBuffer: 1 << 28, timeout: 300_000 });
  return JSON.parse(stdout);
}

try {
  const runs = [await run(), await run(), await run()];
  const scores = ({ categories }) => categories.performance.score;
  const { categories, audits } = runs.sort((a, b) => scores(a) - scores(b))[1];
  console.log(`performance of each run: ${runs.map((r) => Math.round(100 * scores(r))).join(", ")}`);
  for (const [name, target] of Object.entries(TARGETS)) {
    const { score, auditRefs } = categories[name];
    console.log(`${name}: ${Math.round(100 * score)} of ${target}`);
    if (100 * score < target) process.exitCode = 1;
    for (const { id, weight } of auditRefs) {
      const { score: own, title, displayValue = "", details } = audits[id];
      if (weight > 0 && own !== null && own < 1) console.log(`  ${id}: ${Math.round(100 * own)} ${title} ${displayValue}`, JSON.stringify(details?.items ?? []).slice(0, 600));
    }
  }
  const times = ["first-contentful-paint", "largest-contentful-paint", "total-blocking-time", "cumulative-layout-shift", "speed-index"];
  console.log(times.map((id) => `${id} ${audits[id].displayValue}`).join(", "));
} finally {
  server.close();
}
