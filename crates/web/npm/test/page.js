// A page on a server of our own, and functions that run in it.

import { fileURLToPath } from "node:url";
import { launch, serve } from "./browser.js";

export const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
export const REPOSITORY = fileURLToPath(new URL("../../../..", import.meta.url));
export const OTHER_BROWSER = process.env.CHASKI_BROWSER && "only Chromium can be told to";
/** A reason why WebKitGTK skips a test, and false elsewhere. */
export const webkitLacks = (what) => process.env.CHASKI_BROWSER === "webkit" && `WebKitGTK lacks ${what}`;
/** A reason why `cargo xtask test` skips a test that `cargo xtask test web` and full runs have, and false there. */
export const LEFT_FOR_FULL = Boolean(Number(process.env.CHASKI_TEST_PART ?? 0)) && "SKIPPED: for want of a full run (CHASKI_TEST_FULL=1)";
/** The folder of the default model, as a root of servers; the model's address there, and its file. */
export const MODELS = { model: `${REPOSITORY}crates/chaski/model` };
export const MODEL = "/model/storyteller-Q4_K_M.gguf";
export const MODEL_FILE = `${REPOSITORY}crates/chaski${MODEL}`;

/** A browser with an empty page, and what the tests of one file share; the page and its files have further `headers`. */
export async function open(answer, headers = {}) {
  const roots = { npm: PACKAGE, demo: [`${REPOSITORY}/crates/web/demo`, `${REPOSITORY}/crates/server/page`], ...MODELS };
  const server = await serve(roots, async (request, response, url) => {
    if (url.pathname === "/") {
      response.writeHead(200, { "content-type": "text/html", ...headers }).end("<!doctype html><title>chaski</title>");
      return true;
    }
    return (await answer?.(request, response, url)) ?? false;
  }, 0, headers);
  const browser = await launch();
  const page = await browser.context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") console.log(`page: ${message.text()}`);
  });
  page.on("pageerror", (error) => console.log("page:", error));
  page.setDefaultTimeout(120_000);
  await page.goto(`${server.origin}/`);
  // Errors of the engine lose their class when they leave the page.
  await page.evaluate(async () => {
    globalThis.chaski = await import("/npm/index.js");
    globalThis.failure = (promise) =>
      promise.then(
        () => null,
        (e) => ({ engine: e instanceof chaski.EngineError, code: e.code, message: e.message, hint: e.hint, detail: e.detail }),
      );
  });
  return {
    page,
    server,
    browser,
    async close() {
      await browser.close();
      await server.close();
    },
  };
}
