// The WebGPU device of a page, and what it tells a hub that plans for it.

/** An error of this module, with a code that programs can compare. */
export class SwarmError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = "SwarmError";
    this.code = code;
  }
}

const WANTED = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
];

/** Throws a {@link SwarmError} where pages cannot be workers. */
export function checkPlace() {
  if (globalThis.isSecureContext === false) {
    throw new SwarmError("insecure_context", "browsers give WebGPU to secure pages alone: open this page over https, or on the hub's own machine at 127.0.0.1");
  }
  if (!globalThis.navigator?.gpu) throw new SwarmError("no_webgpu", "this browser has no WebGPU");
}

/** Opens a device. @returns {Promise<{ device: GPUDevice, name: string, page: object }>} */
export async function openDevice() {
  checkPlace();
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new SwarmError("no_webgpu", "this browser has WebGPU, but no adapter for it");
  const f16 = adapter.features.has("shader-f16");
  // Kernels use `subgroup_id`, which is younger than subgroups.
  const subgroups = adapter.features.has("subgroups") && (navigator.gpu.wgslLanguageFeatures?.has("subgroup_id") ?? false);
  const device = await adapter.requestDevice({
    requiredFeatures: [...(f16 ? ["shader-f16"] : []), ...(subgroups ? ["subgroups"] : [])],
    requiredLimits: Object.fromEntries(WANTED.map((name) => [name, adapter.limits[name]])),
  });
  const { limits } = device;
  const info = adapter.info ?? {};
  const sizes = [info.subgroupMinSize, info.subgroupMaxSize];
  const page = {
    f16,
    subgroup: subgroups && sizes.every((n) => n >= 4 && n <= 128) ? sizes : null,
    software: info.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false,
    max_threads: Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX),
    max_workgroup_bytes: limits.maxComputeWorkgroupStorageSize,
    max_groups: limits.maxComputeWorkgroupsPerDimension,
    max_bindings: limits.maxStorageBuffersPerShaderStage,
    max_binding_bytes: limits.maxStorageBufferBindingSize,
    max_buffer_bytes: limits.maxBufferSize,
  };
  const name = [info.vendor, info.architecture, info.description].filter(Boolean).join(" ") || "WebGPU";
  return { device, name, page };
}
