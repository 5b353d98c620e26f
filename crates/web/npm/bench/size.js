// Bytes that a page with the package loads: bundled and minified by Vite, and compressed as servers do. Prints JSON.

import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "vite";

const root = fileURLToPath(new URL("page", import.meta.url));
const SWARM = fileURLToPath(new URL("../swarm.js", import.meta.url));
const folder = await mkdtemp(join(tmpdir(), "chaski-size-"));

function brotli(bytes) {
  const { BROTLI_PARAM_QUALITY: quality, BROTLI_PARAM_LGWIN: window, BROTLI_PARAM_SIZE_HINT: hint } = constants;
  return brotliCompressSync(bytes, { params: { [quality]: 11, [window]: 24, [hint]: bytes.length } }).length;
}

try {
  await build({ root, base: "/", configFile: false, logLevel: "error", build: { outDir: folder, emptyOutDir: true } });
  const sizes = { script: [0, 0, 0], wasm: [0, 0, 0], grammar: [0, 0, 0], threads: [0, 0, 0], folder: [0, 0, 0] };
  for (const name of await readdir(join(folder, "assets"))) {
    // Files that come when they are asked for (the list of models, the engine on the page itself) are no part of the first load.
    const later = /(grammar|threads|folder).*\.wasm$/.exec(name)?.[1];
    const kind = later ?? (name.endsWith(".wasm") ? "wasm" : /^(?:index|worker)-.*\.js$/.test(name) ? "script" : null);
    if (!kind) continue;
    const bytes = await readFile(join(folder, "assets", name));
    [bytes.length, gzipSync(bytes, { level: 9 }).length, brotli(bytes)].forEach((n, i) => (sizes[kind][i] += n));
  }
  // Pages that are workers of a swarm load this alone.
  const [{ output }] = [await build({ configFile: false, logLevel: "error", build: { write: false, lib: { entry: SWARM, name: "swarm", formats: ["iife"] } } })].flat();
  const swarm = Buffer.concat(output.map(({ code }) => Buffer.from(code)));
  sizes.swarm = [swarm.length, gzipSync(swarm, { level: 9 }).length, brotli(swarm)];
  console.log(JSON.stringify(sizes));
} finally {
  await rm(folder, { recursive: true, force: true });
}
