// Devices that passed the engine's test of its kernels: it runs once for each, until the package, the browser or the device is another.

import { keep, kept } from "./store.js";

/** Subject of a verdict. */
async function about(version, subgroups) {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const { vendor, architecture, device, description } = adapter?.info ?? {};
  return JSON.stringify([version, navigator.userAgent, vendor, architecture, device, description, subgroups]);
}

/** True if the device passed its self-test before. */
export async function isTrusted(version, subgroups) {
  return (await kept("tested", await about(version, subgroups))) !== null;
}

/** Notes that it has. */
export async function trust(version, subgroups) {
  await keep("tested", await about(version, subgroups), { passed: true });
}
