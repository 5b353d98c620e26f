// From the network to the store, by pieces: resumed after a cut, checked by size and sha256.

import { EngineError, aborted, check } from "./errors.js";
import { entry, full, locked, writeAll } from "./store.js";

/** Bytes between two flushes: what a crash can cost. */
const FLUSH = 16 << 20;
/** Bytes that are hashed at once: they are copied to the hash's memory. */
const HASHED = 1 << 20;
/** Attempts without a single new byte before it gives up. */
const ATTEMPTS = 4;

/**
 * Makes sure that the file is stored whole.
 * @param {{ url: string, name: string, size?: number, sha256?: string, headers?: Record<string, string> }} file
 * @param {{ newHash: () => { update(bytes: Uint8Array): void, hex(): string }, signal?: AbortSignal, offline?: boolean,
 *   progress: (event: { stage: "download" | "verify", loaded: number, total: number | null, fromCache?: boolean }) => void,
 *   retryMs?: number }} tools
 */
export async function store(file, tools) {
  const found = await entry(file.url);
  const stored = await found.complete();
  if (stored && fits(stored.manifest, file)) {
    tools.progress({ stage: "download", loaded: stored.manifest.size, total: stored.manifest.size, fromCache: true });
    return found;
  }
  if (tools.offline) {
    throw new EngineError("not_stored", `${file.name} is not stored`, "leave out offline to download it");
  }
  try {
    await locked(file.url, "exclusive", tools.signal, () => fill(found, file, tools));
  } catch (error) {
    throw error.name === "AbortError" ? aborted() : error;
  }
  return found;
}

/** Whether what is stored is what the source offers, as far as it says. */
function fits(manifest, file) {
  return (file.size ?? manifest.size) === manifest.size && (file.sha256 ?? manifest.sha256) === manifest.sha256;
}

async function fill(found, file, tools) {
  // Another tab may have been faster.
  const stored = await found.complete();
  if (stored && fits(stored.manifest, file)) return;
  const handle = await found.writer();
  try {
    const state = await resume(found, file, handle, tools);
    await transfer(found, file, handle, state, tools);
    finish(file, handle, state);
    handle.flush();
    const { etag, size } = state;
    const manifest = { url: file.url, name: file.name, size, etag, sha256: state.hash.hex(), complete: true };
    await found.writeManifest({ ...manifest, stored: new Date().toISOString() });
  } finally {
    handle.close();
  }
}

/** Where an earlier attempt ended. What it wrote is hashed again: a hash's state cannot be kept. */
async function resume(found, file, handle, tools) {
  const manifest = await found.manifest();
  const state = { bytes: 0, size: file.size ?? null, etag: null, hash: tools.newHash() };
  const known = manifest && !manifest.complete && manifest.etag && (file.size ?? manifest.size) === manifest.size;
  if (!known) {
    handle.truncate(0);
    return state;
  }
  const bytes = Math.min(manifest.bytes, handle.getSize());
  const buffer = new Uint8Array(HASHED);
  while (state.bytes < bytes) {
    check(tools.signal);
    const n = handle.read(buffer.subarray(0, Math.min(HASHED, bytes - state.bytes)), { at: state.bytes });
    if (n === 0) break;
    state.hash.update(buffer.subarray(0, n));
    state.bytes += n;
    tools.progress({ stage: "verify", loaded: state.bytes, total: bytes });
  }
  state.etag = manifest.etag;
  state.size = manifest.size;
  return state;
}

/** Reads the network until all is there; goes on where the connection was cut. */
async function transfer(found, file, handle, state, tools) {
  let failures = 0;
  while (state.size === null || state.bytes < state.size) {
    const before = state.bytes;
    try {
      await attempt(found, file, handle, state, tools);
    } catch (error) {
      await note(found, file, handle, state);
      if (tools.signal?.aborted) throw aborted();
      if (!(error instanceof EngineError) || error.code !== "network") throw error;
      failures = state.bytes > before ? 1 : failures + 1;
      if (failures >= ATTEMPTS) throw error;
      await pause((tools.retryMs ?? 500) * 2 ** (failures - 1), tools.signal);
    }
  }
}

/** Keeps what came so far, if it can be continued: only with a validator is it known to be the same file. */
async function note(found, file, handle, state) {
  handle.flush();
  if (!state.etag || state.size === null) return;
  const { bytes, size, etag } = state;
  await found.writeManifest({ url: file.url, name: file.name, size, etag, bytes, complete: false });
}

async function attempt(found, file, handle, state, tools) {
  const response = await request(file, state, tools.signal);
  await begin(response, file, handle, state, tools);
  let flushed = state.bytes;
  for (const reader = response.body.getReader(); ; ) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      throw new EngineError("network", `${file.name}: the connection was lost: ${error.message}`, RETRY, at(state));
    }
    if (part.done) break;
    const bytes = part.value;
    if (state.size !== null && state.bytes + bytes.length > state.size) {
      await reader.cancel();
      throw wrongSize(file, state.bytes + bytes.length, state.size);
    }
    writeAll(handle, bytes, state.bytes);
    for (let i = 0; i < bytes.length; i += HASHED) state.hash.update(bytes.subarray(i, i + HASHED));
    state.bytes += bytes.length;
    tools.progress({ stage: "download", loaded: state.bytes, total: state.size });
    if (state.bytes - flushed >= FLUSH) {
      await note(found, file, handle, state);
      flushed = state.bytes;
    }
  }
  if (state.size === null) state.size = state.bytes;
  if (state.bytes < state.size) {
    throw new EngineError("network", `${file.name}: the connection ended early`, RETRY, at(state));
  }
}

const RETRY = "call again: what has been stored is not loaded twice";
const at = (state) => ({ loaded: state.bytes, total: state.size });

async function request(file, state, signal) {
  const headers = { ...file.headers };
  if (state.bytes > 0) {
    headers.range = `bytes=${state.bytes}-`;
    headers["if-range"] = state.etag;
  }
  try {
    return await fetch(file.url, { headers, signal, referrerPolicy: "no-referrer", cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw aborted();
    throw await unreachable(file.url, error);
  }
}

/** Why a request got no answer at all: browsers do not say, so it is tried without reading the answer. */
export async function unreachable(url, error) {
  const host = new URL(url).host;
  if (navigator.onLine !== false) {
    const answers = await fetch(url, { method: "HEAD", mode: "no-cors" }).then(() => true, () => false);
    if (answers) {
      const hint = "the server must send Access-Control-Allow-Origin (and allow the header Range), or serve the file from the page's own origin";
      return new EngineError("cors", `${host} does not allow this page to read the file`, hint, { url });
    }
  }
  return new EngineError("network", `could not reach ${host}: ${error.message}`, "check the connection", { url });
}

/** Makes sense of an answer's status and head. */
async function begin(response, file, handle, state, tools) {
  const { status } = response;
  if (status === 200 || status === 416) {
    // The whole file again: it has changed, or the server knows no ranges.
    if (status === 416 || state.bytes > 0) restart(handle, state, tools);
    if (status === 416) throw new EngineError("network", `${file.name}: the file has changed`, RETRY);
    const length = Number(response.headers.get("content-length"));
    // With a content coding the length is that of the coded bytes.
    const size = length > 0 && !response.headers.get("content-encoding") ? length : null;
    if (file.size !== undefined && size !== null && size !== file.size) throw wrongSize(file, size, file.size);
    state.size = file.size ?? size;
    state.etag = response.headers.get("etag") ?? response.headers.get("last-modified");
    // A weak validator cannot be used with If-Range.
    if (state.etag?.startsWith("W/")) state.etag = null;
    await room(state);
    return;
  }
  if (status === 206) {
    const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? `bytes ${state.bytes}-0/*`);
    if (!range || Number(range[1]) !== state.bytes || (range[2] !== "*" && Number(range[2]) !== state.size)) {
      restart(handle, state, tools);
      throw new EngineError("network", `${file.name}: the server sent another range than it was asked for`, RETRY);
    }
    return;
  }
  const detail = { status, url: file.url };
  if (status === 401 || status === 403 || status === 404) {
    const hint = status === 404 ? "check the address" : "the file needs a permission: hfToken or headers";
    throw new EngineError("not_found", `${file.url}: ${status}`, hint, detail);
  }
  const passing = status === 408 || status === 429 || status >= 500;
  throw new EngineError(passing ? "network" : "download_failed", `${file.url}: ${status}`, "try again later", detail);
}

function restart(handle, state, tools) {
  handle.truncate(0);
  Object.assign(state, { bytes: 0, etag: null, hash: tools.newHash() });
}

/** Fails before the first byte if the origin has no room for all of them. */
async function room(state) {
  if (state.size === null || !navigator.storage.estimate) return;
  const { quota = Infinity, usage = 0 } = await navigator.storage.estimate();
  if (state.size - state.bytes > quota - usage) throw full(state.size - state.bytes, Math.max(0, quota - usage));
}

const DAMAGED = "the file on the server is damaged or has changed; nothing of it was kept";

function wrongSize(file, found, expected) {
  return new EngineError("integrity", `${file.name}: expected ${expected} bytes, found ${found}`, DAMAGED, {
    found,
    expected,
  });
}

/** What does not have the right hash is not kept. */
function finish(file, handle, state) {
  const found = state.hash.hex();
  if (file.sha256 && found !== file.sha256.toLowerCase()) {
    handle.truncate(0);
    throw new EngineError("integrity", `${file.name}: expected sha256 ${file.sha256}, found ${found}`, DAMAGED, {
      found,
      expected: file.sha256,
    });
  }
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(aborted());
    });
  });
}
