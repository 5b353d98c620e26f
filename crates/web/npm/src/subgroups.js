// wgpu cannot ask for subgroups on the web: while the engine opens its device, we do.

const LANGUAGE = "subgroup_id";

/** Whether the adapter has subgroups, and the shader language what our kernels use of them. */
export async function hasSubgroups() {
  const gpu = globalThis.navigator?.gpu;
  if (!gpu?.wgslLanguageFeatures?.has(LANGUAGE)) return false;
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  return adapter?.features.has("subgroups") ?? false;
}

/** Runs `f`; devices that are requested meanwhile have subgroups. */
export async function withSubgroups(f) {
  const adapter = globalThis.GPUAdapter.prototype;
  const original = adapter.requestDevice;
  adapter.requestDevice = function (descriptor = {}) {
    descriptor.requiredFeatures = [...(descriptor.requiredFeatures ?? []), "subgroups"];
    return original.call(this, descriptor);
  };
  try {
    return await f();
  } finally {
    adapter.requestDevice = original;
  }
}
