// Model files in the origin's private file system: one folder for each address.
//
// `manifest.json` describes a whole file and says where it is; it is written last. `part.json` describes one that is on
// its way, beside the whole one. Whoever writes or removes holds the folder's Web Lock alone, whoever reads shares it, so
// tabs do not disturb each other.

import { EngineError, FULL, aborted } from "./errors.js";

const ROOT = "chaski-models";

/** Runs what a browser or a window without a private file system refuses. */
async function available(f) {
  try {
    return await f();
  } catch (error) {
    if (["QuotaExceededError", "NoModificationAllowedError"].includes(error.name)) throw error;
    const hint = globalThis.isSecureContext === false ? "serve the page over https" : 'private windows often have no storage: use cache: "none" there';
    throw new EngineError("storage_unavailable", `this browser offers no private file system here: ${error.message}`, hint);
  }
}

/** The folder of all models. */
const root = () => available(async () => (await navigator.storage.getDirectory()).getDirectoryHandle(ROOT, { create: true }));

/** The folder's name for an address. */
async function keyOf(url) {
  const hash = await available(() => {
    if (!crypto.subtle || !navigator.locks) throw new Error("there are no hashes or locks");
    return crypto.subtle.digest("SHA-256", new TextEncoder().encode(url));
  });
  return [...new Uint8Array(hash).slice(0, 16)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/**
 * Runs `f` while the address's files are locked. `waiting` is called if somebody else has them.
 * @param {string} url @param {"exclusive" | "shared"} mode
 * @param {{ signal?: AbortSignal, waiting?: () => void }} options
 */
export async function locked(url, mode, { signal, waiting = () => {} }, f) {
  const name = `${ROOT}/${await keyOf(url)}`;
  const free = await navigator.locks.request(name, { mode, ifAvailable: true }, async (lock) => lock && { value: await f() });
  if (free) return free.value;
  waiting();
  try {
    return await navigator.locks.request(name, signal ? { mode, signal } : { mode }, f);
  } catch (error) {
    throw signal?.aborted ? aborted() : error;
  }
}

/** A shared lock that is held until the returned function is called. */
export function hold(url, options = {}) {
  return new Promise((resolve, reject) => {
    locked(url, "shared", options, () => new Promise((release) => resolve(release))).catch(reject);
  });
}

/** The folder of an address; null if there is none and none is made. */
export async function entry(url, { create = false } = {}) {
  const key = await keyOf(url);
  try {
    return new Entry(await (await root()).getDirectoryHandle(key, { create }));
  } catch (error) {
    if (error.name === "NotFoundError") return null;
    throw error;
  }
}

/** Where data are: what is new is written beside what is whole. */
const SLOTS = ["data", "data-2"];

class Entry {
  constructor(folder) {
    this.folder = folder;
  }

  /** State of an unfinished download; null if there is none. */
  part() {
    return readJson(this.folder, "part.json");
  }

  /** Only in a worker, as everything that writes. */
  writePart(part) {
    return writeJson(this.folder, "part.json", part);
  }

  /** Forgets a download, so that nobody goes on with it. */
  async dropPart() {
    await this.#drop("part.json");
  }

  /** The whole file with its manifest; else null. */
  async complete() {
    const manifest = await readJson(this.folder, "manifest.json");
    if (!manifest?.complete) return null;
    const file = await this.file(manifest);
    return file && file.size === manifest.size ? { manifest, file } : null;
  }

  /** The data as a File, if there are any. */
  async file({ data = SLOTS[0] }) {
    try {
      return await (await this.folder.getFileHandle(data)).getFile();
    } catch (error) {
      if (error.name === "NotFoundError") return null;
      throw error;
    }
  }

  /** Where a file can be written beside the whole one; under the exclusive lock. */
  async writer() {
    const taken = (await this.complete())?.manifest.data ?? null;
    const data = SLOTS.find((slot) => slot !== taken);
    const file = await this.folder.getFileHandle(data, { create: true });
    // WebKitGTK has files that nobody can write so.
    return { data, handle: await available(() => file.createSyncAccessHandle()) };
  }

  /** Makes the written data the current file. */
  async replace(manifest) {
    await writeJson(this.folder, "manifest.json", manifest);
    await this.dropPart();
    for (const slot of SLOTS) if (slot !== manifest.data) await this.#drop(slot);
  }

  /** Forgets what is not whole. */
  async clear(data) {
    await this.dropPart();
    await this.#drop(data);
  }

  /** The file is not stored any more; its bytes go unless another tab has them open. */
  async forget({ data = SLOTS[0] }) {
    await this.#drop("manifest.json");
    await this.#drop(data).catch(() => {});
  }

  async #drop(name) {
    await this.folder.removeEntry(name).catch((error) => {
      if (error.name !== "NotFoundError") throw error;
    });
  }

  /** Bytes of all that is there. */
  async bytes() {
    let sum = 0;
    for (const data of SLOTS) sum += (await this.file({ data }))?.size ?? 0;
    return sum;
  }

  /** The data for reading in a worker, without copies; null where another tab has them open and tabs cannot share. */
  async syncReader({ data = SLOTS[0] }) {
    const handle = await this.folder.getFileHandle(data);
    if (!handle.createSyncAccessHandle) return null;
    try {
      // Browsers that do not know the mode open it for one tab alone; the next one then reads the File.
      return await handle.createSyncAccessHandle({ mode: "read-only" });
    } catch (error) {
      if (error.name === "NoModificationAllowedError" || error.name === "InvalidStateError") return null;
      throw error;
    }
  }
}

/** Null if there is none, or one that a crash cut off: then what it describes is not trusted either. */
async function readJson(folder, name) {
  try {
    return JSON.parse(await (await (await folder.getFileHandle(name)).getFile()).text());
  } catch {
    return null;
  }
}

async function writeJson(folder, name, value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const handle = await (await folder.getFileHandle(name, { create: true })).createSyncAccessHandle();
  try {
    // In this order a full disk leaves what was there.
    writeAll(handle, bytes, 0);
    handle.truncate(bytes.length);
    handle.flush();
  } finally {
    handle.close();
  }
}

/** A small value that was kept before under a kind and a key; null if none was, or nothing can be stored here. */
export async function kept(kind, key) {
  const folder = await root().catch(() => null);
  return folder && readJson(folder, `${kind}-${await keyOf(key)}.json`);
}

/** Keeps a small value. It is of use without, so nothing fails for it. */
export async function keep(kind, key, value) {
  try {
    await writeJson(await root(), `${kind}-${await keyOf(key)}.json`, value);
  } catch {
    // On the page's own thread, in a private window, or while another tab does the same.
  }
}

/** Writes all of it, or says that the disk is full: `end` is where what is to be written ends, this piece or the file. */
export function writeAll(handle, bytes, at, end = at + bytes.length) {
  let done = 0;
  while (done < bytes.length) {
    let n = 0;
    try {
      n = handle.write(bytes.subarray(done), { at: at + done });
    } catch (error) {
      throw error.name === "QuotaExceededError" ? full(end - at - done, null) : error;
    }
    if (n === 0) throw full(end - at - done, null);
    done += n;
  }
}

/** @param {number} needed bytes @param {number | null} available bytes */
export function full(needed, available) {
  const room = available === null ? "" : `, but ${available} bytes are available`;
  return new EngineError("quota_exceeded", `storing the model needs ${needed} more bytes${room}`, FULL, {
    needed,
    available,
  });
}

/** Every stored file. */
export async function list() {
  const found = [];
  for await (const [, folder] of (await root()).entries()) {
    if (folder.kind !== "directory") continue;
    const item = new Entry(folder);
    const manifest = (await item.complete())?.manifest ?? (await item.part());
    if (!manifest) continue;
    const { url, name, size, sha256 = null, complete = false, stored = null } = manifest;
    found.push({ url, name, size, sha256, complete, bytes: await item.bytes(), stored });
  }
  return found;
}

/** Milliseconds that a removal waits for whoever is just ending, as aborted downloads are. */
const ENDING_MS = 1000;

/** Removes the file of an address; false if there was none. Fails while an engine or a download uses it. */
export async function remove(url) {
  const key = await keyOf(url);
  const signal = AbortSignal.timeout(ENDING_MS);
  const alone = async () => {
    for (;;) {
      try {
        await (await root()).removeEntry(key, { recursive: true });
        return true;
      } catch (error) {
        if (error.name === "NotFoundError") return false;
        // Firefox gives the lock of a worker that ended back before its files.
        if (error.name !== "NoModificationAllowedError" || signal.aborted) throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  try {
    return await navigator.locks.request(`${ROOT}/${key}`, { signal }, alone);
  } catch (error) {
    throw /^(Timeout|Abort|NoModificationAllowed)Error$/.test(error.name) ? new EngineError("in_use", `${url} is in use`, "close the engines that use it first") : error;
  }
}

/** Bytes of all models, and what the browser says of the origin's storage. */
export async function usage() {
  const models = (await list()).reduce((sum, m) => sum + m.bytes, 0);
  const { usage = null, quota = null } = (await navigator.storage.estimate?.()) ?? {};
  const persisted = (await navigator.storage.persisted?.()) ?? false;
  return { models, usage, quota, persisted };
}

/** Asks the browser not to clear the origin's storage when space is short. */
export async function persist() {
  return (await navigator.storage?.persist?.()) ?? false;
}
