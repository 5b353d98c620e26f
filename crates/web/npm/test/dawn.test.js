// Cases of every operation against their references in Dawn for Node, the same compiler as Chrome's, on Mesa's lavapipe, which
// has what Chromium's software GPU lacks: f16, and subgroups of 8 with CHASKI_TEST_FULL=1 (of 4 otherwise: `cargo xtask test
// web` sets lavapipe's vectors).
//
// `cargo xtask test web` builds the cases into the folder that CHASKI_CASES names, brings the driver, and says with
// CHASKI_LAVAPIPE where it is. By default none runs: compiling takes a minute, Chromium runs cases of its own, and its compiler
// takes all kernels (kernels.test.js). CHASKI_TEST_FULL=1 runs all, CHASKI_OP as many of some operations as four seconds have
// room for, and CHASKI_CASE all whose labels have that word.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { idle, report, runCases } from "./cases.js";

const folder = process.env.CHASKI_CASES && resolve(process.env.CHASKI_CASES);
const full = Boolean(Number(process.env.CHASKI_TEST_FULL ?? 0));
const only = process.env.CHASKI_OP ?? "";
const word = process.env.CHASKI_CASE ?? "";
const wanted = full || only || word;
const skip = !wanted
  ? "SKIPPED: for want of a full run (CHASKI_TEST_FULL=1)"
  : !process.env.CHASKI_LAVAPIPE && "SKIPPED: CHASKI_LAVAPIPE is not set: `cargo xtask test web` does";
let [cases, gpu] = [];
/** Milliseconds that cases may take unless all run; what makes their inputs comes on top. */
const TIME = 4_000;

before(async () => {
  if (skip) return void console.log(skip);
  assert.ok(folder, "CHASKI_CASES is not set: run `cargo xtask test web`");
  const { create, globals } = await import("webgpu");
  Object.assign(globalThis, globals);
  gpu = create([]);
  cases = await import(pathToFileURL(`${folder}/chaski_cases.js`));
  cases.initSync({ module: await readFile(`${folder}/chaski_cases_bg.wasm`) });
});
after(() => {
  // Dawn holds the process while its instance lives.
  gpu = null;
});

test("in Dawn on lavapipe operations match their references", { skip }, async () => {
  // Kernels are chosen as for a GPU here, and as for a CPU in Chromium.
  const sg = { set: "sg", f16: true, software: false };
  const more = ["base", "alone"].map((set) => ({ ...sg, set }));
  const sets = full ? [sg, { ...sg, f16: false }, ...more] : [sg];
  const found = await runCases(cases, gpu, { sets, ms: TIME, full: full || word !== "", only, word });
  report("Dawn", found, full);
  assert.deepEqual(found.failures, []);
  assert.equal(found.sets.length, sets.length, "the adapter has all sets");
  if (!only && !word) assert.deepEqual(idle(found), []);
});
