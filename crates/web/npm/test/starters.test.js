// The starters, as someone who copies one has it: with the packed package, installed and built by npm, in a browser.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { launch, serve } from "./browser.js";
import { MODEL, MODELS, PACKAGE, REPOSITORY } from "./page.js";

const FOLDER = `${REPOSITORY}target/web-starters`;
const run = promisify(execFile);

let [browser, packed, offline] = [];
before(async () => {
  await mkdir(FOLDER, { recursive: true });
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", FOLDER], { cwd: PACKAGE });
  packed = join(FOLDER, JSON.parse(stdout)[0].filename);
  offline = await run("npm", ["ping"], { timeout: 30_000 }).then(() => false, () => "SKIPPED: starters: there is no registry of npm");
  if (offline) console.log(offline);
  browser = await launch();
});
after(() => browser?.close());

/** A copy of a starter with the package of this folder in place of the published one; `tools` are its own dependencies. */
async function copy(name, tools = true) {
  const folder = join(FOLDER, name);
  await rm(folder, { recursive: true, force: true });
  await cp(`${PACKAGE}starters/${name}`, folder, { recursive: true });
  const npm = (...args) => run("npm", args, { cwd: folder, timeout: 580_000, env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" } });
  if (!tools) await npm("pkg", "delete", "dependencies");
  await npm("install", "--no-audit", "--no-fund", packed);
  if (tools) await npm("run", "build");
  return folder;
}

/** Checks that a built page shows the model, and an answer. */
async function shows(roots, path = "/site/index.html", { answer } = {}) {
  const server = await serve({ ...MODELS, ...roots }, answer);
  const page = await browser.context.newPage();
  const failed = [];
  page.on("pageerror", (error) => failed.push(String(error)));
  page.on("console", (message) => message.type() === "error" && failed.push(message.text()));
  try {
    await page.goto(`${server.origin}${path}?model=${encodeURIComponent(server.origin + MODEL)}`);
    const answer = page.locator("output").nth(1);
    await answer.filter({ hasText: /.{20}/ }).waitFor({ timeout: 120_000 }).catch(() => {});
    const [model, text] = await page.locator("output").allTextContents();
    assert.ok(text.length > 20, [model, text, ...failed].join("\n"));
    assert.match(model, /llama|Q4_K/i, model);
  } finally {
    await page.close();
    await server.close();
  }
}

for (const name of ["vite", "webpack", "esbuild"]) {
  test(`the starter for ${name} is built, and answers`, async (t) => {
    if (offline) return t.skip(offline);
    const site = join(await copy(name), "dist");
    // Vite's files name each other from the root of the site.
    await shows({ site, assets: join(site, "assets") });
  });
}

test("the starter for Next is built, and answers", async (t) => {
  if (offline) return t.skip(offline);
  const out = join(await copy("next"), "out");
  // Its files name each other from the root of the site.
  await shows({ _next: join(out, "_next"), site: out });
});

test("plain modules answer, without a build", async (t) => {
  if (offline) return t.skip(offline);
  await shows({ site: await copy("modules", false) });
});

test("modules of a CDN answer", async () => {
  // Another server in the place of the network, which this test does not have.
  const cdn = await serve({ npm: PACKAGE }, (request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    return false;
  });
  try {
    const answer = async (request, response, url) => {
      if (url.pathname !== "/site/index.html") return false;
      const text = await readFile(`${PACKAGE}starters/cdn/index.html`, "utf8");
      const { version } = JSON.parse(await readFile(`${PACKAGE}package.json`, "utf8"));
      const address = `https://cdn.jsdelivr.net/npm/chaski@${version}/`;
      assert.ok(text.includes(address), "the starter has this version");
      response.writeHead(200, { "content-type": "text/html" }).end(text.replace(address, `${cdn.origin}/npm/`));
      return true;
    };
    await shows({ site: `${PACKAGE}starters/cdn` }, undefined, { answer });
  } finally {
    await cdn.close();
  }
});

test("Electron's window gets its files from app://, and they answer", async (t) => {
  if (offline) return t.skip(offline);
  // Electron itself is not run: its program comes from GitHub. This is what answers its requests.
  const folder = await copy("electron", false);
  const { answer: answered } = createRequire(import.meta.url)(join(folder, "files.cjs"));
  const answer = async (request, response, url) => {
    if (!url.pathname.startsWith("/app/")) return false;
    const found = await answered(folder, new Request(`app://chaski${url.pathname.slice(4)}`));
    response.writeHead(found.status, Object.fromEntries(found.headers)).end(Buffer.from(await found.arrayBuffer()));
    return true;
  };
  await shows({}, "/app/index.html", { answer });
  for (const [path, status] of [["/..%2f..%2fpackage.json", 403], ["/nothing.js", 404]]) {
    assert.equal((await answered(folder, new Request(`app://chaski${path}`))).status, status, path);
  }
});
