// How the engine reads a file piece by piece: `{ name, size, read(offset, length), close() }`.

import { EngineError, aborted, badRequest, check } from "./errors.js";
import { unreachable } from "./network.js";

/** Bytes that are fetched from a Blob or the network at once, and how many such pieces are kept. */
const BLOCK = 4 << 20;
const BLOCKS = 4;

/** Pieces of a file, the most recent ones kept: weights that are loaded together alternate between a few places. */
class Blocks {
  constructor(name, size, load) {
    this.name = name;
    this.size = size;
    this.load = load;
    this.kept = new Map();
  }

  async read(offset, length) {
    const out = new Uint8Array(length);
    for (let at = offset; at < offset + length; ) {
      const index = Math.floor(at / BLOCK);
      const bytes = await this.block(index);
      const from = at - index * BLOCK;
      const part = bytes.subarray(from, Math.min(bytes.length, from + offset + length - at));
      if (part.length === 0) throw new EngineError("read_failed", `${this.name}: the file ends at byte ${at}`);
      out.set(part, at - offset);
      at += part.length;
    }
    return out;
  }

  async block(index) {
    let bytes = this.kept.get(index);
    this.kept.delete(index);
    if (!bytes) {
      if (this.kept.size >= BLOCKS) this.kept.delete(this.kept.keys().next().value);
      bytes = await this.load(index * BLOCK, Math.min(BLOCK, this.size - index * BLOCK));
    }
    this.kept.set(index, bytes);
    return bytes;
  }

  close() {
    this.kept.clear();
  }
}

/** A File or Blob. */
export function blobFile(name, blob) {
  return new Blocks(name, blob.size, async (offset, length) => {
    try {
      return new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
    } catch (error) {
      const hint = "the file was moved, changed or removed since it was chosen; choose it again";
      throw new EngineError("read_failed", `${name}: ${error.message}`, hint);
    }
  });
}

/** A stored file: in a worker through a handle, elsewhere as a Blob. It is opened when it is read. */
export class StoredFile {
  constructor(name, manifest, entry) {
    Object.assign(this, { name, size: manifest.size, manifest, entry });
    this.handle = this.inner = this.buffer = null;
  }

  /** Bytes of the handle's own buffer, which the next call overwrites; or a promise of bytes. */
  read(offset, length) {
    if (this.handle) return this.readSync(offset, length);
    return this.open().then(() => (this.handle ? this.readSync(offset, length) : this.inner.read(offset, length)));
  }

  async open() {
    if (this.handle || this.inner) return;
    this.handle = await this.entry.syncReader(this.manifest);
    if (!this.handle) this.inner = blobFile(this.name, await this.entry.file(this.manifest));
  }

  readSync(offset, length) {
    if (!this.buffer || this.buffer.length < length) this.buffer = new Uint8Array(length);
    const out = this.buffer.subarray(0, length);
    const n = this.handle.read(out, { at: offset });
    if (n !== length) throw new EngineError("read_failed", `${this.name}: expected ${length} bytes at ${offset}, found ${n}`);
    return out;
  }

  close() {
    this.handle?.close();
    this.inner?.close();
    this.handle = this.inner = this.buffer = null;
  }
}

/** A file that stays on its server: every piece is a request. */
export async function remoteFile(file, signal) {
  const ranged = async (offset, length) => {
    check(signal);
    let response;
    try {
      const headers = { ...file.headers, range: `bytes=${offset}-${offset + length - 1}` };
      response = await fetch(file.url, { headers, signal, referrerPolicy: "no-referrer" });
    } catch (error) {
      if (signal?.aborted) throw aborted();
      throw await unreachable(file.url, error);
    }
    if (response.status === 206) return response;
    await response.body?.cancel();
    if (response.status === 200) {
      throw new EngineError("no_ranges", `${file.url}: the server sends the file only as a whole`, 'use cache: "opfs"');
    }
    throw new EngineError("not_found", `${file.url}: ${response.status}`, "check the address", { status: response.status });
  };
  let size = file.size;
  if (size === undefined) {
    const range = (await ranged(0, 1)).headers.get("content-range");
    size = Number(/\/(\d+)$/.exec(range ?? "")?.[1]);
    // Other origins must expose the header; the length is then asked for by itself.
    if (!size) size = Number((await fetch(file.url, { method: "HEAD", headers: file.headers, signal })).headers.get("content-length"));
    if (!size) throw badRequest(`${file.url}: the server does not say how long the file is`);
  }
  return new Blocks(file.name, size, async (offset, length) => new Uint8Array(await (await ranged(offset, length)).arrayBuffer()));
}
