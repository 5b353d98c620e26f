// The protocol of swarms in JavaScript, against the frames of crates/wire/tests/golden, and checks of a plan.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Assembler, FrameError, Kind, control, encode, fail, pong, result, state } from "../../src/swarm/frames.js";
import { PlanError, checkPlan, grid, inputWords, routeOfMany, routeOfOne } from "../../src/swarm/plan.js";
import { hex, prove, sha256, unhex, verify } from "../../src/swarm/proof.js";
import { Dtype, decodeRows, encodeRows, sums, toHalf } from "../../src/swarm/rows.js";
import { Replay } from "../../src/swarm/replay.js";
import { Given, Holdings, Session } from "../../src/swarm/session.js";
import { work } from "../../src/swarm/work.js";

const golden = (name) => new Uint8Array(readFileSync(new URL(`../../../../wire/tests/golden/${name}`, import.meta.url)));
const read = (name) => new Assembler().push(golden(`${name}.frame`));
const PAIRS = [[3, 0, 0], [3, 1, 1], [9, 1, 0]].map(([expert, column, slot]) => ({ expert, column, slot }));
const ROWS = [0.5, -1, 2, 0, 1.5, -0.25];

test("frames of a hub are read as the tables say", () => {
  const { kind, task, epoch, layer, sum, body } = read("task");
  assert.deepEqual([kind, task, epoch, layer, sum], [Kind.TASK, 7n, 2, 5, false]);
  assert.deepEqual({ ...body, x: [...body.x] }, { nColumn: 2, width: 3, answer: Dtype.F16, budget: 0, stepColumns: 2, pairs: PAIRS, weights: null, x: ROWS });
  const sums = read("task-sum");
  assert.deepEqual([sums.task, sums.sum, sums.body.budget, sums.body.stepColumns], [8n, true, 1500, 64]);
  assert.deepEqual([[...sums.body.weights], [...sums.body.x]], [[0.75, 0.5, 0.25], ROWS]);
  assert.ok(Math.abs(read("task-bf16").body.x[0] / 1e38 - 1) < 0.004);
  const q8 = read("task-q8").body;
  assert.deepEqual([...q8.x], [...Array.from({ length: 32 }, (_, i) => (i - 16) / 2), 254, -254]);
  assert.deepEqual(read("cancel").body, [7n, 8n, 1n << 40n]);
  assert.equal(read("ping").body, 123456789n);
  assert.equal(read("refuse").body.code, "token");
  assert.deepEqual(read("welcome-page").body.plan, { path: "/swarm/plan", length: 200_000, sha256: "ef".repeat(32) });
  assert.equal(read("assign").body.tensors[0].stride, 1024);
});

test("frames of a worker have the bytes of the tables", () => {
  const checked = (kind) => {
    // Without a checksum, as these golden frames are.
    const bytes = kind.slice();
    bytes.fill(0, 12, 16);
    bytes[6] &= ~4;
    return bytes;
  };
  const head = { task: 7n, epoch: 2, layer: 5 };
  const rows = encodeRows(Float32Array.of(1, 2, 3, 4, 5, 6), Dtype.F32);
  assert.deepEqual(result(head, rows, { nRow: 3, width: 2, queue: 1, queued: 250, running: 1250 })[0], golden("result.frame"));
  const one = encodeRows(Float32Array.of(1, -2, 0.5), Dtype.F16);
  const sum = result({ task: 8n, epoch: 2, layer: 5, sum: true }, one, { nRow: 1, width: 3, queue: 0, queued: 0, running: 1 })[0];
  assert.deepEqual(checked(sum), golden("result-sum.frame"));
  assert.deepEqual(checked(fail(head, 4, "queue füll", 2000)), golden("fail.frame"));
  assert.deepEqual(checked(state({ visible: true, queue: 3, freeMib: 4096 })), golden("state.frame"));
  assert.deepEqual(pong(123456789n), golden("pong.frame"));
  for (const [name, kind] of [["hello-page", Kind.HELLO], ["have", Kind.HAVE]]) {
    const made = control(kind, read(name).body);
    assert.deepEqual(name === "have" ? checked(made) : made, golden(`${name}.frame`));
  }
});

test("long answers are fragments, with other frames between them", () => {
  const bytes = golden("fragments.frames");
  const view = new DataView(bytes.buffer);
  const [assembler, found] = [new Assembler(), []];
  for (let at = 0; at < bytes.length; ) {
    const n = view.getUint16(at, true);
    found.push(assembler.push(bytes.subarray(at + 2, at + 2 + n)));
    at += 2 + n;
  }
  assert.equal(found[0], null);
  assert.equal(found[1].kind, Kind.PING);
  assert.deepEqual(found[2].body, read("task").body);
  const parts = encode({ kind: Kind.RESULT, task: 1n }, new Uint8Array(1000), { fragment: 300, frame: 400, message: 2000 });
  assert.deepEqual(parts.map((part) => part.length - 32), [300, 300, 300, 100]);
});

test("a damaged frame is an error with its task, and nothing else", () => {
  const isFound = (error) => error instanceof FrameError && typeof error.task === "bigint";
  let [n, cut, flipped] = [0, 0, 0];
  for (const name of ["task", "task-sum", "task-q8", "cancel", "ping", "assign", "welcome-page"]) {
    // With a checksum, which not all of these golden frames have.
    const head = read(name);
    const [whole] = encode(head, golden(`${name}.frame`).subarray(32));
    new Assembler().push(whole);
    n += whole.length;
    for (let i = 0; i < whole.length; i++) {
      assert.throws(() => new Assembler().push(whole.slice(0, i)), isFound, `${name}: the first ${i} bytes`);
      cut++;
      const bad = Object.assign(whole.slice(), { [i]: whole[i] ^ (1 << i % 8) });
      assert.throws(() => new Assembler().push(bad), isFound, `${name}: byte ${i}`);
      flipped++;
    }
  }
  assert.ok(n > 1000, `${n}`);
  assert.deepEqual([cut, flipped], [n, n]);
  for (const text of ["99999999999", 99999999999, null]) assert.throws(() => new Assembler().push(text), isFound);
  const task = golden("task-sum.frame");
  task[60] ^= 1;
  assert.throws(() => new Assembler().push(task), (e) => e.task === 8n && /checksum/.test(e.message));
});

test("proofs are those of the other side", async () => {
  const token = "000102030405060708090a0b0c0d0e0f";
  const values = { hub: "22".repeat(32), worker: "11".repeat(32), hello: golden("hello.frame").subarray(32) };
  assert.equal(await prove(token, "worker", values), read("proof").body.proof);
  const { proof } = read("challenge").body;
  assert.equal(await verify(token, "hub", values, proof), true);
  assert.equal(await verify(token, "worker", values, proof), false);
  assert.equal(await verify("00".repeat(16), "hub", values, proof), false);
  for (const bad of [null, undefined, "", "zz", proof.slice(2)]) assert.equal(await verify(token, "hub", values, bad), false);
  assert.equal(hex(unhex("00ff", 2)), "00ff");
  assert.equal(await sha256(new Uint8Array()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
});

test("values in 16 bits are the nearest, and those that do not fit fall back", () => {
  const cases = [[0, 0], [-0, 0x8000], [1, 0x3c00], [65504, 0x7bff], [65519, 0x7bff], [65520, 0x7c00], [2 ** -24, 1], [2 ** -25, 0], [1.5 * 2 ** -24, 2], [2 ** -14, 0x400], [1 + 2 ** -11, 0x3c00], [1 + 3 * 2 ** -11, 0x3c02], [Infinity, 0x7c00]];
  for (const [value, expected] of cases) assert.equal(toHalf(value), expected, `${value}`);
  for (let word = 0; word < 0x7c00; word++) {
    const [value] = decodeRows(Dtype.F16, 1, 1, Uint8Array.of(word & 255, word >> 8));
    assert.equal(toHalf(value), word);
  }
  const kinds = (values, wanted) => encodeRows(Float32Array.from(values), wanted).dtype;
  assert.deepEqual([kinds([1, -2], Dtype.F16), kinds([70000, 1], Dtype.F16), kinds([1e-6], Dtype.F16), kinds([0], Dtype.F16), kinds([3.4e38], Dtype.BF16), kinds([1], Dtype.Q8)], [Dtype.F16, Dtype.BF16, Dtype.BF16, Dtype.F16, Dtype.F32, Dtype.BF16]);
  const pairs = [[0, 0], [1, 0], [0, 2], [0, 1]].map(([column, slot]) => ({ column, slot }));
  const rows = Float32Array.of(1e8, 1, 2, 3, 1, 10, -1e8, 0.5);
  // As crates/swarm/src/sum.rs has it.
  assert.deepEqual([...sums(pairs, Float32Array.of(1, 1, 1, 1), rows, 3, 2)], [1, 11.5, 2, 3, 0, 0]);
});

test("routes and columns have the layout of the device", () => {
  const place = (expert) => expert + 10;
  const pair = (expert, column, slot) => ({ expert, column, slot });
  // As crates/runtime/src/gpu/worker.rs has it.
  assert.deepEqual([...routeOfOne({ n_used: 3 }, [pair(2, 0, 2), pair(5, 0, 0)], place)], [15, 0xffff_ffff, 12]);
  const made = routeOfMany({ n_expert: 8, n_used: 2, tile: 2 }, 4, [pair(1, 0, 1), pair(1, 1, 0), pair(1, 3, 0), pair(6, 1, 1)], place);
  assert.deepEqual([...made.tiles.slice(0, 9)], [11, 0, 2, 11, 2, 3, 16, 3, 4]);
  assert.equal(made.tiles.length, 3 * (8 / 2 + 8));
  assert.ok(made.tiles.slice(9).every((word) => word === 0));
  assert.deepEqual([...made.pairs], [1, 2, 6, 3]);
  const x = Float32Array.of(1, -2, 0.5, 4, 5, 6);
  const plain = inputWords({ width: 3, words: 8, f16: false }, x);
  assert.deepEqual([plain.length, new Float32Array(plain.buffer)[1], new Float32Array(plain.buffer)[8]], [16, -2, 4]);
  const halves = inputWords({ width: 3, words: 4, f16: true }, x);
  assert.deepEqual([...halves.slice(0, 2), halves[4] & 0xffff], [0xc000_3c00, 0x3800, 0x4400]);
  const of = (growth, whole, n) => grid({ grid: whole, growth }, n);
  assert.deepEqual(of({ by: "fixed" }, [4, 2, 1], 9), [4, 2, 1]);
  assert.deepEqual(of({ by: "tiles", axis: 1, tile: 4, times: 3 }, [4, 2, 1], 9), [4, 9, 1]);
  assert.deepEqual(of({ by: "experts", tile: 8, n_used: 2, n_expert: 5 }, [4, 2, 1], 9), [7, 2, 1]);
  assert.deepEqual(of({ by: "share", whole: 10 }, [4, 20, 1], 3), [4, 6, 1]);
  assert.equal(of({ by: "tiles", axis: 0, tile: 4, times: 0 }, [4, 2, 1], 9), null);
});

/** A plan of one layer with two slots. */
const plan = () => ({
  width: 8,
  n_slot: 2,
  buffers: [1024, 1024, 256, 256, 256],
  readback: 256,
  data: ["00112233"],
  fills: [{ buffer: 0, at: 1020, data: 0 }],
  layers: [{ layer: 3, n_expert: 4, pieces: [{ n_byte: 64, stride: 128, shards: [{ buffer: 0, start: 0, n_slot: 1 }, { buffer: 1, start: 16, n_slot: 1 }] }] }],
  kernels: [{ name: "k", text: "", bindings: [[0, 0], [1, 1]] }],
  pipelines: [{ kernel: 0, constants: { a: 1 } }],
  plans: [{ max_col: 1, many: false, layers: [{ calls: [{ pipeline: 0, bind: [0, 2], grid: [1, 1, 1], growth: { by: "fixed" } }], route: { buffer: 3, n_used: 2, n_expert: 2, tile: 8, tiles_at: 4, pairs_at: 16 }, input: { buffer: 2, width: 8, words: 8, f16: false }, slots: { buffer: 4, width: 8, words: 8, f16: false } }] }],
});
const LIMITS = { maxBufferSize: 1 << 20, maxStorageBufferBindingSize: 1 << 20, maxComputeWorkgroupsPerDimension: 65535 };

test("a plan stays within its buffers and the memory that was given", () => {
  checkPlan(plan(), 1 << 20, LIMITS);
  const changes = [
    (p) => (p.buffers[1] = 2 ** 21),
    (p) => (p.buffers[1] = -4),
    (p) => (p.buffers = null),
    (p) => (p.readback = 4),
    (p) => (p.fills[0].at = 1024),
    (p) => (p.data[0] = 5),
    (p) => (p.layers[0].pieces[0].shards[1].start = 1000),
    (p) => (p.layers[0].pieces[0].shards[1].buffer = 5),
    (p) => (p.layers[0].pieces[0].shards.pop()),
    (p) => (p.layers[0].pieces[0].stride = 32),
    (p) => (p.layers[0].n_expert = -1),
    (p) => (p.pipelines[0].kernel = 1),
    (p) => (p.pipelines[0].constants.a = null),
    (p) => (p.plans[0].layers[0].calls[0].bind = [0, 9]),
    (p) => (p.plans[0].layers[0].calls[0].bind = [0]),
    (p) => (p.plans[0].layers[0].calls[0].grid = [1, 1]),
    (p) => (p.plans[0].layers[0].calls[0].grid = [1, 65536, 1]),
    (p) => ((p.plans[0].max_col = 2), (p.plans[0].layers[0].calls[0].growth = { by: "tiles", axis: 0, tile: 1, times: 40000 })),
    (p) => (p.plans[0].layers[0].calls[0].growth = { by: "each" }),
    (p) => (p.plans[0].layers[0].route.n_used = 100),
    (p) => (p.plans[0].layers[0].input.width = 4096),
    (p) => (p.plans[0].layers[0].slots.words = 4),
    (p) => (p.plans[0].max_col = 9),
    (p) => (p.plans[0].layers = []),
    (p) => (p.plans = []),
  ];
  for (const change of changes) {
    const changed = plan();
    change(changed);
    assert.throws(() => checkPlan(changed, 1 << 20, LIMITS), PlanError, `${change}`);
  }
  assert.throws(() => checkPlan(null, 1 << 20, LIMITS), PlanError);
  const large = plan();
  large.buffers[1] = 600 << 20;
  assert.throws(() => checkPlan(large, 1 << 20, { ...LIMITS, maxBufferSize: 2 ** 31, maxStorageBufferBindingSize: 2 ** 31 }), /bytes of experts/);
});

/** A device that holds two experts of layer 5, whose products are the columns. */
function fake() {
  const held = new Set();
  let release = null;
  return {
    held,
    width: 3,
    nByte: 1,
    /** Tasks wait for a call of this, if it is asked for. */
    hold: () => new Promise((resolve) => (release = resolve)),
    release: () => release(),
    waits: null,
    maxColumns: 64,
    expertBytes: () => 10,
    room: (layer) => ({ most: layer === 5 ? 16 : 0, held: held.size }),
    has: (layer, expert) => layer === 5 && held.has(expert),
    add: (_, expert) => held.add(expert),
    remove: (_, expert) => held.delete(expert),
    canary: async () => new ArrayBuffer(4),
    async compute(_, { pairs, x, width }) {
      await this.waits;
      return Float32Array.from(pairs.flatMap(({ column }) => [...x.slice(column * width, (column + 1) * width)]));
    },
    destroy() {},
  };
}

const digestOf = (expert, model) => `${model}${expert}`.padStart(64, "0");

const assign = (epoch, experts, more = false, model = 0) => ({
  kind: Kind.ASSIGN,
  task: 0n,
  body: {
    epoch,
    more,
    units: experts.map((some) => ({ experts: { layer: 5, experts: some } })),
    files: ["/swarm/packed/5"],
    tensors: experts.map((some) => ({ name: "experts of layer 5", file: 0, offset: 0, stride: 10, length: 10, parts: some, sha256: some.map((e) => digestOf(e, model)) })),
  },
});

function session(replay = fake()) {
  const sent = [];
  const closed = [];
  const fetched = [];
  const assembler = new Assembler();
  const s = new Session({
    limits: { frame: 4 << 20, message: 8 << 20, pending: 8 << 20, n_pending: 8, fragment: 256 << 10 },
    // Other frames than a hub's are seen by their kind and task.
    send: (bytes) => sent.push({ kind: bytes[5], task: new DataView(bytes.buffer).getBigUint64(16, true), code: bytes[5] === Kind.FAIL ? bytes[32] : null, bytes }),
    close: (reason) => closed.push(reason),
    fetch: async (path, offset, length, digest) => (fetched.push([path, offset, length, digest]), new Uint8Array(length)),
    given: new Given(),
    changed: () => {},
  });
  return { s, sent, closed, fetched, replay, assembler };
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 40));
/** Waits for something that happens soon on an idle machine. */
async function until(look) {
  for (const end = Date.now() + 20_000; !look() && Date.now() < end; ) await turn();
}
const kinds = (sent) => sent.map(({ kind }) => kind);
/** A task with sums and without a budget: 1.5 ms may pass on a busy machine before it is looked at. */
function sumTask() {
  const frame = read("task-sum");
  return { ...frame, body: { ...frame.body, budget: 0 } };
}

test("a session loads what is assigned, computes it, and frees it", async () => {
  const { s, sent, fetched, replay } = session();
  s.on(assign(2, [[3], [9]]));
  s.on({ kind: Kind.PING, task: 0n, body: 5n });
  assert.deepEqual(kinds(sent), [Kind.PONG], "a ping is answered before the device is ready");
  s.begin(new Holdings(replay, {}));
  await until(() => s.counts.units === 2);
  assert.deepEqual(fetched, [["/swarm/packed/5", 30, 10, digestOf(3, 0)], ["/swarm/packed/5", 90, 10, digestOf(9, 0)]]);
  assert.deepEqual([kinds(sent), s.counts], [[Kind.PONG, Kind.HAVE, Kind.HAVE], { units: 2, assigned: 2 }]);
  s.on(read("task"));
  s.on(sumTask());
  await until(() => sent.length === 5);
  assert.deepEqual(sent.slice(3).map(({ kind, task }) => [kind, task]), [[Kind.RESULT, 7n], [Kind.RESULT, 8n]]);
  s.on(assign(3, [[9]]));
  await turn();
  assert.deepEqual([[...replay.held], s.counts.units], [[9], 1]);
  s.on(read("task"));
  assert.deepEqual([sent.at(-1).kind, sent.at(-1).code], [Kind.FAIL, 2], "not held");
});

test("few tasks wait, late and cancelled ones are dropped", async () => {
  const { s, sent, replay } = session();
  s.begin(new Holdings(replay, {}));
  s.on(assign(2, [[3], [9]]));
  await until(() => s.counts.units === 2);
  sent.length = 0;
  replay.waits = replay.hold();
  for (let task = 1n; task <= 6n; task++) s.on({ ...read("task"), task });
  await turn();
  assert.deepEqual(sent.map(({ kind, task, code }) => [kind, task, code]), [[Kind.FAIL, 6n, 4]]);
  s.on({ kind: Kind.CANCEL, task: 0n, body: [2n, 3n] });
  s.on({ ...read("task-sum"), task: 7n });
  await turn();
  replay.release();
  await until(() => sent.length === 5);
  assert.deepEqual(sent.slice(1).map(({ kind, task, code }) => [kind, task, code]), [[Kind.RESULT, 1n, null], [Kind.RESULT, 4n, null], [Kind.RESULT, 5n, null], [Kind.FAIL, 7n, 5]]);
});

test("a unit that a task uses is freed after it, and one that is missing is no fault", async () => {
  const { s, sent, replay } = session();
  s.begin(new Holdings(replay, {}));
  s.on(assign(2, [[3], [9]]));
  await until(() => s.counts.units === 2);
  sent.length = 0;
  replay.waits = replay.hold();
  for (let task = 1n; task <= 3n; task++) s.on({ ...read("task"), task });
  s.on(assign(3, []));
  await turn();
  assert.deepEqual([[...replay.held], s.counts.units, sent], [[3, 9], 2, []], "three tasks use them");
  s.on({ kind: Kind.CANCEL, task: 0n, body: [3n] });
  // Another model's weights are named: the task that runs is answered, and the one that waits needs what is not here.
  s.on(assign(4, [[3], [9]], false, 7));
  replay.release();
  await until(() => sent.length >= 4);
  assert.deepEqual(sent.map(({ kind, task, code }) => [kind, task, code]), [[Kind.RESULT, 1n, null], [Kind.FAIL, 2n, 2], [Kind.HAVE, 0n, null], [Kind.HAVE, 0n, null]]);
  assert.equal(s.counts.units, 2);
  s.on({ ...read("task"), task: 4n, body: { ...read("task").body, stepColumns: 65 } });
  assert.deepEqual([sent.at(-1).kind, sent.at(-1).code], [Kind.FAIL, 10], "a step of more columns than are planned");
});

test("a hub with another model gets none of the experts of the one before", async () => {
  const before = session();
  const holdings = new Holdings(before.replay, { model: "a", plan: "p" });
  assert.deepEqual([{ model: "a", plan: "p" }, { model: "b", plan: "p" }, { model: "a", plan: "q" }].map((of) => holdings.isOf(of)), [true, false, false]);
  before.s.begin(holdings);
  before.s.on(assign(2, [[3], [9]]));
  await until(() => before.s.counts.units === 2);
  await before.s.end();
  // The same header and the same plan, but other weights of expert 9.
  const { s, sent, fetched } = session(before.replay);
  s.begin(holdings);
  assert.deepEqual(kinds(sent), [Kind.HAVE, Kind.HAVE]);
  s.on(read("task"));
  assert.deepEqual([sent.at(-1).kind, sent.at(-1).code], [Kind.FAIL, 2], "before the hub has said which weights it has");
  const changed = assign(1, [[3], [9]]);
  changed.body.tensors[1].sha256 = [digestOf(9, 7)];
  sent.length = 0;
  s.on(changed);
  assert.deepEqual([kinds(sent), s.counts.units], [[Kind.HAVE], 1], "expert 3 alone");
  await until(() => sent.length >= 2);
  assert.deepEqual([fetched, kinds(sent)], [[["/swarm/packed/5", 90, 10, digestOf(9, 7)]], [Kind.HAVE, Kind.HAVE]]);
  s.on(read("task"));
  await until(() => sent.length >= 3);
  assert.equal(sent.at(-1).kind, Kind.RESULT);
});

test("a session ends after the task that runs", async () => {
  const { s, sent, replay } = session();
  s.begin(new Holdings(replay, {}));
  s.on(assign(2, [[3], [9]]));
  await until(() => s.counts.units === 2);
  replay.waits = replay.hold();
  s.on(read("task"));
  let isOver = false;
  const end = s.end().then(() => (isOver = true));
  await turn();
  assert.equal(isOver, false);
  const n = sent.length;
  replay.release();
  await end;
  assert.equal(sent.length, n, "nobody is there to take the answer");
});

test("wrong frames are counted, and the third closes the connection", async () => {
  const { s, sent, closed } = session();
  s.on({ kind: Kind.ASSIGN, task: 0n, body: { units: 5 } });
  s.on({ kind: Kind.ASSIGN, task: 0n, body: { epoch: 1, units: [{ span: { first: 0, end: 3 } }], files: [], tensors: [] } });
  assert.equal(closed.length, 0);
  s.on({ kind: Kind.HELLO, task: 0n, body: {} });
  assert.equal(closed.length, 1);
  s.on(assign(2, [], true));
  const long = assign(2, [[3]]);
  long.body.tensors[0].sha256 = ["0".repeat(1000)];
  s.on(long);
  assert.equal(closed.length, 3, "an assignment without units that goes on, and a digest that is none");
  assert.ok(sent.every(({ kind, code }) => kind === Kind.FAIL && code === 1));
  assert.equal(s.on({ kind: Kind.DRAIN, task: 0n, body: { text: "bye" } }), false);
});

test("experts that cannot be fetched are tried again behind the others", async (t) => {
  t.mock.method(console, "warn", () => {});
  const { s, sent, fetched, replay } = session();
  let fails = 1;
  const add = replay.add;
  replay.add = (layer, expert, bytes) => {
    if (expert === 3 && fails-- > 0) throw new Error("no room");
    add(layer, expert, bytes);
  };
  s.begin(new Holdings(replay, {}));
  s.on(assign(2, [[3], [9]]));
  await until(() => s.counts.units === 2);
  assert.deepEqual(fetched.map(([, offset]) => offset), [30, 90, 30]);
  assert.deepEqual(kinds(sent), [Kind.HAVE, Kind.HAVE]);
});

/** A device without a GPU: buffers have one word, and scopes the errors that are asked for. */
function fakeDevice(limits) {
  const [scopes, buffers] = [[], []];
  const device = {
    limits,
    /** Errors by kind, for the next scope of that kind. */
    errors: {},
    buffers,
    queue: { writeBuffer() {}, submit: (commands) => commands.forEach((run) => run()) },
    pushErrorScope: (kind) => scopes.push(kind),
    async popErrorScope() {
      const kind = scopes.pop();
      const error = device.errors[kind] ?? null;
      delete device.errors[kind];
      return error;
    },
    createBuffer({ size }) {
      const buffer = { bytes: new ArrayBuffer(size), isDestroyed: false, isMapped: false };
      buffer.destroy = () => (buffer.isDestroyed = true);
      buffer.mapAsync = async () => (buffer.isMapped = true);
      buffer.getMappedRange = (at, n) => buffer.bytes.slice(at, at + n);
      buffer.unmap = () => (buffer.isMapped = false);
      buffers.push(buffer);
      return buffer;
    },
    createBindGroupLayout: () => ({}),
    createPipelineLayout: () => ({}),
    createShaderModule: () => ({}),
    createBindGroup: () => ({}),
    createComputePipelineAsync: async () => "pipeline",
    createCommandEncoder: () => ({
      beginComputePass: () => ({ setPipeline: (p) => assert.equal(p, "pipeline"), setBindGroup() {}, dispatchWorkgroups: (...size) => device.sizes.push(size), end() {} }),
      copyBufferToBuffer() {},
      finish: () => () => {},
    }),
    sizes: [],
  };
  return device;
}

test("an error of the device fails a plan for ever, and a task once", async (t) => {
  class GPUValidationError extends Error {}
  const globals = { GPUValidationError, GPUBufferUsage: {}, GPUShaderStage: {}, GPUMapMode: {} };
  Object.assign(globalThis, globals);
  t.after(() => Object.keys(globals).forEach((name) => delete globalThis[name]));
  const device = fakeDevice(LIMITS);
  const steps = plan();
  const [one] = steps.plans;
  const many = structuredClone(one);
  Object.assign(many, { max_col: 2, many: true });
  Object.assign(many.layers[0].route, { tiles_at: 0, pairs_at: 40 });
  many.layers[0].calls[0].growth = { by: "tiles", axis: 1, tile: 1, times: 3 };
  steps.plans.push(many);
  for (const [kind, error, expected] of [
    ["validation", new GPUValidationError("no such binding"), (e) => e instanceof PlanError && /no such binding/.test(e.message)],
    ["out-of-memory", new Error("full"), (e) => !(e instanceof PlanError) && /full/.test(e.message)],
  ]) {
    device.errors = { [kind]: error };
    await assert.rejects(Replay.create(device, steps, 1 << 20), expected);
    assert.ok(device.buffers.length > 0 && device.buffers.every((b) => b.isDestroyed), "nothing is left of it");
  }
  device.createComputePipelineAsync = async () => {
    throw Object.assign(new Error("no such entry"), { reason: "validation" });
  };
  await assert.rejects(Replay.create(device, steps, 1 << 20), PlanError);
  device.createComputePipelineAsync = async () => "pipeline";
  const replay = await Replay.create(device, steps, 1 << 20);
  assert.deepEqual([replay.maxColumns, replay.expertBytes(3), replay.nByte], [2, 64, 3072]);
  replay.add(3, 1, new Uint8Array(64));
  const task = (stepColumns) => ({ nColumn: 1, stepColumns, pairs: [{ expert: 1, column: 0, slot: 0 }], x: new Float32Array(8) });
  assert.equal((await replay.compute(3, task(1))).length, 8);
  // One column of a step of two takes the plan of two.
  assert.equal((await replay.compute(3, task(2))).length, 8);
  assert.deepEqual(device.sizes, [[1, 1, 1], [1, 3, 1]]);
  for (const kind of ["validation", "out-of-memory", "internal"]) {
    device.errors = { [kind]: new Error(`${kind}!`) };
    await assert.rejects(replay.compute(3, task(1)), new RegExp(`${kind}!`));
    assert.ok(device.buffers.every((b) => !b.isMapped));
    assert.equal((await replay.compute(3, task(1))).length, 8, "the next task has rows again");
  }
  await assert.rejects(replay.compute(3, task(3)), /at most 2/);
});

test("Stop counts while a lost GPU is opened again", async (t) => {
  const devices = [];
  let give = null;
  const adapter = () => {
    const device = { limits: {}, isDestroyed: false, destroy: () => (device.isDestroyed = true) };
    device.lost = new Promise((resolve) => (device.lose = resolve));
    devices.push(device);
    return { features: new Set(), limits: {}, requestDevice: async () => device };
  };
  let n = 0;
  const gpu = { requestAdapter: () => (n++ === 0 ? Promise.resolve(adapter()) : new Promise((resolve) => (give = () => resolve(adapter())))) };
  const sockets = [];
  class WebSocket {
    constructor() {
      sockets.push(this);
    }
    close() {
      setTimeout(() => this.onclose({ reason: "" }));
    }
  }
  const globals = { WebSocket: globalThis.WebSocket, navigator: Object.getOwnPropertyDescriptor(globalThis, "navigator") };
  Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
  globalThis.WebSocket = WebSocket;
  t.after(() => {
    globalThis.WebSocket = globals.WebSocket;
    if (globals.navigator) Object.defineProperty(globalThis, "navigator", globals.navigator);
    else delete globalThis.navigator;
  });
  const states = [];
  const job = await work("ws://127.0.0.1:1", { onStatus: ({ state, reason }) => states.push([state, reason]) });
  assert.equal(sockets.length, 1);
  devices[0].lose({ message: "gone" });
  while (!give) await turn();
  job.stop();
  give();
  const last = await job.done;
  assert.deepEqual([last.state, last.reason, states.at(-1)], ["stopped", "", ["stopped", ""]]);
  assert.deepEqual([devices.length, devices[1].isDestroyed, sockets.length], [2, true, 1]);
});
