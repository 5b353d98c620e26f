// Runs test cases of operations with plain WebGPU, in a page or in Dawn for Node; the module of `chaski-cases` has the cases.

/** Cases under way at once: while one is compiled, others run and are compared. */
const AT_ONCE = 4;
/** Milliseconds that one case may take, however slow the adapter is. */
const PATIENCE = 300_000;

const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupStorageSize",
  "maxComputeWorkgroupsPerDimension",
];

/**
 * A device for a feature set, and what the cases want to know of it. `base` has no feature and the limits that every device
 * has; others have the adapter's.
 */
async function open(gpu, { set, f16 = false, software = true }) {
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("no adapter");
  const features = [...(set === "base" ? [] : ["subgroups"]), ...(f16 ? ["shader-f16"] : [])];
  const lacks = features.filter((f) => !adapter.features.has(f));
  if (lacks.length > 0) return { lacks };
  const requiredLimits = set === "base" ? {} : Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  const device = await adapter.requestDevice({ requiredFeatures: features, requiredLimits });
  const { limits } = device;
  const { subgroupMinSize, subgroupMaxSize, vendor, architecture, description } = adapter.info;
  return {
    device,
    name: `${vendor} ${architecture} ${description}`,
    facts: {
      set,
      f16,
      software,
      subgroups: set === "base" ? null : [subgroupMinSize, subgroupMaxSize],
      maxThreads: Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX),
      maxWorkgroupBytes: limits.maxComputeWorkgroupStorageSize,
      maxBindingBytes: Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize),
      maxGroups: limits.maxComputeWorkgroupsPerDimension,
    },
  };
}

/** Fails with what the device says against what `f` asks of it. */
async function refused(device, f) {
  for (const filter of ["validation", "out-of-memory", "internal"]) device.pushErrorScope(filter);
  const result = f();
  const errors = await Promise.all([device.popErrorScope(), device.popErrorScope(), device.popErrorScope()]);
  const error = errors.find(Boolean);
  if (error) throw new Error(error.message);
  return result;
}

/** Runs a case; throws what is wrong. `change` is for tests of this function: no step runs. */
async function run(device, ready, change) {
  const expected = JSON.parse(ready.buffers);
  const steps = JSON.parse(ready.steps);
  const compiled = await Promise.all(
    steps.map(async ({ kernel, constants, buffers }, i) => {
      const code = ready.text(i);
      const entries = buffers.map(({ binding, write }) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type: write ? "storage" : "read-only-storage" },
      }));
      const [layout, pipeline] = await refused(device, () => {
        const layout = device.createBindGroupLayout({ entries });
        const module = device.createShaderModule({ code });
        const pipeline = device.createComputePipelineAsync({
          label: kernel,
          layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
          compute: { module, entryPoint: "main", constants },
        });
        // Errors of scopes come first, and say more.
        pipeline.catch(() => {});
        return [layout, pipeline];
      });
      return { layout, pipeline: await pipeline };
    }),
  );
  const made = [];
  const buffer = (size, usage) => {
    made.push(device.createBuffer({ size, usage }));
    return made.at(-1);
  };
  try {
    const outputs = await refused(device, () => {
      const all = expected.map((_, i) => {
        const bytes = ready.bytes(i);
        const made = buffer(bytes.length, GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC);
        device.queue.writeBuffer(made, 0, bytes);
        return made;
      });
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      steps.forEach(({ grid, buffers }, i) => {
        const entries = buffers.map(({ binding, buffer }) => ({ binding, resource: { buffer: all[buffer] } }));
        pass.setPipeline(compiled[i].pipeline);
        pass.setBindGroup(0, device.createBindGroup({ layout: compiled[i].layout, entries }));
        if (!change && !grid.includes(0)) pass.dispatchWorkgroups(...grid);
      });
      pass.end();
      const outputs = all.flatMap((from, i) => {
        if (!expected[i]) return [];
        const to = buffer(from.size, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
        encoder.copyBufferToBuffer(from, 0, to, 0, from.size);
        return [{ i, to }];
      });
      device.queue.submit([encoder.finish()]);
      return outputs;
    });
    for (const { i, to } of outputs) {
      await to.mapAsync(GPUMapMode.READ);
      const wrong = ready.check(i, new Uint8Array(to.getMappedRange()));
      if (wrong) throw new Error(wrong);
    }
  } finally {
    for (const b of made) b.destroy();
  }
}

/** Fails when `promise` takes too long. */
function inTime(promise, device) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer after ${PATIENCE / 1000} s`)), PATIENCE);
  });
  const lost = device.lost.then(({ message }) => Promise.reject(new Error(`the device was lost: ${message}`)));
  lost.catch(() => {});
  return Promise.race([promise, late, lost]).finally(() => clearTimeout(timer));
}

/** Cases of an operation that are tried until one runs: devices lack what some need. */
const TRIES = 32;

/**
 * Runs cases of every operation in feature sets: each of `sets` is what `open` takes. Each operation gets an equal part of
 * `ms`, in which in each set at least one of its cases runs; what it does not need is left to the others. With `full` all
 * run. Returns for each set and operation how many ran of how many, and what failed.
 */
export async function runCases(cases, gpu, { sets, ms, full = false, only = "", word = "", change = false }) {
  const start = performance.now();
  const [failures, leftOut, all] = [[], {}, []];
  const leave = (why) => (leftOut[why] = (leftOut[why] ?? 0) + 1);
  for (const options of sets) {
    const { lacks, device, name } = await open(gpu, options);
    device?.destroy();
    const what = `${options.set}${options.f16 ? " with f16" : ""}`;
    if (lacks) leave(`set ${what}: ${lacks.join(", ")}, which this adapter lacks`);
    else all.push({ options, what, adapter: name, names: JSON.parse(cases.operations(options.set)), ops: [] });
  }
  const names = [...new Set(all.flatMap((s) => s.names))].filter((name) => !only || only.split(",").includes(name));
  let making = 0;
  for (const [n, name] of names.entries()) {
    const begin = performance.now();
    const list = new cases.OpCases(name, full);
    // To make a table of cases is not the device's time.
    making += performance.now() - begin;
    const end = performance.now() + (start + making + ms - performance.now()) / (names.length - n);
    const places = [];
    for (const set of all.filter((s) => s.names.includes(name))) {
      // A device keeps what was compiled for it, so each operation has its own.
      const place = { set, ...(await open(gpu, set.options)), op: { name, ran: 0, all: list.all } };
      set.ops.push(place.op);
      places.push(place);
    }
    const binding = Math.min(...places.map((p) => p.facts.maxBindingBytes));
    // Kernels without team reductions are the same in each set.
    const done = new Set();
    const onDevice = async (place, made) => {
      const { device, facts, op, set } = place;
      let ready = null;
      try {
        ready = made.on(JSON.stringify(facts));
        if (!ready) return leave(`${name}: what set ${set.what} lacks here`);
        if (!done.has(ready.fingerprint)) {
          done.add(ready.fingerprint);
          await inTime(run(device, ready, change), device);
        }
      } catch (error) {
        failures.push(`${name} [${set.what}] ${made.label}: ${error?.message ?? error}`);
        // Others need a device that works.
        if (place.device === device && /the device was lost|no answer/.test(error?.message)) Object.assign(place, await open(gpu, set.options));
      } finally {
        ready?.free();
      }
      op.ran++;
    };
    let next = 0;
    const missing = () => next < TRIES && places.some((p) => p.op.ran === 0);
    const inTurn = () => full || performance.now() < end;
    const worker = async (goesOn) => {
      while (next < list.length && goesOn()) {
        const i = next++;
        let made = null;
        try {
          made = list.make(i, binding);
          if (!made) leave(`${name}: more bytes than a binding has on this adapter`);
          else if (made.label.includes(word)) for (const place of places) await onDevice(place, made);
        } catch (error) {
          failures.push(`${name} case ${i}: ${error?.message ?? error}`);
        } finally {
          made?.free();
        }
      }
    };
    // The first alone: where it takes all of the time, there is no second one.
    await worker(missing);
    await Promise.all(Array.from({ length: AT_ONCE }, () => worker(inTurn)));
    for (const [why, n] of Object.entries(JSON.parse(list.left_out))) leftOut[`${name}: ${why}`] = n;
    list.free();
    for (const { device, op } of places) {
      op.ms = Math.round(performance.now() - begin);
      device.destroy();
    }
  }
  return { sets: all.map(({ what, adapter, ops }) => ({ what, adapter, ops })), failures, leftOut, ms: performance.now() - start, making };
}

/** Results as lines: sums, and with `full` each operation. */
export function report(where, { sets, leftOut, ms, making }, full, log = console.log) {
  const seconds = (ms) => `${Math.round(ms / 1000)} s`;
  for (const { what, adapter, ops } of sets) {
    const sum = (key) => ops.reduce((sum, op) => sum + op[key], 0);
    log(`${where}, set ${what}: ${sum("ran")} of ${sum("all")} cases of ${ops.length} operations ran (${adapter})`);
    if (full) for (const op of ops) log(`  ${op.name}: ${op.ran} of ${op.all}, ${op.ms} ms`);
  }
  log(`${where}: ${seconds(ms)}, of which ${seconds(making)} to make tables of cases`);
  for (const [why, n] of Object.entries(leftOut)) log(`SKIPPED: ${n} cases: ${why}`);
}

/** Operations of which no case ran although there are some that the adapter can do. */
export function idle({ sets, leftOut }) {
  const lacks = (name) => Object.keys(leftOut).some((why) => why.startsWith(`${name}: what set`));
  return sets.flatMap(({ what, ops }) => ops.filter((op) => op.all > 0 && op.ran === 0 && !lacks(op.name)).map((op) => `${op.name} [${what}]`));
}
