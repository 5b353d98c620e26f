// Tests of other files once more, in Firefox: storage, its locks and downloads, the CPU's engine, the chat page.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { test } from "node:test";
import { PACKAGE } from "./page.js";

const FILES = ["loading", "cpu", "page"];
const found = [process.env.CHASKI_FIREFOX, "firefox-esr", "firefox"].find((name) => name && spawnSync(name, ["--version"]).status === 0);
const skip = found ? false : "SKIPPED: there is no Firefox (apt-get install firefox-esr)";

test("what works in Chromium works in Firefox", { skip, timeout: 240_000 }, async () => {
  const { NODE_TEST_CONTEXT, ...env } = { ...process.env, CHASKI_BROWSER: "firefox", CHASKI_FIREFOX: found };
  const args = ["--test", "--test-concurrency=1", "--test-reporter=spec", ...FILES.map((name) => `test/${name}.test.js`)];
  const child = spawn(process.execPath, args, { cwd: PACKAGE, env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const piece of child.stdout) text += piece;
  assert.match(text, /^. fail 0$/m, text);
  assert.match(text, /^. pass [1-9]/m, text);
});
