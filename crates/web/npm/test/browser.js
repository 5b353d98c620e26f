// A headless Chromium on its software GPU, and a server of static files that can misbehave.

import { createServer } from "node:http";
import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";
import { launchOther } from "./webdriver.js";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
};

// Each of these was tried: see docs/web.md.
const FLAGS = [
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
];

/**
 * Starts the browser; `CHASKI_CHROMIUM` names another program, `CHASKI_CHROMIUM_FLAGS` adds flags. `CHASKI_BROWSER` is
 * another browser: firefox or webkit.
 */
export async function launch(flags = []) {
  if (process.env.CHASKI_BROWSER) return launchOther(process.env.CHASKI_BROWSER);
  const profile = await mkdtemp(join(tmpdir(), "chaski-web-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHASKI_CHROMIUM ?? "/usr/bin/chromium-headless-shell",
    headless: true,
    args: [...FLAGS, ...flags, ...(process.env.CHASKI_CHROMIUM_FLAGS ?? "").split(" ").filter(Boolean)],
  });
  return {
    context,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

/** Path and size of a file in the first of some folders that has it. */
async function find(folders, name) {
  for (const folder of folders) {
    const path = normalize(join(folder, name));
    const info = path.startsWith(normalize(folder)) ? await stat(path).catch(() => null) : null;
    if (info?.isFile()) return { path, size: info.size };
  }
  return null;
}

/**
 * Serves folders: `roots` maps the first part of a path to a folder, or to several. `answer(request, response, url)` may answer first
 * and then returns true. The port is any that is free, unless one is named; files have further `headers`.
 */
export async function serve(roots, answer = () => false, port = 0, headers = {}) {
  const server = createServer(async (request, response) => {
    try {
      const url = new URL(request.url, "http://localhost");
      if (await answer(request, response, url)) return;
      const [, first, ...rest] = url.pathname.split("/");
      const file = await find([roots[first] ?? []].flat(), decodeURIComponent(rest.join("/")));
      if (!file) {
        response.writeHead(404).end("not found");
        return;
      }
      if (process.env.CHASKI_BROWSER && file.path.endsWith(".html")) await sendOpen(response, file.path);
      else sendFile(request, response, file.path, file.size, headers);
    } catch (error) {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    }
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Headers of pages, and of all that they load, whose threads may share memory. */
export const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

/** Sends a page without its policy: WebDriver's scripts reach a page by `eval` alone. */
async function sendOpen(response, path) {
  const text = await readFile(path, "utf8");
  response.writeHead(200, { "content-type": TYPES[".html"] }).end(text.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, ""));
}

/** Sends a file or the range of it that was asked for. */
export function sendFile(request, response, path, size, headers = {}) {
  const etag = `"${size}"`;
  const all = { "content-type": TYPES[extname(path)] ?? "application/octet-stream", "accept-ranges": "bytes", etag };
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
  const fresh = (request.headers["if-range"] ?? etag) === etag;
  if (range && fresh) {
    const [start, end] = [Number(range[1]), range[2] ? Math.min(Number(range[2]), size - 1) : size - 1];
    if (start > end) {
      response.writeHead(416, { "content-range": `bytes */${size}` }).end();
      return;
    }
    const part = { "content-range": `bytes ${start}-${end}/${size}`, "content-length": end - start + 1 };
    response.writeHead(206, { ...all, ...part, ...headers });
    if (request.method === "HEAD") response.end();
    else createReadStream(path, { start, end }).pipe(response);
    return;
  }
  response.writeHead(200, { ...all, "content-length": size, ...headers });
  if (request.method === "HEAD") response.end();
  else createReadStream(path).pipe(response);
}
