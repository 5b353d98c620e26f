// One engine for all tabs of an origin. The tab that holds a Web Lock leads: it has the worker and the model, and answers what the
// others ask. When it ends, however it does, the lock goes to the next tab, which loads the model and leads from then on.
//
// A tab hears of leaders on a channel that all share, and gets requests and answers on one of its own. Beside that it holds a lock
// while it lives, by which the leader learns that nobody waits for an answer any more.

import { Channel, closed, open } from "./channel.js";
import { EngineError, badRequest } from "./errors.js";

const MOVED = "send the request again: another tab has the engine now";

/** A request to a leader that ended while it answered. */
const moved = () => new EngineError("leader_closed", "the tab whose engine answered was closed", MOVED);

/** Methods that end with the state of one conversation, which is nobody's where all share an engine. */
const OWN = ["save", "restore"];

/** Events of an answer that has not begun. */
const SILENT = /"type":"prompt"|"text":"","type":"content"/;

const random = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

/** The channel of an engine that all tabs with this name share. */
export function share(options, args) {
  if (!globalThis.navigator?.locks || typeof BroadcastChannel === "undefined") {
    throw new EngineError("unsupported", "shared: this browser has no Web Locks or BroadcastChannel here", "serve the page over https or from localhost");
  }
  if (typeof args.model !== "string") throw badRequest("shared: expected a model that every tab can load, not a File");
  if (options.worker === false || options.worker?.postMessage) throw badRequest("shared: expected the package's own worker");
  return new SharedChannel(typeof options.shared === "string" ? options.shared : args.model, options, args);
}

class SharedChannel extends Channel {
  #name;
  #id = random();
  #options;
  #args;
  /** Where all hear of leaders, where this tab hears the others, and where these do, by tab. */
  #all;
  #own;
  #peers = new Map();
  /** The tab that leads, and since when: a tab may lead again. */
  #leader = { tab: null, term: null };
  /** Calls that the leader has not answered, by number: the next one is asked. */
  #asked = new Map();
  #lead = null;
  #over = new AbortController();

  constructor(name, options, args) {
    super();
    this.#name = `chaski-shared/${name}`;
    [this.#options, this.#args] = [options, args];
    this.#all = new BroadcastChannel(this.#name);
    this.#own = new BroadcastChannel(`${this.#name}/${this.#id}`);
    const { signal } = this.#over;
    const closed = new Promise((done) => signal.addEventListener("abort", done));
    // Nobody hears of this tab before it holds its lock.
    navigator.locks.request(`${this.#name}/${this.#id}`, { signal }, () => {
      this.#begin(signal);
      return closed;
    }).catch(() => {});
  }

  #begin(signal) {
    this.#all.onmessage = ({ data: { join, leader } }) => {
      if (leader) this.#follow(leader);
      else if (join && this.#lead) this.#all.postMessage({ leader: this.#leader });
    };
    this.#own.onmessage = ({ data }) => (data.from === undefined ? this.answer(data) : this.#lead?.take(data));
    this.#run(signal);
    this.#all.postMessage({ join: this.#id });
  }

  /** Leads whenever it is this tab's turn. */
  async #run(signal) {
    while (!signal.aborted) {
      await navigator.locks.request(this.#name, { signal }, () => this.#reign(signal)).catch(() => {});
    }
  }

  async #reign(signal) {
    if (signal.aborted) return;
    const tell = (to, data) => (to === this.#id ? this.answer(data) : this.#peer(to).postMessage(data));
    const lead = new Leader(this.#name, this.#options, this.#args, tell);
    const end = () => lead.end();
    signal.addEventListener("abort", end);
    this.#lead = lead;
    const leader = { tab: this.#id, term: random() };
    this.#all.postMessage({ leader });
    this.#follow(leader);
    await lead.over;
    this.#lead = null;
    signal.removeEventListener("abort", end);
  }

  /** Another leader: asks it what the one before did not begin to answer. */
  #follow(leader) {
    if (leader.term === this.#leader.term) return;
    this.#leader = leader;
    for (const [id, { method, args, begun }] of this.#asked) {
      if (begun) this.answer({ id, error: moved() });
      else this.#post({ from: this.#id, id, method, args });
    }
  }

  #peer(to) {
    if (!this.#peers.has(to)) this.#peers.set(to, new BroadcastChannel(`${this.#name}/${to}`));
    return this.#peers.get(to);
  }

  /** A call that nobody hears is asked of the next leader. */
  #post(data) {
    const { tab } = this.#leader;
    if (tab === this.#id) this.#lead?.take(data);
    else if (tab) this.#peer(tab).postMessage(data);
  }

  send(id, method, args) {
    if (OWN.includes(method)) throw new EngineError("unsupported", `${method}: a shared engine's conversation is that of any tab`);
    this.#asked.set(id, { method, args, begun: false });
    this.#post({ from: this.#id, id, method, args });
  }

  answer(data) {
    const call = this.#asked.get(data.id);
    if (data.event === undefined) this.#asked.delete(data.id);
    else if (call?.method === "generate") call.begun ||= !SILENT.test(data.event);
    super.answer(data);
  }

  abort(id) {
    this.#asked.delete(id);
    this.#post({ from: this.#id, abort: id });
  }

  close() {
    this.fail(closed());
    this.#over.abort();
    for (const channel of [this.#all, this.#own, ...this.#peers.values()]) channel.close();
  }
}

/** The engine of the tab that leads, and who waits for it. */
class Leader {
  #name;
  #args;
  #tell;
  #channel;
  #info = null;
  #listeners = new Set();
  /** Calls of each tab, by number. */
  #tabs = new Map();
  #ended = false;
  #done;
  over = new Promise((done) => (this.#done = done));

  constructor(name, options, args, tell) {
    [this.#name, this.#args, this.#tell] = [name, args, tell];
    this.#channel = open(options);
  }

  end() {
    this.#ended = true;
    this.#channel.close();
    this.#done();
  }

  /** The model, loaded once; whoever waits hears of the progress. One that cannot be loaded ends the leader, once all know. */
  async #create(args, emit = () => {}) {
    if (JSON.stringify(args) !== JSON.stringify(this.#args)) throw badRequest("shared: another tab's engine of this name has other options");
    this.#listeners.add(emit);
    if (!this.#info) {
      this.#info = this.#channel.call("create", this.#args, { emit: (event) => this.#listeners.forEach((listener) => listener(event)) });
      this.#info.catch(() => setTimeout(() => this.end()));
    }
    return this.#info.finally(() => this.#listeners.delete(emit));
  }

  async take({ from, id, method, args, abort }) {
    const calls = this.#tab(from);
    if (abort !== undefined) return void calls.get(abort)?.abort();
    const controller = new AbortController();
    calls.set(id, controller);
    // A leader that has ended says nothing more: the next one is asked.
    const tell = (data) => this.#ended || this.#tell(from, { id, ...data });
    const emit = (event) => tell({ event });
    try {
      const info = await this.#create(method === "create" ? args : this.#args, method === "create" ? emit : undefined);
      tell({ result: method === "create" ? info : await this.#channel.call(method, args, { signal: controller.signal, emit }) });
    } catch (error) {
      tell({ error: EngineError.from(error).toJSON() });
      if (error.code === "worker_failed") setTimeout(() => this.end());
    } finally {
      calls.delete(id);
    }
  }

  /** The calls of a tab, which end with it. */
  #tab(from) {
    if (!this.#tabs.has(from)) {
      const calls = new Map();
      this.#tabs.set(from, calls);
      navigator.locks.request(`${this.#name}/${from}`, () => {
        for (const controller of calls.values()) controller.abort();
        this.#tabs.delete(from);
      });
    }
    return this.#tabs.get(from);
  }
}
