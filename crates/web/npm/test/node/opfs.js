// The parts of a browser that the store uses, in memory: files with exclusive handles, locks, a quota.

import { createHash } from "node:crypto";

const named = (name, message = name) => Object.assign(new Error(message), { name });

/** Bytes that may be written before the disk is full. */
export const disk = { left: Infinity };

class FakeFile {
  kind = "file";
  data = new Uint8Array(0);
  open = false;

  async getFile() {
    return new File([this.data], "data");
  }

  async createSyncAccessHandle() {
    if (this.open) throw named("NoModificationAllowedError");
    this.open = true;
    return new Handle(this);
  }
}

class Handle {
  constructor(file) {
    this.file = file;
  }
  #resize(n) {
    const data = new Uint8Array(n);
    data.set(this.file.data.subarray(0, n));
    disk.left -= n - this.file.data.length;
    this.file.data = data;
  }
  truncate(n) {
    this.#resize(n);
  }
  getSize() {
    return this.file.data.length;
  }
  read(out, { at }) {
    const bytes = this.file.data.subarray(at, at + out.length);
    out.set(bytes);
    return bytes.length;
  }
  write(bytes, { at }) {
    const end = at + bytes.length;
    if (end - this.file.data.length > disk.left) throw named("QuotaExceededError");
    if (end > this.file.data.length) this.#resize(end);
    this.file.data.set(bytes, at);
    return bytes.length;
  }
  flush() {}
  close() {
    this.file.open = false;
  }
}

class Folder {
  kind = "directory";
  children = new Map();

  #child(name, Kind, create) {
    if (!this.children.has(name)) {
      if (!create) throw named("NotFoundError");
      this.children.set(name, new Kind());
    }
    return this.children.get(name);
  }
  async getDirectoryHandle(name, { create = false } = {}) {
    return this.#child(name, Folder, create);
  }
  async getFileHandle(name, { create = false } = {}) {
    return this.#child(name, FakeFile, create);
  }
  async removeEntry(name) {
    if (!this.children.delete(name)) throw named("NotFoundError");
  }
  async *entries() {
    yield* this.children;
  }
}

/** Web Locks of one name after the other: `{ mode, run }` wait in order. */
class Locks {
  #names = new Map();

  async request(name, { mode = "exclusive", ifAvailable = false, signal } = {}, f) {
    if (ifAvailable && signal) throw named("NotSupportedError");
    const lock = this.#names.get(name) ?? { held: [], waiting: [] };
    this.#names.set(name, lock);
    const free = () => lock.held.length === 0 || (mode === "shared" && lock.held.every((m) => m === "shared"));
    if (!free()) {
      if (ifAvailable) return f(null);
      await new Promise((resolve, reject) => {
        const waiter = { free, resolve };
        lock.waiting.push(waiter);
        signal?.addEventListener("abort", () => {
          lock.waiting.splice(lock.waiting.indexOf(waiter) >>> 0, 1);
          reject(signal.reason);
        });
      });
    }
    lock.held.push(mode);
    try {
      return await f({ name, mode });
    } finally {
      lock.held.splice(lock.held.indexOf(mode), 1);
      if (lock.waiting[0]?.free()) lock.waiting.shift().resolve();
    }
  }
}

/** Node as a browser with nothing stored. */
export function browser({ origin = "http://page.test" } = {}) {
  const top = new Folder();
  disk.left = Infinity;
  const storage = {
    getDirectory: async () => top,
    estimate: async () => ({ quota: 1e12, usage: 0 }),
  };
  const define = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  define("navigator", { onLine: true, storage, locks: new Locks() });
  define("location", new URL(origin));
  return top;
}

/** The wasm module's hash. */
export class Hash {
  #hash = createHash("sha256");
  update(bytes) {
    this.#hash.update(bytes);
  }
  hex() {
    return this.#hash.copy().digest("hex");
  }
}
