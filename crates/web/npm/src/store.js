// Model files in the origin's private file system: one folder for each address, with `data` and `manifest.json`.
//
// A file counts only when its manifest says `complete`. Whoever writes or removes holds the folder's Web Lock alone,
// whoever reads shares it, so tabs do not disturb each other.

import { EngineError, FULL } from "./errors.js";

const ROOT = "chaski-models";

/** The folder of all models. */
async function root() {
  const storage = globalThis.navigator?.storage;
  if (!storage?.getDirectory) {
    const hint = 'use cache: "none", or a browser and window with the origin private file system';
    throw new EngineError("storage_unavailable", "this browser offers no private file system", hint);
  }
  try {
    const top = await storage.getDirectory();
    return await top.getDirectoryHandle(ROOT, { create: true });
  } catch (error) {
    const hint = 'private windows often have no storage: use cache: "none" there';
    throw new EngineError("storage_unavailable", `the private file system refused: ${error.message}`, hint);
  }
}

/** The folder's name for an address. */
async function keyOf(url) {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(url));
  return [...new Uint8Array(hash).slice(0, 16)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/**
 * Runs `f` while the address's files are locked.
 * @param {string} url @param {"exclusive" | "shared"} mode @param {AbortSignal | undefined} signal
 */
export async function locked(url, mode, signal, f) {
  const name = `${ROOT}/${await keyOf(url)}`;
  return navigator.locks.request(name, signal ? { mode, signal } : { mode }, f);
}

/** A shared lock that is held until the returned function is called. */
export function hold(url, signal) {
  return new Promise((resolve, reject) => {
    locked(url, "shared", signal, () => new Promise((release) => resolve(release))).catch(reject);
  });
}

/** The stored file of an address, whether or not it is there yet. */
export async function entry(url) {
  const key = await keyOf(url);
  return new Entry(url, await (await root()).getDirectoryHandle(key, { create: true }));
}

class Entry {
  constructor(url, folder) {
    this.url = url;
    this.folder = folder;
  }

  /** What is known of the file; null before the first byte. */
  async manifest() {
    try {
      const file = await (await this.folder.getFileHandle("manifest.json")).getFile();
      return JSON.parse(await file.text());
    } catch {
      // None, or cut off by a crash: then the data are not trusted either.
      return null;
    }
  }

  /** Only in a worker. */
  async writeManifest(manifest) {
    const bytes = new TextEncoder().encode(JSON.stringify(manifest));
    const handle = await (await this.folder.getFileHandle("manifest.json", { create: true })).createSyncAccessHandle();
    try {
      handle.truncate(0);
      writeAll(handle, bytes, 0);
      handle.flush();
    } finally {
      handle.close();
    }
  }

  /** The whole file if it is complete and has the size it should; else null. */
  async complete() {
    const manifest = await this.manifest();
    if (!manifest?.complete) return null;
    const file = await this.file();
    return file && file.size === manifest.size ? { manifest, file } : null;
  }

  /** The data as a File, if there are any. */
  async file() {
    try {
      return await (await this.folder.getFileHandle("data")).getFile();
    } catch (error) {
      if (error.name === "NotFoundError") return null;
      throw error;
    }
  }

  /** The data for writing; only in a worker, under the exclusive lock. */
  async writer() {
    return (await this.folder.getFileHandle("data", { create: true })).createSyncAccessHandle();
  }

  /** The data for reading in a worker, without copies; null where another tab has them open and tabs cannot share. */
  async syncReader() {
    const handle = await this.folder.getFileHandle("data");
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

/** Writes all of it, or says that the disk is full. */
export function writeAll(handle, bytes, at) {
  let done = 0;
  while (done < bytes.length) {
    let n = 0;
    try {
      n = handle.write(bytes.subarray(done), { at: at + done });
    } catch (error) {
      throw error.name === "QuotaExceededError" ? full(bytes.length - done, null) : error;
    }
    if (n === 0) throw full(bytes.length - done, null);
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
    const item = new Entry("", folder);
    const [manifest, file] = [await item.manifest(), await item.file()];
    if (!manifest) continue;
    const { url, name, size, sha256 = null, complete = false, stored = null } = manifest;
    found.push({ url, name, size, sha256, complete: complete && file?.size === size, bytes: file?.size ?? 0, stored });
  }
  return found;
}

/** Removes the file of an address; false if there was none. Fails while an engine or a download uses it. */
export async function remove(url) {
  const key = await keyOf(url);
  return navigator.locks.request(`${ROOT}/${key}`, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new EngineError("in_use", `${url} is in use`, "close the engines that use it first");
    try {
      await (await root()).removeEntry(key, { recursive: true });
      return true;
    } catch (error) {
      if (error.name === "NotFoundError") return false;
      throw error;
    }
  });
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
  return (await navigator.storage.persist?.()) ?? false;
}
