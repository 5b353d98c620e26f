// Frames of the protocol (docs/swarm.md, crates/wire): those that a hub sends are decoded and checked, those of a worker
// encoded.

import { areFinite, decodeRows, rowBytes } from "./rows.js";

/** Kinds of frames. */
export const Kind = {
  HELLO: 1, CHALLENGE: 2, PROOF: 3, WELCOME: 4, REFUSE: 5, ASSIGN: 6, HAVE: 7, DRAIN: 8,
  TASK: 0x10, RESULT: 0x11, FAIL: 0x12, CANCEL: 0x13, STATE: 0x14, PING: 0x20, PONG: 0x21,
  SPAN: 0x30, SPAN_RESULT: 0x31, TRIM: 0x32,
};
/** Causes of a FAIL. */
export const Cause = { BAD_FRAME: 1, NOT_HELD: 2, BUSY: 4, LATE: 5, DEVICE: 7, INTERNAL: 9, COLUMNS: 10 };
/** Limits of a connection before WELCOME. */
export const LIMITS = { frame: 4 << 20, message: 8 << 20, pending: 8 << 20, n_pending: 8, fragment: 256 << 10, n_task: 4 };

const [SUM, MORE, CRC] = [1, 2, 4];
const HEADER = 32;
const [MAX_CONTROL, MAX_ASSIGN, MAX_CANCEL, MAX_TEXT] = [64 << 10, 1 << 20, 4096, 1024];
const KINDS = new Set(Object.values(Kind));

const isControl = (kind) => kind < 0x10;
/** Kinds that can be longer than a frame, and whose header names a task. */
const isSplit = (kind) => [Kind.TASK, Kind.RESULT, Kind.SPAN, Kind.SPAN_RESULT].includes(kind);

/** A frame that the protocol does not allow. */
export class FrameError extends Error {
  /** @param {string} message @param {bigint} [task] that the frame names */
  constructor(message, task = 0n) {
    super(message);
    this.name = "FrameError";
    this.task = task;
  }
}

function must(isRight, message) {
  if (!isRight) throw new FrameError(message);
}

const TABLE = Uint32Array.from({ length: 256 }, (_, i) => {
  let value = i;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f6_3b78 : value >>> 1;
  return value;
});

/** CRC-32C of a frame, whose own field counts as zero. */
function checksum(bytes) {
  const head = bytes.slice(0, HEADER).fill(0, 12, 16);
  let value = 0xffff_ffff;
  for (const byte of head) value = TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  for (let i = HEADER; i < bytes.length; i++) value = TABLE[(value ^ bytes[i]) & 0xff] ^ (value >>> 8);
  return ~value >>> 0;
}

/** A frame. Its payload is cut into fragments if it is long. @returns {Uint8Array[]} */
export function encode({ kind, task = 0n, epoch = 0, layer = 0, sum = false }, payload, limits = LIMITS) {
  const most = Math.min(limits.fragment, limits.frame);
  const n = isSplit(kind) ? Math.max(1, Math.ceil(payload.length / most)) : 1;
  const limit = kind === Kind.ASSIGN ? MAX_ASSIGN : isControl(kind) ? MAX_CONTROL : limits.message;
  must(payload.length <= limit, `a message of ${payload.length} bytes, at most ${limit}`);
  return Array.from({ length: n }, (_, i) => {
    const part = n === 1 ? payload : payload.subarray(i * most, (i + 1) * most);
    const bytes = new Uint8Array(HEADER + part.length);
    const view = new DataView(bytes.buffer);
    bytes.set([0x43, 0x48, 0x53, 0x57, 1, kind]);
    view.setUint16(6, (sum ? SUM : 0) | (i + 1 < n ? MORE : 0) | CRC, true);
    view.setUint32(8, part.length, true);
    view.setBigUint64(16, task, true);
    view.setUint32(24, epoch, true);
    view.setUint16(28, layer, true);
    view.setUint16(30, i, true);
    bytes.set(part, HEADER);
    view.setUint32(12, checksum(bytes), true);
    return bytes;
  });
}

/** A JSON message. */
export const control = (kind, value) => encode({ kind }, new TextEncoder().encode(JSON.stringify(value)))[0];

/** An answer of rows, which {@link encodeRows} has made. */
export function result({ task, epoch, layer, sum }, rows, { nRow, width, queue, queued, running }, limits) {
  const payload = new Uint8Array(20 + Math.ceil(rows.bytes.length / 4) * 4);
  const view = new DataView(payload.buffer);
  view.setUint32(0, nRow, true);
  view.setUint32(4, width, true);
  payload.set([rows.dtype, Math.min(queue, 255)], 8);
  view.setUint32(12, Math.min(queued, 0xffff_ffff), true);
  view.setUint32(16, Math.min(running, 0xffff_ffff), true);
  payload.set(rows.bytes, 20);
  return encode({ kind: Kind.RESULT, task, epoch, layer, sum }, payload, limits);
}

/** No rows, or with task 0 a complaint. */
export function fail({ task = 0n, epoch = 0, layer = 0 }, code, text = "", retryAfter = 0) {
  let words = new TextEncoder().encode(text);
  // Cut at the end of a character.
  while (words.length > MAX_TEXT) words = new TextEncoder().encode((text = text.slice(0, -1)));
  const payload = new Uint8Array(8 + words.length);
  const view = new DataView(payload.buffer);
  view.setUint16(0, code, true);
  view.setUint16(2, words.length, true);
  view.setUint32(4, retryAfter, true);
  payload.set(words, 8);
  return encode({ kind: Kind.FAIL, task, epoch, layer }, payload)[0];
}

/** State of a worker. */
export function state({ visible, throttled = false, queue, freeMib }) {
  const payload = new Uint8Array(8);
  payload.set([visible ? 1 : 0, throttled ? 1 : 0]);
  new DataView(payload.buffer).setUint16(2, queue, true);
  new DataView(payload.buffer).setUint32(4, freeMib, true);
  return encode({ kind: Kind.STATE }, payload)[0];
}

export function pong(clock) {
  const payload = new Uint8Array(8);
  new DataView(payload.buffer).setBigUint64(0, clock, true);
  return encode({ kind: Kind.PONG }, payload)[0];
}

/** Reads and checks a header. */
function header(bytes, limits) {
  must(bytes.length >= HEADER, `a frame of ${bytes.length} bytes has no header`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  must(view.getUint32(0) === 0x4348_5357 && bytes[4] === 1, "the frame is of another protocol");
  const [kind, flags, length] = [bytes[5], view.getUint16(6, true), view.getUint32(8, true)];
  const head = {
    kind,
    sum: (flags & SUM) !== 0,
    more: (flags & MORE) !== 0,
    task: view.getBigUint64(16, true),
    epoch: view.getUint32(24, true),
    layer: view.getUint16(28, true),
    fragment: view.getUint16(30, true),
  };
  const sums = kind === Kind.TASK || kind === Kind.RESULT;
  must(KINDS.has(kind), `there is no kind ${kind}`);
  must(flags <= 7 && (!head.sum || sums) && (!head.more || isSplit(kind)), `flags ${flags} of kind ${kind}`);
  const limit = kind === Kind.ASSIGN ? MAX_ASSIGN : isControl(kind) ? MAX_CONTROL : Math.min(limits.frame, limits.message);
  must(length === bytes.length - HEADER && length <= limit, `${bytes.length - HEADER} bytes of kind ${kind}, stated ${length}, at most ${limit}`);
  const hasPlace = isSplit(kind) || kind === Kind.FAIL || kind === Kind.TRIM;
  must(isSplit(kind) ? head.task > 0n : kind === Kind.FAIL || head.task === 0n, "the task of the header");
  must(hasPlace || (head.epoch === 0 && head.layer === 0), "epoch or layer of the header");
  must(isSplit(kind) || head.fragment === 0, "the fragment of the header");
  must(view.getUint32(12, true) === (flags & CRC ? checksum(bytes) : 0), "the checksum");
  return head;
}

/** Puts the frames of a connection together. */
export class Assembler {
  #limits;
  /** Fragments by kind and task. */
  #parts = new Map();

  constructor(limits = LIMITS) {
    this.#limits = limits;
  }

  /**
   * The message of a frame, with `kind`, `task`, `epoch`, `layer`, `sum` and `body`; null if fragments are missing.
   * Throws {@link FrameError}.
   * @param {ArrayBuffer | Uint8Array} message
   */
  push(message) {
    // A text message would be read as a length.
    must(message instanceof ArrayBuffer || message instanceof Uint8Array, "a message that is no bytes");
    const bytes = message instanceof Uint8Array ? message : new Uint8Array(message);
    const task = bytes.length >= HEADER ? new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(16, true) : 0n;
    try {
      const head = header(bytes, this.#limits);
      const payload = this.#whole(head, bytes.subarray(HEADER));
      return payload && { ...head, body: decode(head, payload) };
    } catch (error) {
      if (error instanceof FrameError) throw new FrameError(error.message, task);
      throw new FrameError(`${error}`, task);
    }
  }

  #whole(head, payload) {
    const key = `${head.kind} ${head.task}`;
    const before = this.#parts.get(key);
    this.#parts.delete(key);
    if (!before && head.fragment === 0 && !head.more) return payload;
    const isNext = before ? before.fragment + 1 === head.fragment && before.epoch === head.epoch && before.layer === head.layer && before.sum === head.sum : head.fragment === 0;
    must(isNext && payload.length > 0, `fragment ${head.fragment} of task ${head.task}`);
    const parts = [...(before?.parts ?? []), payload.slice()];
    const length = (before?.length ?? 0) + payload.length;
    const pending = [...this.#parts.values()].reduce((sum, p) => sum + p.length, length);
    must(length <= this.#limits.message && pending <= this.#limits.pending, `${length} bytes of task ${head.task}`);
    if (!head.more) {
      const whole = new Uint8Array(length);
      let at = 0;
      for (const part of parts) {
        whole.set(part, at);
        at += part.length;
      }
      return whole;
    }
    must(this.#parts.size < this.#limits.n_pending, "too many unfinished messages");
    this.#parts.set(key, { ...head, parts, length });
    return null;
  }
}

function decode({ kind, sum }, payload) {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  if (isControl(kind)) return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(payload));
  switch (kind) {
    case Kind.TASK:
      return decodeTask(payload, view, sum);
    case Kind.CANCEL:
      must(payload.length > 0 && payload.length % 8 === 0 && payload.length <= 8 * MAX_CANCEL, `a CANCEL of ${payload.length} bytes`);
      return Array.from({ length: payload.length / 8 }, (_, i) => view.getBigUint64(8 * i, true));
    case Kind.PING:
      must(payload.length === 8, `a PING of ${payload.length} bytes`);
      return view.getBigUint64(0, true);
    default:
      // A hub sends no others, but FAIL, whose text nobody reads.
      return null;
  }
}

/** A task: its pairs with experts, in order, and the columns as f32. */
function decodeTask(payload, view, sum) {
  must(payload.length >= 24, `a TASK of ${payload.length} bytes`);
  const [nColumn, nPair, width] = [0, 4, 8].map((at) => view.getUint32(at, true));
  const [dtype, answer, nRun] = [payload[12], payload[13], view.getUint16(14, true)];
  const [budget, stepColumns] = [view.getUint32(16, true), view.getUint32(20, true)];
  must(nColumn > 0 && nColumn <= 65536 && width > 0 && nPair > 0 && nRun > 0 && dtype < 4 && answer < 4, "counts of a TASK");
  must(stepColumns >= nColumn, "columns of the step");
  const rowsAt = 24 + 4 * (nRun + nPair * (sum ? 2 : 1));
  const nByte = rowBytes(dtype, width) * nColumn;
  must(payload.length === rowsAt + Math.ceil(nByte / 4) * 4, `a TASK of ${payload.length} bytes`);
  const pairs = [];
  let [at, lastExpert] = [24 + 4 * nRun, -1];
  for (let run = 0; run < nRun; run++) {
    const [expert, n] = [view.getUint16(24 + 4 * run, true), view.getUint16(26 + 4 * run, true)];
    must(expert > lastExpert && n > 0 && pairs.length + n <= nPair, "experts of a TASK");
    lastExpert = expert;
    for (let i = 0, last = -1; i < n; i++, at += 4) {
      const [column, slot] = [view.getUint16(at, true), view.getUint16(at + 2, true)];
      must(column < nColumn && column > last, "columns of a TASK");
      last = column;
      pairs.push({ expert, column, slot });
    }
  }
  must(pairs.length === nPair, "pairs of a TASK");
  const weights = sum ? new Float32Array(payload.slice(at, at + 4 * nPair).buffer) : null;
  const x = decodeRows(dtype, width, nColumn, payload.subarray(rowsAt, rowsAt + nByte));
  must(areFinite(x) && (!weights || areFinite(weights)), "a value that is no finite number");
  return { nColumn, width, answer, budget, stepColumns, pairs, weights, x };
}
