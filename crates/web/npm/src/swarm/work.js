// A page as a worker of a swarm: it computes experts for a hub on WebGPU, until somebody stops it.

import { SwarmError, checkPlace, openDevice } from "./device.js";
import { Assembler, Kind, LIMITS, control } from "./frames.js";
import { hex, prove, random, sha256, unhex, verify } from "./proof.js";
import { PlanError } from "./plan.js";
import { Replay } from "./replay.js";
import { Given, Holdings, Session } from "./session.js";
import { Store, forget } from "./store.js";

export { SwarmError, checkPlace, forget };

/** The version that hubs take. */
const BUILD = "0.1.0";
/** Bytes for experts unless the page says something else. */
const MEMORY = 1 << 30;
const [LEAST_MEMORY, LONGEST_PLAN] = [1 << 20, 64 << 20];
/** Milliseconds for a handshake, for the hub's plan, and of pauses before a connection is tried again. */
const [HANDSHAKE, PLANNING, AGAIN, JITTER, LONGEST] = [10_000, 300_000, 100, 5_000, 60_000];
/** Bytes of an error's text that are read. */
const MOST_TEXT = 200;
/** Refusals that another attempt may end otherwise. */
const PASSING = new Set(["full", "rate"]);
/** Shortest time between two calls of `onStatus` for tasks, in milliseconds. */
const TELL = 250;

/** The addresses of a hub: of its socket, and of its files. */
function addresses(url) {
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    throw new SwarmError("bad_request", `\`${url}\` is no address of a hub`);
  }
  const secure = { "http:": false, "ws:": false, "https:": true, "wss:": true }[parsed.protocol];
  if (secure === undefined) throw new SwarmError("bad_request", `\`${url}\`: expected ws, wss, http or https`);
  const s = secure ? "s" : "";
  return { socket: `ws${s}://${parsed.host}/swarm`, files: `http${s}://${parsed.host}` };
}

/** A promise that fails after a time. */
function within(promise, time, message) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new SwarmError("no_hub", message)), time)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The bytes of a body up to a number of them; `isWhole` if there are no more. */
async function read(body, most) {
  const [bytes, reader] = [new Uint8Array(most), body?.getReader()];
  for (let n = 0; reader; ) {
    const { done, value } = await reader.read();
    if (done) return { bytes: bytes.subarray(0, n), isWhole: true };
    bytes.set(value.subarray(0, most - n), n);
    n += value.length;
    if (n > most) {
      void reader.cancel();
      return { bytes, isWhole: false };
    }
  }
  return { bytes: new Uint8Array(), isWhole: true };
}

/** A socket whose messages can be awaited one by one, and then go to a function. */
class Line {
  #waiting = [];
  #come = [];
  #take = null;
  isClosed = false;

  constructor(url) {
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.opened = new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.closed = new Promise((closed) => {
        this.socket.onclose = ({ reason }) => {
          this.isClosed = true;
          const error = new SwarmError("no_hub", reason || "the hub is not there, or takes no pages of this origin");
          reject(error);
          for (const waiting of this.#waiting) waiting.reject(error);
          closed(reason);
        };
      });
    });
    this.socket.onmessage = ({ data }) => {
      if (this.#take) this.#take(data);
      else if (this.#waiting.length > 0) this.#waiting.shift().resolve(data);
      else if (this.#come.length < 64) this.#come.push(data);
    };
  }

  next() {
    if (this.#come.length > 0) return Promise.resolve(this.#come.shift());
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** From now on messages go to `take`. */
  handOver(take) {
    this.#take = take;
    for (const data of this.#come.splice(0)) take(data);
  }

  send(bytes) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(bytes);
  }
}

class Job {
  #urls;
  #token;
  #memory;
  #keep;
  /** @type {Store | null} */ #store = null;
  #name;
  #onStatus;
  #id = random(16);
  #opened;
  /** @type {Holdings | null} */ #holdings = null;
  #given = new Given();
  #session = null;
  #line = null;
  #stopped = new AbortController();
  /** Ends requests of the connection that is gone. */
  #gone = new AbortController();
  #state = "connecting";
  #reason = "";
  #told = 0;
  #timer = null;
  /** Ends with the last status, once the job is stopped or has failed. */
  done;

  constructor(url, { token, memory = MEMORY, keep = 0, name = "a page", onStatus } = {}) {
    this.#urls = addresses(url);
    if (token !== undefined && token !== null && !unhex(token, 16)) throw new SwarmError("bad_request", "the token: expected 32 hexadecimal digits");
    if (!Number.isSafeInteger(memory) || memory < LEAST_MEMORY) throw new SwarmError("bad_request", `memory: expected bytes, at least ${LEAST_MEMORY}`);
    if (!Number.isSafeInteger(keep) || keep < 0) throw new SwarmError("bad_request", "keep: expected bytes");
    [this.#token, this.#memory, this.#keep, this.#name, this.#onStatus] = [token ?? null, memory, keep, name, onStatus];
  }

  async begin() {
    await this.#open();
    this.#store = this.#keep > 0 ? await Store.open(this.#keep) : null;
    // The store may still be written when the status is the last one.
    this.done = this.#work().then(async (status) => (await this.#store?.close(), status));
    return this;
  }

  /** The share of the page at present. */
  get status() {
    const counts = this.#session?.counts ?? { units: this.#holdings?.units.size ?? 0, assigned: 0 };
    const { tasks, rows, rate } = this.#given;
    return {
      state: this.#state,
      reason: this.#reason,
      hub: this.#urls.files,
      device: this.#opened?.name ?? "",
      memory: this.#memory,
      used: this.#holdings?.replay.nByte ?? 0,
      kept: this.#store?.used ?? 0,
      ...counts,
      tasks,
      rows,
      rate,
    };
  }

  /** Ends the work at once; what the page held is computed by others. */
  stop() {
    this.#end("stopped", "");
  }

  get #isOver() {
    return this.#stopped.signal.aborted;
  }

  #end(state, reason) {
    if (this.#isOver) return;
    [this.#state, this.#reason] = [state, reason];
    this.#stopped.abort();
    globalThis.document?.removeEventListener("visibilitychange", this.#see);
    void this.#session?.end();
    this.#gone.abort();
    this.#line?.socket.close(1000);
    this.#holdings?.replay.destroy();
    this.#opened?.device.destroy();
    void this.#store?.close();
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#tell();
  }

  #become(state, reason = "") {
    if (this.#isOver) return;
    [this.#state, this.#reason] = [state, reason];
    this.#tell();
  }

  /** Keeps why there is no work; the last status has the reason of the end. */
  #because(reason) {
    if (!this.#isOver) this.#reason = reason;
  }

  #tell() {
    this.#told = performance.now();
    try {
      this.#onStatus?.(this.status);
    } catch (error) {
      console.error(error);
    }
  }

  /** Tells of tasks, not too often. */
  #changed = () => {
    if (this.#isOver || this.#timer) return;
    const pause = Math.max(0, this.#told + TELL - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#tell();
    }, pause);
  };

  #see = () => this.#session?.tell(document.visibilityState !== "hidden");

  async #open() {
    const opened = await openDevice();
    // Stopped in the meantime.
    if (this.#isOver) return opened.device.destroy();
    this.#opened = opened;
    void opened.device.lost.then(({ message }) => {
      if (this.#isOver || this.#opened !== opened) return;
      [this.#opened, this.#holdings] = [null, null];
      this.#reason = `the GPU was lost: ${message}`;
      this.#line?.socket.close(1000);
    });
  }

  async #work() {
    globalThis.document?.addEventListener("visibilitychange", this.#see);
    let again = AGAIN;
    while (!this.#isOver) {
      this.#become("connecting", this.#reason);
      let hasJoined = false;
      this.#because("");
      try {
        if (!this.#opened) await this.#open();
        if (this.#isOver) break;
        const line = await this.#join();
        hasJoined = true;
        const reason = await line.closed;
        this.#because(this.#reason || reason || "the hub has closed the connection");
      } catch (error) {
        if (error instanceof SwarmError && error.isFinal) this.#end("failed", error.message);
        this.#because(this.#reason || error.message);
      }
      this.#gone.abort();
      await this.#session?.end();
      [this.#session, this.#line] = [null, null];
      if (this.#isOver) break;
      // The workers of a hub that restarts do not come all at once.
      const longest = hasJoined ? JITTER : again;
      again = hasJoined ? JITTER : Math.min(2 * again, LONGEST);
      this.#become("waiting", this.#reason);
      await this.#pause(AGAIN + Math.random() * (longest - AGAIN));
    }
    return this.status;
  }

  #pause(time) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, time);
      this.#stopped.signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    });
  }

  /** Connects, proves the token both ways, and begins to work. */
  async #join() {
    const [line, gone] = [new Line(this.#urls.socket), new AbortController()];
    this.#gone = gone;
    void line.closed.then(() => gone.abort());
    line.opened.catch(() => {});
    this.#line = line;
    try {
      await within(this.#greet(line), HANDSHAKE, "the hub does not answer");
      const welcome = await within(this.#expect(line, Kind.WELCOME), PLANNING, "the hub makes no plan");
      await this.#serve(line, welcome);
      return line;
    } catch (error) {
      line.socket.close(1000);
      throw error;
    }
  }

  /** HELLO, CHALLENGE, PROOF. */
  async #greet(line) {
    await line.opened;
    const nonce = hex(random(32));
    const hello = {
      build: BUILD,
      id: hex(this.#id),
      name: this.#name,
      features: ["even_layers"],
      units: ["experts"],
      device: this.#opened.name,
      // Browsers hide which GPU it is, so products of pages are compared by value, and never by bits.
      class: await sha256(new TextEncoder().encode(`chaski page ${hex(this.#id)}`)),
      memory: this.#memory,
      cores: 1,
      limits: LIMITS,
      nonce,
      page: this.#opened.page,
    };
    const first = control(Kind.HELLO, hello);
    line.send(first);
    const challenge = await this.#expect(line, Kind.CHALLENGE);
    if (!unhex(challenge.nonce, 32)) throw new SwarmError("no_hub", "the hub's CHALLENGE has no nonce");
    let proof = null;
    if (this.#token !== null) {
      const values = { hub: challenge.nonce, worker: nonce, hello: first.subarray(32) };
      // A page would otherwise take work from anybody.
      if (!(await verify(this.#token, "hub", values, challenge.proof))) throw final("token", "the hub does not have this token");
      proof = await prove(this.#token, "worker", values);
    }
    line.send(control(Kind.PROOF, { proof }));
  }

  async #expect(line, kind) {
    const frame = new Assembler().push(await line.next());
    if (frame?.kind === Kind.REFUSE) {
      const { code, text } = frame.body;
      const message = `the hub refuses this page: ${text}`;
      throw PASSING.has(code) ? new SwarmError("refused", message) : final("refused", message);
    }
    if (frame?.kind !== kind) throw new SwarmError("no_hub", "the hub sends something else than a handshake");
    return frame.body;
  }

  /** Takes messages at once, PINGs among them, while the plan is fetched and compiled. */
  async #serve(line, { model, plan, key, limits }) {
    if (!plan || !unhex(key, 16)) throw new SwarmError("no_hub", "the hub sends no plan");
    const least = Object.entries(LIMITS).map(([name, ours]) => [name, Math.min(ours, limits?.[name] > 0 ? limits[name] : ours)]);
    const agreed = Object.fromEntries(least);
    const session = new Session({
      limits: agreed,
      send: (bytes) => line.send(bytes),
      close: (reason) => {
        this.#because(reason);
        line.socket.close(1000);
      },
      fetch: (path, offset, length, digest) => this.#expert(key, path, { length, digest, offset }),
      given: this.#given,
      changed: this.#changed,
    });
    const assembler = new Assembler(agreed);
    line.handOver((data) => {
      let frame;
      try {
        frame = assembler.push(data);
      } catch (error) {
        return session.strike(error);
      }
      if (frame && !session.on(frame)) this.#end("stopped", "the hub asked the page to leave");
    });
    this.#session = session;
    if (globalThis.document?.visibilityState === "hidden") session.tell(false);
    this.#become("loading");
    await this.#hold(model, plan, key);
    if (line.isClosed || this.#isOver) return;
    session.begin(this.#holdings);
    this.#become("working");
  }

  /** Compiles the plan, unless the device has it and experts of this model already. */
  async #hold(model, { path, length, sha256: digest }, key) {
    const of = { model, plan: digest };
    if (this.#holdings?.isOf(of)) return;
    this.#holdings?.replay.destroy();
    this.#holdings = null;
    if (!(length > 0 && length <= LONGEST_PLAN)) throw final("plan", `the hub's plan: ${length} bytes, at most ${LONGEST_PLAN} are taken`);
    const bytes = await this.#fetch(key, path, { length, digest });
    const { device } = this.#opened;
    let replay;
    try {
      replay = await Replay.create(device, JSON.parse(new TextDecoder().decode(bytes)), this.#memory);
    } catch (error) {
      // The bytes are those of the hub, so they are the same next time.
      const isPlan = error instanceof PlanError || error instanceof SyntaxError;
      throw isPlan && this.#opened?.device === device ? final("plan", error.message) : error;
    }
    if (this.#isOver || this.#opened?.device !== device) {
      replay.destroy();
      throw new SwarmError("device_lost", this.#reason);
    }
    this.#holdings = new Holdings(replay, of);
  }

  /** A packed expert from the disk, or from the hub. */
  async #expert(key, path, place) {
    const kept = await this.#store?.get(place.digest, place.length);
    if (kept) return kept;
    const bytes = await this.#fetch(key, path, place);
    this.#store?.put(place.digest, bytes);
    return bytes;
  }

  /** Bytes from the hub, compared with their digest. */
  async #fetch(key, path, { length, digest, offset }) {
    // A hub names its own paths alone.
    if (!/^\/swarm\/[a-z0-9/]+$/.test(path)) throw new SwarmError("no_hub", `\`${path}\` is no path of a hub`);
    const range = offset === undefined ? {} : { range: `bytes=${offset}-${offset + length - 1}` };
    const response = await fetch(this.#urls.files + path, {
      headers: { authorization: `Bearer ${key}`, ...range },
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: this.#gone.signal,
    });
    const { bytes, isWhole } = await read(response.body, response.ok ? length : MOST_TEXT);
    if (!response.ok) throw new SwarmError("no_hub", `${path}: ${response.status} ${new TextDecoder().decode(bytes)}`);
    if (bytes.length !== length || !isWhole) throw new SwarmError("no_hub", `${path}: not ${length} bytes`);
    if ((await sha256(bytes)) !== digest) throw new SwarmError("no_hub", `${path}: the bytes differ from their digest`);
    return bytes;
  }
}

/** An error after which no attempt is made. */
const final = (code, message) => Object.assign(new SwarmError(code, message), { isFinal: true });

/** Computes experts for the hub at an address until the job is stopped. */
export async function work(url, options) {
  return new Job(url, options).begin();
}
