// Pipelines that are promised while an engine loads.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canPromise, promiseFrom, withPromises } from "../../src/pipelines.js";

/** A browser's classes; what is asked for is noted, and promises wait for `compile()`. */
function browser() {
  const [asked, set, waiting] = [[], [], []];
  class GPUDevice {
    createComputePipeline({ label }) {
      asked.push(`now ${label}`);
      return { label };
    }
    createComputePipelineAsync({ label }) {
      asked.push(`promise ${label}`);
      return new Promise((resolve, reject) => waiting.push(() => (label === "refused" ? reject(new Error(label)) : resolve({ label, promised: true }))));
    }
  }
  class GPUComputePassEncoder {
    setPipeline(pipeline) {
      set.push(pipeline);
    }
  }
  canPromise({ GPUDevice, GPUComputePassEncoder });
  const compile = () => waiting.splice(0).forEach((f) => f());
  return { device: new GPUDevice(), pass: new GPUComputePassEncoder(), asked, set, compile };
}

test("pipelines are promised from a moment on, and have come when loading ends", async () => {
  const { device, pass, asked, set, compile } = browser();
  const [probe, kernel] = await withPromises(async () => {
    const probe = device.createComputePipeline({ label: "probe" });
    promiseFrom();
    const kernel = device.createComputePipeline({ label: "kernel" });
    setTimeout(compile);
    return [probe, kernel];
  });
  device.createComputePipeline({ label: "later" });
  assert.deepEqual(asked, ["now probe", "promise kernel", "now later"]);
  [probe, kernel, kernel].forEach((p) => pass.setPipeline(p));
  const made = { label: "kernel", promised: true };
  assert.deepEqual(set, [{ label: "probe" }, made, made]);
});

test("what is used before it has come is compiled at once, one pipeline for good", async () => {
  const { device, pass, asked, set, compile } = browser();
  await withPromises(async () => {
    promiseFrom();
    const kernel = device.createComputePipeline({ label: "kernel" });
    pass.setPipeline(kernel);
    compile();
    await Promise.resolve();
    pass.setPipeline(kernel);
  });
  assert.deepEqual(asked, ["promise kernel", "now kernel"]);
  assert.equal(set[0], set[1]);
});

test("what a promise refuses is asked for again, so that the device reports it", async () => {
  const { device, pass, asked, set, compile } = browser();
  const kernel = await withPromises(async () => {
    promiseFrom();
    setTimeout(compile);
    return device.createComputePipeline({ label: "refused" });
  });
  pass.setPipeline(kernel);
  assert.deepEqual([asked, set], [["promise refused", "now refused"], [{ label: "refused" }]]);
});

test("after an engine that did not load, nothing is promised", async () => {
  const { device, asked } = browser();
  const failing = withPromises(async () => {
    promiseFrom();
    throw new Error("no model");
  });
  await assert.rejects(failing, /no model/);
  device.createComputePipeline({ label: "kernel" });
  assert.deepEqual(asked, ["now kernel"]);
});
