// Packed experts that stay in a page's private file system, each in a file named by its digest.

import { sha256 } from "./proof.js";

const FOLDER = "chaski-swarm";
/** Most bytes that wait to be written; experts beyond them are not kept. */
const MOST_WAITING = 64 << 20;

/** Removes all that pages of this origin keep. Fails where another tab writes at this moment. */
export async function forget() {
  // Private windows of some browsers have no such files.
  const root = await navigator.storage?.getDirectory().catch(() => null);
  await root?.removeEntry(FOLDER, { recursive: true }).catch((error) => {
    if (error.name !== "NotFoundError") throw error;
  });
}

export class Store {
  #folder;
  #most;
  /** Bytes of each file by its digest, the one that was written first in front. */
  #files = new Map();
  #used = 0;
  #waiting = 0;
  #written = Promise.resolve();
  #isClosed = false;

  constructor(folder, most) {
    [this.#folder, this.#most] = [folder, most];
  }

  /**
   * The store of this origin, with room for so many bytes; `null` where browsers have none, as in private windows.
   *
   * @param {number} most @returns {Promise<Store | null>}
   */
  static async open(most) {
    try {
      const root = await navigator.storage.getDirectory();
      const store = new Store(await root.getDirectoryHandle(FOLDER, { create: true }), most);
      await store.#look();
      return store;
    } catch {
      return null;
    }
  }

  /** Bytes that are kept. */
  get used() {
    return this.#used;
  }

  async #look() {
    const found = [];
    for await (const [name, handle] of this.#folder.entries()) {
      if (handle.kind !== "file" || !/^[0-9a-f]{64}$/.test(name)) continue;
      // Another tab may have removed it.
      const file = await handle.getFile().catch(() => null);
      if (file) found.push({ name, size: file.size, lastModified: file.lastModified });
    }
    found.sort((a, b) => a.lastModified - b.lastModified);
    for (const { name, size } of found) this.#add(name, size);
    await this.#shrink(0);
  }

  #add(digest, size) {
    this.#used += size - (this.#files.get(digest) ?? 0);
    this.#files.delete(digest);
    this.#files.set(digest, size);
  }

  async #remove(digest) {
    this.#used -= this.#files.get(digest) ?? 0;
    this.#files.delete(digest);
    // Another tab may have removed it.
    await this.#folder.removeEntry(digest).catch(() => {});
  }

  /** Makes room for so many bytes. */
  async #shrink(length) {
    for (const digest of this.#files.keys()) {
      if (this.#used + length <= this.#most) return;
      await this.#remove(digest);
    }
  }

  /** The bytes with this digest and length, compared with it. @returns {Promise<Uint8Array | null>} */
  async get(digest, length) {
    if (!this.#files.has(digest)) return null;
    try {
      const handle = await this.#folder.getFileHandle(digest);
      const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
      if (bytes.length === length && (await sha256(bytes)) === digest) return bytes;
    } catch {
      // Another tab may have removed it.
    }
    await this.#remove(digest);
    return null;
  }

  /** Keeps bytes, in the background; what has no room is not kept. */
  put(digest, bytes) {
    if (this.#isClosed || bytes.length > this.#most || this.#waiting + bytes.length > MOST_WAITING || this.#files.has(digest)) return;
    this.#waiting += bytes.length;
    this.#written = this.#written.then(() => this.#write(digest, bytes)).finally(() => (this.#waiting -= bytes.length));
  }

  /** Writes nothing more; ends when nothing is being written. */
  close() {
    this.#isClosed = true;
    return this.#written;
  }

  async #write(digest, bytes) {
    if (this.#isClosed) return;
    let file;
    try {
      await this.#shrink(bytes.length);
      const handle = await this.#folder.getFileHandle(digest, { create: true });
      file = await handle.createWritable();
      await file.write(bytes);
      // Until here others see no part of it.
      await file.close();
      this.#add(digest, bytes.length);
    } catch {
      // The disk has no more room, or the person has cleared it: what is there stays in use.
      this.#most = Math.min(this.#most, this.#used);
      await file?.abort().catch(() => {});
      await this.#folder.removeEntry(digest).catch(() => {});
    }
  }
}
