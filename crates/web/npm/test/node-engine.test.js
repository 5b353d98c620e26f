// The engine in Node.js, on the CPU and on WebGPU by Dawn.
//
// CHASKI_LAVAPIPE names the manifest of a driver for Dawn, as for dawn.test.js.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { LEFT_FOR_FULL, MODEL_FILE, PACKAGE } from "./page.js";

/** Greedy text of the default model. */
const GOLDEN = ", there lived a small, lively boy named Inti. He could not sit still for a minute. Inti was the youngest chaski, a mess";

/** A program of its own: it ends by itself once the engine is closed. */
async function run(setUp, options) {
  const program = `
    import { createEngine } from "chaski/node";
    ${setUp}
    const engine = await createEngine({ model: ${JSON.stringify(MODEL_FILE)}, contextLength: 512, ${options} });
    const { choices } = await engine.completions.create({ prompt: "Once upon a time", temperature: 0, max_tokens: 16 });
    const missing = await createEngine({ model: "/nothing.gguf" }).catch((error) => error.code);
    console.log(JSON.stringify({ text: choices[0].text, device: engine.info().device, missing }));
    await engine.close();
  `;
  const { stdout } = await promisify(execFile)("node", ["--input-type=module", "-e", program], { cwd: PACKAGE, timeout: 300_000 });
  return JSON.parse(stdout.trim().split("\n").at(-1));
}

function check(found, kind) {
  assert.ok(GOLDEN.startsWith(found.text) && found.text.length > 40, found.text);
  assert.deepEqual([found.device.kind, found.missing], [kind, "not_found"]);
}

test("on the CPU", async () => check(await run("", ""), "cpu"));

const skip = LEFT_FOR_FULL || (process.env.CHASKI_LAVAPIPE ? false : "SKIPPED: CHASKI_LAVAPIPE is not set: `cargo xtask test web` does");
test("on WebGPU by Dawn", { skip }, async () => {
  const setUp = `
    import { create, globals } from "webgpu";
    Object.assign(globalThis, globals);
    let gpu = create([]);
  `;
  check(await run(setUp, "gpu"), "gpu");
});
