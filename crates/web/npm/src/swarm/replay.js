// Replays a hub's plan on the device of the page.

import { PlanError, checkPlan, grid, inputWords, routeOfMany, routeOfOne } from "./plan.js";
import { unhex } from "./proof.js";

/** Kinds of errors of a device, the cause of others at the end: without memory everything else is invalid. */
const ERRORS = ["internal", "validation", "out-of-memory"];

/** Calls a function without awaiting anything; a promise of the error of what it did on the device, or null. */
function errorOf(device, act) {
  const popped = [];
  for (const kind of ERRORS) device.pushErrorScope(kind);
  try {
    act();
  } finally {
    // The last that was pushed comes first.
    ERRORS.forEach(() => popped.push(device.popErrorScope()));
  }
  return Promise.all(popped).then((found) => found.find(Boolean) ?? null);
}

/** The experts of a model on a device. */
export class Replay {
  /** @type {GPUDevice} */ #device;
  #plan;
  #buffers;
  #readback;
  /** Calls by plan and layer, with their bind groups. */
  #calls;
  /** The slot of each expert, and free slots, by layer. */
  #slots;
  #free;
  /** The end of the last task: they share their buffers. */
  #last = Promise.resolve();

  /**
   * Compiles a plan and makes its buffers; throws {@link PlanError} for one that this device never takes.
   * @param {GPUDevice} device @param {number} memory bytes for experts
   */
  static async create(device, plan, memory) {
    checkPlan(plan, memory, device.limits);
    const replay = new Replay();
    [replay.#device, replay.#plan] = [device, plan];
    try {
      let compiled;
      const error = errorOf(device, () => {
        replay.#allocate();
        compiled = replay.#compile();
      });
      const [found] = await Promise.all([error, compiled]);
      if (found instanceof GPUValidationError) throw new PlanError(`the device refuses it: ${found.message}`);
      if (found) throw new Error(`no buffers for the plan: ${found.message}`);
    } catch (error) {
      replay.destroy();
      // A pipeline that is refused; other failures may pass.
      throw error.reason === "validation" ? new PlanError(`the device refuses it: ${error.message}`) : error;
    }
    return replay;
  }

  #allocate() {
    const { buffers, data, fills, layers, readback, n_slot } = this.#plan;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    this.#buffers = buffers.map((size) => this.#device.createBuffer({ size, usage }));
    this.#readback = this.#device.createBuffer({ size: readback, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const bytes = data.map((text) => unhex(text));
    for (const fill of fills) this.#device.queue.writeBuffer(this.#buffers[fill.buffer], fill.at, bytes[fill.data]);
    this.#slots = layers.map(() => new Map());
    this.#free = layers.map(() => Array.from({ length: n_slot }, (_, i) => n_slot - 1 - i));
  }

  /** Ends when all pipelines are there; begins everything at once. */
  #compile() {
    const { kernels, pipelines, plans } = this.#plan;
    const device = this.#device;
    const layouts = kernels.map(({ bindings }) =>
      device.createBindGroupLayout({
        entries: bindings.map(([binding, writes]) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: writes ? "storage" : "read-only-storage" } })),
      }),
    );
    const modules = kernels.map(({ name, text }) => device.createShaderModule({ label: name, code: text }));
    const bound = (call) => {
      const { kernel } = pipelines[call.pipeline];
      const entries = kernels[kernel].bindings.map(([binding], i) => ({ binding, resource: { buffer: this.#buffers[call.bind[i]] } }));
      return { call, pipeline: null, group: device.createBindGroup({ layout: layouts[kernel], entries }) };
    };
    this.#calls = plans.map(({ layers }) => layers.map(({ calls }) => calls.map(bound)));
    const made = pipelines.map(({ kernel, constants }) =>
      device.createComputePipelineAsync({
        layout: device.createPipelineLayout({ bindGroupLayouts: [layouts[kernel]] }),
        compute: { module: modules[kernel], entryPoint: "main", constants },
      }),
    );
    return Promise.all(made).then((all) => this.#calls.flat(2).forEach((bound) => (bound.pipeline = all[bound.call.pipeline])));
  }

  get width() {
    return this.#plan.width;
  }

  /** Bytes of all buffers. */
  get nByte() {
    return this.#plan.buffers.reduce((a, b) => a + b, this.#plan.readback);
  }

  /** Most columns of a step of which it computes a part. */
  get maxColumns() {
    return this.#plan.plans.at(-1).max_col;
  }

  #nth(layer) {
    const nth = this.#plan.layers.findIndex((l) => l.layer === layer);
    if (nth < 0) throw new Error(`layer ${layer} has no experts`);
    return nth;
  }

  /** Experts of a layer that it has room for, and those that it has; zeros for an unknown layer. */
  room(layer) {
    const nth = this.#plan.layers.findIndex((l) => l.layer === layer);
    return nth < 0 ? { most: 0, held: 0 } : { most: this.#plan.n_slot, held: this.#slots[nth].size };
  }

  has(layer, expert) {
    return this.#slots[this.#nth(layer)].has(expert);
  }

  /** Bytes of a packed expert. */
  expertBytes(layer) {
    return this.#plan.layers[this.#nth(layer)].pieces.reduce((sum, piece) => sum + piece.n_byte, 0);
  }

  /** Puts a packed expert, whose digest was compared, into a free slot. @param {Uint8Array} bytes */
  add(layer, expert, bytes) {
    const nth = this.#nth(layer);
    const { pieces, n_expert } = this.#plan.layers[nth];
    const expected = this.expertBytes(layer);
    if (expert >= n_expert || bytes.length !== expected) throw new Error(`expert ${expert} of layer ${layer}: ${bytes.length} bytes, expected ${expected}`);
    if (this.#slots[nth].has(expert)) return;
    const slot = this.#free[nth].pop();
    if (slot === undefined) throw new Error(`layer ${layer} has no free slot`);
    let at = 0;
    for (const { n_byte, stride, shards } of pieces) {
      let of = slot;
      const shard = shards.find(({ n_slot }) => of < n_slot || ((of -= n_slot), false));
      this.#device.queue.writeBuffer(this.#buffers[shard.buffer], shard.start + of * stride, bytes, at, n_byte);
      at += n_byte;
    }
    this.#slots[nth].set(expert, slot);
  }

  remove(layer, expert) {
    const nth = this.#nth(layer);
    const slot = this.#slots[nth].get(expert);
    if (slot === undefined) return;
    this.#slots[nth].delete(expert);
    this.#free[nth].push(slot);
  }

  /**
   * The products of a task, a row for each pair, by the plan for the columns of the hub's step.
   * @param {{ nColumn: number, stepColumns: number, pairs: { expert: number, column: number, slot: number }[], x: Float32Array }} task
   * @returns {Promise<Float32Array>}
   */
  compute(layer, task) {
    const next = this.#last.then(() => this.#compute(layer, task));
    this.#last = next.catch(() => {});
    return next;
  }

  async #compute(layer, { nColumn, stepColumns, pairs, x }) {
    const nth = this.#nth(layer);
    const index = this.#plan.plans.findIndex((p) => stepColumns <= p.max_col);
    if (index < 0 || nColumn > stepColumns) throw new Error(`${nColumn} columns of a step of ${stepColumns}, at most ${this.maxColumns} are planned`);
    const { many, layers } = this.#plan.plans[index];
    const { route, input, slots } = layers[nth];
    if (x.length !== nColumn * input.width) throw new Error(`columns of ${x.length / nColumn} values, expected ${input.width}`);
    if (pairs.length > nColumn * route.n_used) throw new Error(`${pairs.length} pairs of ${nColumn} columns`);
    if (pairs.some((p) => p.slot >= route.n_used)) throw new Error(`a slot beyond ${route.n_used}`);
    const place = (expert) => {
      const slot = this.#slots[nth].get(expert);
      if (slot === undefined) throw new Error(`expert ${expert} of layer ${layer} is not here`);
      return slot;
    };
    const writes = [[input.buffer, 0, inputWords(input, x)]];
    if (many) {
      const made = routeOfMany(route, nColumn, pairs, place);
      writes.push([route.buffer, 4 * route.tiles_at, made.tiles], [route.buffer, 4 * route.pairs_at, made.pairs]);
    } else {
      writes.push([route.buffer, 0, routeOfOne(route, pairs, place)]);
    }
    const nByte = 4 * (many ? pairs.length : route.n_used) * slots.words;
    const error = errorOf(this.#device, () => {
      for (const [buffer, at, words] of writes) this.#device.queue.writeBuffer(this.#buffers[buffer], at, words);
      this.#submit(this.#calls[index][nth], nColumn, slots, nByte);
    });
    const values = await this.#read(nByte, error);
    const { width } = slots;
    if (many && slots.words === width) return values;
    const rows = new Float32Array(pairs.length * width);
    pairs.forEach(({ slot }, i) => {
      const from = (many ? i : slot) * slots.words;
      rows.set(values.subarray(from, from + width), i * width);
    });
    return rows;
  }

  #submit(calls, nColumn, slots, nByte) {
    const encoder = this.#device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const { call, pipeline, group } of calls) {
      const size = grid(call, nColumn);
      if (!size) continue;
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(...size);
    }
    pass.end();
    encoder.copyBufferToBuffer(this.#buffers[slots.buffer], 0, this.#readback, 0, nByte);
    this.#device.queue.submit([encoder.finish()]);
  }

  /** The rows that were copied, unless there was an error: then the buffer has those of another task. */
  async #read(nByte, error) {
    const [found] = await Promise.all([error, this.#readback.mapAsync(GPUMapMode.READ, 0, nByte)]);
    const values = found ? null : new Float32Array(this.#readback.getMappedRange(0, nByte).slice(0));
    this.#readback.unmap();
    if (found) throw new Error(`the device: ${found.message}`);
    return values;
  }

  /** The rows of a unit's experts for fixed inputs, by both kinds of plan; throws if they are not finite. */
  async canary(layer, experts) {
    const { input, route } = this.#plan.plans[0].layers[this.#nth(layer)];
    const tasks = [[2, experts.slice(0, 2).map((expert, column) => ({ expert, column, slot: 0 }))]];
    for (let i = 0; i < experts.length; i += route.n_used) {
      tasks.push([1, experts.slice(i, i + route.n_used).map((expert, slot) => ({ expert, column: 0, slot }))]);
    }
    const all = [];
    for (const [nColumn, pairs] of tasks) {
      const rows = await this.compute(layer, { nColumn, stepColumns: nColumn, pairs, x: fixed(nColumn * input.width) });
      if (!rows.every(Number.isFinite)) throw new Error(`layer ${layer} gives no finite numbers on this device`);
      all.push(rows);
    }
    return new Blob(all).arrayBuffer();
  }

  destroy() {
    for (const buffer of [...(this.#buffers ?? []), this.#readback]) buffer?.destroy();
  }
}

/** Values of several magnitudes, the same everywhere. */
function fixed(n) {
  let seed = 1;
  return Float32Array.from({ length: n }, (_, i) => {
    // xorshift32
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return ((seed >> 8) / 2 ** 23) * [0.0625, 0.25, 1, 4][i % 4];
  });
}
