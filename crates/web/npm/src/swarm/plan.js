// A hub's plan: data that a page checks before it believes anything of it, and what follows from it for a task.

import { toHalf } from "./rows.js";

/** Bytes of activations that a plan may take beside the experts. */
const SPARE = 512 << 20;
/** Most entries of a list of a plan. */
const MOST = 1 << 16;

/** A plan that cannot be used. */
export class PlanError extends Error {
  constructor(message) {
    super(`the hub's plan: ${message}`);
    this.name = "PlanError";
  }
}

function must(isRight, message) {
  if (!isRight) throw new PlanError(message);
}

const isCount = (value, most = Number.MAX_SAFE_INTEGER) => Number.isInteger(value) && value >= 0 && value <= most;

function list(value, what) {
  must(Array.isArray(value) && value.length <= MOST, `${what} are no list`);
  return value;
}

/**
 * Checks a plan, so that replaying it stays within its own buffers and the memory that was given; throws
 * {@link PlanError}.
 * @param {any} plan @param {number} memory bytes for experts
 * @param {{ maxBufferSize: number, maxStorageBufferBindingSize: number, maxComputeWorkgroupsPerDimension: number }} limits
 */
export function checkPlan(plan, memory, limits) {
  must(plan && typeof plan === "object", "it is no object");
  const most = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize);
  must(isCount(plan.width, 1 << 20) && plan.width > 0, "width");
  must(isCount(plan.n_slot, MOST) && plan.n_slot > 0, "slots");
  const sizes = [...list(plan.buffers, "buffers"), plan.readback];
  must(sizes.every((n) => isCount(n, most) && n > 0 && n % 4 === 0), `a buffer is larger than the device's ${most} bytes, or empty`);
  const total = sizes.reduce((a, b) => a + b, 0);
  must(total <= 1.1 * memory + SPARE, `${total} bytes of buffers for ${memory} bytes of experts`);
  const isBuffer = (i) => isCount(i, plan.buffers.length - 1);
  const data = list(plan.data, "data");
  must(data.every((text) => typeof text === "string" && text.length % 8 === 0), "data");
  for (const fill of list(plan.fills, "fills")) {
    must(isBuffer(fill.buffer) && isCount(fill.data, data.length - 1) && isCount(fill.at) && fill.at % 4 === 0, "a fill");
    must(fill.at + data[fill.data].length / 2 <= plan.buffers[fill.buffer], "a fill beyond its buffer");
  }
  for (const layer of list(plan.layers, "layers")) checkLayer(layer, plan, isBuffer);
  for (const kernel of list(plan.kernels, "kernels")) {
    must(typeof kernel.text === "string" && typeof kernel.name === "string", "a kernel");
    must(list(kernel.bindings, "bindings").every((b) => Array.isArray(b) && isCount(b[0], 999)), "a binding");
  }
  for (const pipeline of list(plan.pipelines, "pipelines")) {
    must(isCount(pipeline.kernel, plan.kernels.length - 1), "the kernel of a pipeline");
    must(Object.values(pipeline.constants ?? {}).every(Number.isFinite), "a constant of a pipeline");
  }
  must(list(plan.plans, "plans").length > 0, "it is empty");
  for (const steps of plan.plans) {
    must(isCount(steps.max_col, MOST) && steps.max_col > 0 && typeof steps.many === "boolean", "columns");
    must(list(steps.layers, "layers of a plan").length === plan.layers.length, "layers of a plan");
    for (const calls of steps.layers) checkCalls(calls, steps, plan, isBuffer, limits.maxComputeWorkgroupsPerDimension);
  }
}

function checkLayer({ layer, n_expert, pieces }, plan, isBuffer) {
  must(isCount(layer, 65535) && isCount(n_expert, 65536) && n_expert > 0, "a layer");
  for (const piece of list(pieces, "pieces")) {
    must(isCount(piece.n_byte) && piece.n_byte % 4 === 0 && isCount(piece.stride) && piece.stride % 4 === 0, "a piece");
    must(piece.stride >= piece.n_byte, "pieces that overlap");
    let n = 0;
    for (const shard of list(piece.shards, "shards")) {
      must(isBuffer(shard.buffer) && isCount(shard.start) && shard.start % 4 === 0 && isCount(shard.n_slot, MOST), "a shard");
      const end = shard.n_slot > 0 ? shard.start + (shard.n_slot - 1) * piece.stride + piece.n_byte : 0;
      must(end <= plan.buffers[shard.buffer], "a shard beyond its buffer");
      n += shard.n_slot;
    }
    must(n >= plan.n_slot, "slots without a buffer");
  }
}

function checkCalls({ calls, route, input, slots }, { max_col, many }, plan, isBuffer, maxGroups) {
  for (const call of list(calls, "calls")) {
    must(isCount(call.pipeline, plan.pipelines.length - 1), "the pipeline of a call");
    const { bindings } = plan.kernels[plan.pipelines[call.pipeline].kernel];
    must(list(call.bind, "buffers of a call").length === bindings.length && call.bind.every(isBuffer), "buffers of a call");
    must(Array.isArray(call.grid) && call.grid.length === 3 && call.grid.every((n) => isCount(n, 2 ** 31)), "a grid");
    // Grids do not shrink with more columns.
    for (const n of [1, max_col]) must((grid(call, n) ?? []).every((axis) => axis <= maxGroups), `a grid of more than ${maxGroups} workgroups`);
  }
  for (const rows of [input, slots]) {
    const words = rows && (rows.f16 ? Math.ceil(rows.width / 2) : rows.width);
    must(rows && isBuffer(rows.buffer) && isCount(rows.width, 1 << 20) && rows.width > 0 && isCount(rows.words) && rows.words >= words, "rows");
  }
  must(slots.width === plan.width && !slots.f16, "the width of rows");
  const isRoute = route && isBuffer(route.buffer) && [route.n_used, route.n_expert, route.tile, route.tiles_at, route.pairs_at].every((n) => isCount(n, 2 ** 31));
  must(isRoute && route.tile > 0 && route.n_used > 0, "a route");
  const nPair = max_col * route.n_used;
  const words = many ? Math.max(route.tiles_at + 3 * tiles(route, nPair), route.pairs_at + nPair) : route.n_used;
  must(4 * words <= plan.buffers[route.buffer], "a route beyond its buffer");
  must(4 * max_col * input.words <= plan.buffers[input.buffer], "columns beyond their buffer");
  must(4 * nPair * slots.words <= Math.min(plan.buffers[slots.buffer], plan.readback), "rows beyond their buffer");
}

/** Most tiles of so many pairs. */
const tiles = ({ tile, n_expert }, nPair) => Math.floor(nPair / tile) + Math.min(n_expert, nPair);

/** The workgroups of a call for `n` columns; null if there is nothing to do. */
export function grid({ grid: whole, growth }, n) {
  const g = [...whole];
  switch (growth?.by) {
    case "fixed":
      break;
    case "tiles":
      must(isCount(growth.axis, 2) && growth.tile > 0, "growth");
      g[growth.axis] = Math.ceil(n / growth.tile) * growth.times;
      break;
    case "experts":
      must(growth.tile > 0, "growth");
      g[0] = tiles(growth, n * growth.n_used);
      break;
    case "share": {
      must(growth.whole > 0, "growth");
      // Rows of a folded grid keep their length.
      const axis = g[1] > 1 ? 1 : 0;
      g[axis] = Math.ceil((g[axis] * n) / growth.whole);
      break;
    }
    default:
      must(false, `growth ${growth?.by}`);
  }
  must(g.every((axis) => isCount(axis, 2 ** 31)), "growth");
  return g.includes(0) ? null : g;
}

/** The words of columns in the layout of the device. */
export function inputWords({ width, words, f16 }, x) {
  const n = x.length / width;
  const out = new Uint32Array(n * words);
  const floats = new Float32Array(out.buffer);
  const halves = new Uint16Array(out.buffer);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < width; j++) {
      if (f16) halves[2 * i * words + j] = toHalf(x[i * width + j]);
      else floats[i * words + j] = x[i * width + j];
    }
  }
  return out;
}

/** The route of one column: the slot on the device for each of its slots, those without a pair have none. */
export function routeOfOne({ n_used }, pairs, place) {
  const words = new Uint32Array(n_used).fill(0xffff_ffff);
  for (const { expert, slot } of pairs) words[slot] = place(expert);
  return words;
}

/** The tiles and the sorted pairs of several columns; pairs are in the order of their experts. */
export function routeOfMany(route, nColumn, pairs, place) {
  const words = new Uint32Array(3 * tiles(route, nColumn * route.n_used));
  let at = 0;
  for (let first = 0; first < pairs.length; ) {
    const { expert } = pairs[first];
    let end = first;
    while (end < pairs.length && pairs[end].expert === expert) end++;
    for (; first < end; first += route.tile) {
      words.set([place(expert), first, Math.min(end, first + route.tile)], 3 * at++);
    }
    first = end;
  }
  const order = Uint32Array.from(pairs, ({ column, slot }) => column * route.n_used + slot);
  return { tiles: words, pairs: order };
}
