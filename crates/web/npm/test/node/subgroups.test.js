// The browser's `requestDevice` while engines open theirs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { withSubgroups } from "../../src/subgroups.js";

globalThis.GPUAdapter = class {
  features = new Set(["subgroups"]);
  requestDevice(descriptor) {
    return descriptor;
  }
};
const native = GPUAdapter.prototype.requestDevice;
const asked = () => new GPUAdapter().requestDevice({ label: "mine" }).requiredFeatures ?? [];

/** Something that goes on until it is told to end. */
function pending() {
  let end;
  const done = new Promise((resolve) => (end = resolve));
  return { done, end };
}

test("engines that open at the same time leave the browser's own function behind", async () => {
  const [one, two] = [pending(), pending()];
  const [a, b] = [withSubgroups(() => one.done), withSubgroups(() => two.done)];
  one.end();
  await a;
  assert.deepEqual(asked(), ["subgroups"]);
  two.end();
  await b;
  assert.equal(GPUAdapter.prototype.requestDevice, native);
});

test("it is the browser's own again once the device is there, and after a failure", async () => {
  const loading = pending();
  const engine = withSubgroups((opened) => {
    const mine = asked();
    opened();
    return loading.done.then(() => mine);
  });
  assert.equal(GPUAdapter.prototype.requestDevice, native);
  loading.end();
  assert.deepEqual(await engine, ["subgroups"]);
  await assert.rejects(withSubgroups(async () => Promise.reject(new Error("no device"))), /no device/);
  assert.equal(GPUAdapter.prototype.requestDevice, native);
});

test("the caller's descriptor stays as it is, and an adapter without subgroups is not asked for them", async () => {
  await withSubgroups(async () => {
    const descriptor = Object.freeze({ requiredFeatures: Object.freeze(["shader-f16"]) });
    assert.deepEqual(new GPUAdapter().requestDevice(descriptor).requiredFeatures, ["shader-f16", "subgroups"]);
    const plain = Object.assign(new GPUAdapter(), { features: new Set() });
    assert.equal(plain.requestDevice(descriptor), descriptor);
  });
});
