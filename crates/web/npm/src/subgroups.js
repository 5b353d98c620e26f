// wgpu cannot ask for subgroups on the web: while engines open their devices, we do.

const LANGUAGE = "subgroup_id";

/** True if the adapter has subgroups, and WGSL the features of them that our kernels use. */
export async function hasSubgroups() {
  const gpu = globalThis.navigator?.gpu;
  if (!gpu?.wgslLanguageFeatures?.has(LANGUAGE)) return false;
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  return adapter?.features.has("subgroups") ?? false;
}

/** How many wait for a device with subgroups, and the browser's own function while there are any. */
let [waiting, original] = [0, null];

function end() {
  waiting--;
  if (waiting > 0) return;
  globalThis.GPUAdapter.prototype.requestDevice = original;
  original = null;
}

function begin() {
  waiting++;
  if (original) return;
  const native = globalThis.GPUAdapter.prototype.requestDevice;
  original = native;
  globalThis.GPUAdapter.prototype.requestDevice = function (descriptor = {}) {
    if (!this.features.has("subgroups")) return native.call(this, descriptor);
    return native.call(this, { ...descriptor, requiredFeatures: [...(descriptor.requiredFeatures ?? []), "subgroups"] });
  };
}

/**
 * Runs `f(opened)`; devices that are requested meanwhile have subgroups, until `opened()` says that it has its own. The
 * page's own requests change as little as can be.
 */
export async function withSubgroups(f) {
  let open = true;
  const opened = () => {
    if (open) end();
    open = false;
  };
  begin();
  try {
    return await f(opened);
  } finally {
    opened();
  }
}
