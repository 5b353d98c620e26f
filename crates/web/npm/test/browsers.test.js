// Tests of other files once more, in the other browsers that Debian has: storage, its locks and downloads, engines on the CPU,
// grammars, the chat page. What needs WebGPU, or a tool of Chromium's, is skipped there, each test by name.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { test } from "node:test";
import { PACKAGE } from "./page.js";

const COMMON = ["cpu", "grammar", "page", "chat"];

/** WebKitGTK stores nothing for a page (docs/web.md), and wants a display. */
const BROWSERS = [
  { name: "firefox", programs: [process.env.CHASKI_FIREFOX, "firefox-esr", "firefox"], files: ["loading", "facts", ...COMMON], packages: "firefox-esr" },
  { name: "webkit", programs: ["WebKitWebDriver"], needs: ["xvfb-run"], files: COMMON, packages: "webkit2gtk-driver xvfb xauth" },
];

const isThere = (program) => program && !spawnSync(program, ["--help"], { stdio: "ignore" }).error;

for (const { name, programs, needs = [], files, packages } of BROWSERS) {
  const found = needs.every(isThere) && programs.find(isThere);
  const skip = found ? false : `SKIPPED: there is no ${name} (apt-get install ${packages})`;
  test(`what works in Chromium works in ${name}`, { skip, timeout: 600_000 }, async () => {
    const { NODE_TEST_CONTEXT, ...env } = { ...process.env, CHASKI_BROWSER: name, ...(name === "firefox" && { CHASKI_FIREFOX: found }) };
    const args = ["--test", "--test-concurrency=1", "--test-reporter=spec", ...files.map((name) => `test/${name}.test.js`)];
    const command = [...needs.flatMap((program) => [program, "-a"]), process.execPath, ...args];
    const child = spawn(command[0], command.slice(1), { cwd: PACKAGE, env, stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    for await (const piece of child.stdout) text += piece;
    assert.match(text, /^. fail 0$/m, text);
    assert.match(text, /^. pass [1-9]\d/m, text);
    for (const [, line] of text.matchAll(/^﹣ (.*)$/gm)) console.log(`${name}: SKIPPED: ${line}`);
  });
}
