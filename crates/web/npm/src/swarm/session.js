// The experts of a page and its connection to a hub: the worker of crates/swarm in JavaScript. It loads units one by one,
// and computes tasks one by one, of which a few may wait.

import { Cause, FrameError, Kind, control, fail, pong, result, state } from "./frames.js";
import { sha256, unhex } from "./proof.js";
import { encodeRows, sums } from "./rows.js";

/** Tasks that wait beside the one that runs. */
const QUEUE = 4;
/** Frames that the protocol does not allow, after which the connection is closed. */
const STRIKES = 3;
/** First and longest pause before a unit that failed is loaded again, in milliseconds. */
const AGAIN = [100, 60_000];
/** Time over which the rate is counted, in milliseconds. */
const WINDOW = 5_000;
/** Requests for experts at once. */
const AT_ONCE = 4;
/** Most units of an assignment, and most experts whose places are kept. */
const MOST = 65536;

/** Experts of one model in a page, over connections. */
export class Holdings {
  /** The digest of each unit's canary, by its name. @type {Map<string, { layer: number, experts: number[], canary: string }>} */
  units = new Map();
  /** The digest of each expert of these units, by layer and expert. @type {Map<string, string>} */
  digests = new Map();

  /** @param {import("./replay.js").Replay} replay @param {{ model: string, plan: string }} of digests of both */
  constructor(replay, of) {
    [this.replay, this.of] = [replay, of];
  }

  /** True for the same plan of the same model: other models may have the same plan. */
  isOf({ model, plan }) {
    return this.of.model === model && this.of.plan === plan;
  }
}

/** Counts of what a page has given, over connections. */
export class Given {
  tasks = 0;
  rows = 0;
  #recent = [];

  add(rows) {
    this.tasks++;
    this.rows += rows;
    this.#recent.push([performance.now(), rows]);
    this.#prune();
  }

  #prune() {
    const since = performance.now() - WINDOW;
    while (this.#recent.length > 0 && this.#recent[0][0] < since) this.#recent.shift();
  }

  /** Rows a second, lately. */
  get rate() {
    this.#prune();
    return (this.#recent.reduce((sum, [, rows]) => sum + rows, 0) * 1000) / WINDOW;
  }
}

const is16 = (n) => Number.isInteger(n) && n >= 0 && n < 65536;
const isByte = (n) => Number.isSafeInteger(n) && n >= 0;
const key = (layer, expert) => `${layer}:${expert}`;

/** The units of a message; throws {@link FrameError} for anything else. */
function named(units) {
  return units.map((unit) => {
    const { layer, experts } = unit?.experts ?? {};
    if (!is16(layer) || !Array.isArray(experts) || experts.length === 0 || !experts.every(is16)) throw new FrameError("a unit that is none");
    return { name: key(layer, experts), layer, experts };
  });
}

export class Session {
  /** @type {Holdings | null} */ #holdings = null;
  #limits;
  #send;
  #close;
  #fetch;
  #given;
  #changed;
  #epoch = 0;
  /** Units of the last assignment, the most wanted first; null before it. */
  #wanted = null;
  #begun = [];
  /** Where experts are, and their digests: by layer and expert. */
  #places = new Map();
  #waiting = [];
  #running = null;
  /** Ends with the last task. */
  #computing = Promise.resolve();
  /** Units are to be freed that tasks still use. */
  #isDeferred = false;
  #isLoading = false;
  /** Ends with the last loading. */
  #loading = Promise.resolve();
  #strikes = 0;
  #isOver = false;
  #again = AGAIN[0];

  /**
   * @param {object} options
   * @param {object} options.limits of the connection
   * @param {(bytes: Uint8Array) => void} options.send
   * @param {(reason: string) => void} options.close
   * @param {(path: string, offset: number, length: number, sha256: string) => Promise<Uint8Array>} options.fetch weights, compared with their digest
   * @param {Given} options.given
   * @param {() => void} options.changed something that a status shows
   */
  constructor({ limits, send, close, fetch, given, changed }) {
    [this.#limits, this.#send, this.#close, this.#fetch, this.#given, this.#changed] = [limits, send, close, fetch, given, changed];
  }

  /** The device is ready: what it holds is announced, and what is missing is loaded. @param {Holdings} holdings */
  begin(holdings) {
    this.#holdings = holdings;
    this.#settle();
    for (const name of holdings.units.keys()) this.#announce(name);
    this.#load();
  }

  /** The connection is gone. Ends once nothing touches the holdings any more: neither a load nor a task. */
  async end() {
    this.#isOver = true;
    this.#waiting = [];
    await Promise.all([this.#loading, this.#computing]);
  }

  /** Units that are held, and that are assigned. */
  get counts() {
    return { units: this.#holdings?.units.size ?? 0, assigned: this.#wanted?.length ?? 0 };
  }

  /** Tells the hub whether somebody sees the page. */
  tell(visible) {
    this.#send(state({ visible, queue: this.#waiting.length, freeMib: 0 }));
  }

  /** Takes a message, which {@link Assembler} has checked. @returns {boolean} false if the worker should leave */
  on(frame) {
    const { kind, body } = frame;
    try {
      if (kind === Kind.TASK) this.#task(frame);
      else if (kind === Kind.PING) this.#send(pong(body));
      else if (kind === Kind.CANCEL) this.#cancel(body);
      else if (kind === Kind.ASSIGN) this.#assign(body);
      else if (kind === Kind.DRAIN) return false;
      else if (kind !== Kind.FAIL && kind !== Kind.PONG) throw new FrameError(`kind ${kind} is nothing that a hub sends`);
    } catch (error) {
      this.strike(error instanceof FrameError ? error : new FrameError(`${error}`, frame.task));
    }
    return true;
  }

  /** A frame that the protocol does not allow. @param {FrameError} error */
  strike(error) {
    this.#strikes++;
    this.#send(fail({ task: error.task }, Cause.BAD_FRAME, error.message));
    if (this.#strikes >= STRIKES) this.#close(`the hub sends wrong frames: ${error.message}`);
  }

  #assign({ epoch, more, units, files, tensors }) {
    for (const { file, offset, stride, length, parts, sha256: digests, name } of tensors) {
      const layer = Number(/^experts of layer (\d{1,5})$/.exec(name)?.[1]);
      const isRight = is16(layer) && Array.isArray(parts) && parts.every(is16) && parts.length === digests.length && [offset, stride, length].every(isByte);
      if (!isRight || typeof files[file] !== "string" || !digests.every((text) => unhex(text, 32))) throw new FrameError(`weights of ${name}`);
      parts.forEach((expert, i) => {
        const place = { path: files[file], offset: offset + stride * expert, length, sha256: digests[i] };
        this.#places.set(key(layer, expert), place);
      });
    }
    const found = named(units);
    const isEndless = this.#begun.length + found.length > MOST || this.#places.size > MOST || (more && found.length === 0);
    if (isEndless) throw new FrameError("an assignment without an end");
    this.#begun.push(...found);
    if (more) return;
    [this.#epoch, this.#wanted, this.#begun] = [epoch, this.#begun, []];
    this.#changed();
    if (!this.#holdings) return;
    this.#settle();
    for (const { name } of this.#wanted) this.#announce(name);
    this.#load();
  }

  /** Frees units that are not wanted any more, or whose weights are others, once no task uses them. */
  #settle() {
    this.#isDeferred = false;
    if (!this.#wanted) return;
    const { replay, units, digests } = this.#holdings;
    const wanted = new Set(this.#wanted.map((unit) => unit.name));
    for (const [name, { layer, experts }] of units) {
      if (wanted.has(name) && experts.every((expert) => this.#holds(layer, expert))) continue;
      if (this.#uses(layer, experts)) {
        this.#isDeferred = true;
        continue;
      }
      units.delete(name);
      for (const expert of experts) {
        digests.delete(key(layer, expert));
        replay.remove(layer, expert);
      }
    }
  }

  /** True if an expert is here with the weights of this connection's hub. */
  #holds(layer, expert) {
    const digest = this.#holdings?.digests.get(key(layer, expert));
    return digest !== undefined && digest === this.#places.get(key(layer, expert))?.sha256;
  }

  /** True if all experts of a task are here; pairs are in the order of experts. */
  #has(layer, pairs) {
    return pairs.every(({ expert }, i) => expert === pairs[i - 1]?.expert || this.#holds(layer, expert));
  }

  /** True if a task needs one of these experts. */
  #uses(layer, experts) {
    return [this.#running, ...this.#waiting].some((task) => task?.layer === layer && task.body.pairs.some((p) => experts.includes(p.expert)));
  }

  /** Frees what tasks needed until now, and loads what has room then. */
  #freed() {
    if (!this.#isDeferred) return;
    this.#settle();
    this.#load();
  }

  #cancel(tasks) {
    this.#waiting = this.#waiting.filter((w) => !tasks.includes(w.task));
    this.#freed();
  }

  #announce(name) {
    const unit = this.#holdings.units.get(name);
    if (!unit) return;
    const { layer, experts, canary } = unit;
    // Before an assignment the hub has not said which weights it has.
    if (this.#wanted && !experts.every((expert) => this.#holds(layer, expert))) return;
    this.#send(control(Kind.HAVE, { epoch: this.#epoch, units: [{ experts: { layer, experts } }], canary }));
  }

  /** The next unit that has room, and none of whose experts are those of another unit. */
  #next() {
    const { replay, units, digests } = this.#holdings;
    return (this.#wanted ?? []).find(({ name, layer, experts }) => {
      const { most, held } = replay.room(layer);
      return !units.has(name) && held + experts.length <= most && !experts.some((expert) => digests.has(key(layer, expert)));
    });
  }

  #load() {
    if (this.#isLoading) return;
    this.#isLoading = true;
    this.#loading = this.#loadAll();
  }

  /** Loads units until nothing is missing. One that fails comes after the others, later. */
  async #loadAll() {
    for (let unit = this.#next(); unit && !this.#isOver; unit = this.#next()) {
      const [begin, tasks] = [performance.now(), this.#given.tasks];
      let pause = 0;
      try {
        await this.#loadUnit(unit);
        this.#again = AGAIN[0];
        // Loads take half of the link while tasks come.
        if (this.#given.tasks > tasks) pause = performance.now() - begin;
      } catch (error) {
        for (const expert of unit.experts) this.#holdings.replay.remove(unit.layer, expert);
        if (this.#isOver) break;
        console.warn(`chaski: experts of layer ${unit.layer}: ${error.message}`);
        pause = this.#again;
        this.#again = Math.min(2 * pause, AGAIN[1]);
        const at = this.#wanted.indexOf(unit);
        if (at >= 0) this.#wanted.push(...this.#wanted.splice(at, 1));
      }
      this.#changed();
      if (pause > 0) await this.#pause(pause);
    }
    // In the turn that saw nothing missing: a later assignment begins anew.
    this.#isLoading = false;
  }

  /** Waits, but not beyond the connection. */
  async #pause(time) {
    const end = performance.now() + time;
    while (!this.#isOver && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, Math.min(end - performance.now(), 500)));
    }
  }

  async #loadUnit({ name, layer, experts }) {
    const { replay, units, digests } = this.#holdings;
    const loaded = [];
    for (let i = 0; i < experts.length; i += AT_ONCE) {
      const some = experts.slice(i, i + AT_ONCE);
      const packed = await Promise.all(some.map((expert) => this.#bring(layer, expert)));
      for (const { expert, bytes, digest } of packed) {
        replay.add(layer, expert, bytes);
        loaded.push([key(layer, expert), digest]);
      }
    }
    const canary = await sha256(await replay.canary(layer, experts));
    units.set(name, { layer, experts, canary });
    for (const [expert, digest] of loaded) digests.set(expert, digest);
    if (this.#isOver) return;
    // The hub may have changed its mind.
    this.#settle();
    this.#announce(name);
  }

  async #bring(layer, expert) {
    const place = this.#places.get(key(layer, expert));
    if (!place) throw new Error(`the hub has not assigned expert ${expert}`);
    const { path, offset, length, sha256: digest } = place;
    const expected = this.#holdings.replay.expertBytes(layer);
    if (length !== expected) throw new Error(`expert ${expert}: ${length} bytes, the plan has ${expected}`);
    return { expert, digest, bytes: await this.#fetch(path, offset, length, digest) };
  }

  /** TASK: waits for its turn, or is refused. */
  #task({ task, epoch, layer, sum, body }) {
    const came = performance.now();
    const holdings = this.#holdings;
    const refuse = (code, retry) => this.#send(fail({ task, epoch, layer }, code, "", retry));
    if (!this.#has(layer, body.pairs)) return refuse(Cause.NOT_HELD, 0);
    if (body.width !== holdings.replay.width) throw new FrameError("rows of another width", task);
    if (body.stepColumns > holdings.replay.maxColumns) return refuse(Cause.COLUMNS, 0);
    if (this.#running && this.#waiting.length >= QUEUE) return refuse(Cause.BUSY, 1000);
    this.#waiting.push({ task, epoch, layer, sum, body, came });
    if (!this.#running) this.#computing = this.#run();
  }

  async #run() {
    while (this.#waiting.length > 0 && !this.#isOver) {
      this.#running = this.#waiting.shift();
      const answer = await this.#answer(this.#running);
      this.#running = null;
      if (this.#isOver) return;
      for (const bytes of answer) this.#send(bytes);
      this.#freed();
      this.#changed();
    }
  }

  /** The frames that answer a task. @returns {Promise<Uint8Array[]>} */
  async #answer({ task, epoch, layer, sum, body, came }) {
    const begin = performance.now();
    const { nColumn, width, pairs, weights, budget } = body;
    const head = { task, epoch, layer, sum };
    const us = (time) => Math.round(1000 * time);
    if (budget > 0 && us(begin - came) > budget) return [fail(head, Cause.LATE)];
    // Since it came the hub may have named other weights.
    if (!this.#has(layer, pairs)) return [fail(head, Cause.NOT_HELD)];
    try {
      const products = await this.#holdings.replay.compute(layer, body);
      const values = weights ? sums(pairs, weights, products, nColumn, width) : products;
      if (!values.every(Number.isFinite)) throw new Error("a value that is no finite number");
      const nRow = values.length / width;
      this.#given.add(pairs.length);
      const times = { queue: this.#waiting.length, queued: us(begin - came), running: us(performance.now() - begin) };
      return result(head, encodeRows(values, body.answer), { nRow, width, ...times }, this.#limits);
    } catch (error) {
      console.warn(`chaski: task ${task}: ${error.message}`);
      return [fail(head, Cause.INTERNAL, `${error.message}`)];
    }
  }
}
