// How the engine reads a file piece by piece: `{ name, size, read(offset, length), close() }`.

import { delay, lengthOf, pause } from "./download.js";
import { EngineError, check } from "./errors.js";
import { refusal, send } from "./network.js";

/** Bytes that are fetched from a Blob or the network at once, and how many such pieces are kept. */
const BLOCK = 4 << 20;
const BLOCKS = 4;
/** How often a piece is asked for that does not come. */
const TRIES = 3;

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

/** A file that stays on its server: every piece is a request. Where it has no ranges, so much is read from the beginning. */
export async function remoteFile(file, { signal, retryMs = 500, head = 0 }) {
  const { name, url } = file;
  const unfit = (what) => new EngineError("no_ranges", `${url}: the server ${what}`, 'store it: models.download, or cache: "opfs"');
  const ranged = async (offset, length) => {
    check(signal);
    const response = await send(url, { ...file.headers, range: `bytes=${offset}-${offset + length - 1}` }, { signal });
    if (response.status === 206 || (response.status === 200 && offset + length <= head)) return response;
    response.body?.cancel().catch(() => {});
    if (response.status !== 200) throw refusal(response, url);
    throw unfit("sends the file only as a whole");
  };
  const piece = async (offset, length) => {
    const { status, body } = await ranged(offset, length);
    const [out, reader] = [new Uint8Array(length), body.getReader()];
    try {
      for (let at = status === 206 ? 0 : -offset; at < length; ) {
        const { done, value } = await reader.read();
        if (done) throw new Error("it ended early");
        out.set(value.subarray(Math.max(0, -at), length - at), Math.max(0, at));
        at += value.length;
      }
      return out;
    } catch (error) {
      check(signal);
      throw new EngineError("network", `${name}: the connection was lost: ${error.message}`, "check the connection");
    } finally {
      reader.cancel().catch(() => {});
    }
  };
  const patiently = async (f, ...range) => {
    for (let tries = 1; ; tries++) {
      try {
        return await f(...range);
      } catch (error) {
        if (error.code !== "network" || tries === TRIES) throw error;
        await pause(delay(error, retryMs * tries), signal);
      }
    }
  };
  let { size } = file;
  if (size === undefined) {
    const { status, headers, body } = await patiently(ranged, 0, 1);
    body.cancel().catch(() => {});
    size = status === 206 ? Number(/\/(\d+)$/.exec(headers.get("content-range") ?? "")?.[1]) : lengthOf({ headers });
    if (!size) {
      // Other origins must expose the header; the length is then asked for by itself.
      const answer = await send(url, file.headers, { signal, method: "HEAD" }).catch(() => null);
      check(signal);
      size = answer?.ok && lengthOf(answer);
    }
    if (!size) throw unfit("does not say how long the file is");
  }
  return new Blocks(name, size, (offset, length) => patiently(piece, offset, length));
}
