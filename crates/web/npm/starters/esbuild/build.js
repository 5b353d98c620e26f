// Builds the page and the worker into `dist`, beside the modules of WebAssembly, which esbuild does not find.

import { copyFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const worker = fileURLToPath(import.meta.resolve("chaski/worker"));
await build({ entryPoints: { main: "main.js", worker }, bundle: true, minify: true, format: "esm", outdir: "dist" });
await copyFile(fileURLToPath(import.meta.resolve("chaski/wasm")), "dist/chaski_web_bg.wasm");
await copyFile(fileURLToPath(import.meta.resolve("chaski/grammar")), "dist/chaski_grammar_bg.wasm");
await copyFile("index.html", "dist/index.html");
