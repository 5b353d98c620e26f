// From the network to the store, by pieces: resumed after a cut, checked by size and sha256.

import { EngineError, aborted, badRequest, check } from "./errors.js";
import { isOwn, refusal, send } from "./network.js";
import { entry, full, locked, writeAll } from "./store.js";

/** Bytes between two flushes: what a crash can cost. */
const FLUSH = 16 << 20;
/** Bytes that are hashed at once: they are copied to the hash's memory. */
const HASHED = 1 << 20;
/** Attempts that get no further than one before, until it gives up. */
const ATTEMPTS = 4;
/** The longest time that a server may ask to wait, in milliseconds. */
const PATIENCE = 60_000;
/** How every GGUF file begins; those of a folder begin in any way. */
const MAGIC = new TextEncoder().encode("GGUF");

/**
 * Makes sure that the file is stored whole.
 * @param {{ url: string, name: string, size?: number, sha256?: string, headers?: Record<string, string>, inFolder?: boolean }} source
 * @param {{ newHash: () => { update(bytes: Uint8Array): void, hex(): string }, signal?: AbortSignal, offline?: boolean,
 *   progress: (event: { stage: "wait" | "download" | "verify", loaded: number, total: number | null, fromCache?: boolean }) => void,
 *   retryMs?: number }} tools
 */
export async function store(source, tools) {
  const file = { ...source, sha256: source.sha256 && String(source.sha256).toLowerCase() };
  if (file.sha256 !== undefined && !/^[0-9a-f]{64}$/.test(file.sha256)) {
    throw badRequest(`${file.name}: expected a sha256 of 64 hexadecimal digits, found ${source.sha256}`);
  }
  const there = await entry(file.url);
  const stored = await there?.complete();
  if (stored && fits(stored.manifest, file)) {
    tools.progress({ stage: "download", loaded: stored.manifest.size, total: stored.manifest.size, fromCache: true });
    return there;
  }
  if (tools.offline) {
    throw new EngineError("not_stored", `${file.name} is not stored`, "leave out offline to download it");
  }
  const waiting = () => tools.progress({ stage: "wait", loaded: 0, total: null });
  return locked(file.url, "exclusive", { signal: tools.signal, waiting }, async () => {
    const found = await entry(file.url, { create: true });
    await fill(found, file, tools);
    return found;
  });
}

/** True if the stored file matches the source, as far as the source gives details. */
function fits(manifest, file) {
  return (file.size ?? manifest.size) === manifest.size && (file.sha256 ?? manifest.sha256) === manifest.sha256;
}

async function fill(found, file, tools) {
  // Another tab may have been faster.
  const stored = await found.complete();
  if (stored && fits(stored.manifest, file)) return;
  const { data, handle } = await found.writer();
  const { url, name } = file;
  let manifest;
  try {
    const state = await resume(found, file, data, handle, tools);
    await transfer(found, file, handle, state, tools);
    compare(file, state);
    handle.flush();
    const { size, validator, sure } = state;
    const stored = new Date().toISOString();
    manifest = { url, name, data, size, sure, validator, sha256: state.hash.hex(), complete: true, stored };
  } catch (error) {
    handle.close();
    // Data known to be wrong are not kept.
    if (error.code === "integrity" || error.code === "bad_file") await found.clear(data);
    throw error;
  }
  handle.close();
  await found.replace(manifest);
}

/** Where an earlier attempt ended. What it wrote is hashed again: a hash's state cannot be kept. */
async function resume(found, file, data, handle, tools) {
  const part = await found.part();
  const state = { data, bytes: 0, size: file.size ?? null, sure: true, validator: null, own: false, refused: false, hash: tools.newHash() };
  const size = part?.size ?? file.size ?? null;
  if (part?.data !== data || !continues(part, file) || (file.size ?? size) !== size) {
    await found.dropPart();
    handle.truncate(0);
    return state;
  }
  const bytes = Math.min(part.bytes, handle.getSize());
  const buffer = new Uint8Array(HASHED);
  while (state.bytes < bytes) {
    check(tools.signal);
    const n = handle.read(buffer.subarray(0, Math.min(HASHED, bytes - state.bytes)), { at: state.bytes });
    if (n === 0) break;
    state.hash.update(buffer.subarray(0, n));
    state.bytes += n;
    tools.progress({ stage: "verify", loaded: state.bytes, total: bytes });
  }
  return Object.assign(state, { size, validator: part.validator, own: part.own });
}

/** True if the remainder can be requested: it must be of the same file, by its validator or finally by its hash. */
const continues = (state, file) => Boolean(state.validator ?? file.sha256);

/** Reads the network until all is there; goes on where the connection was cut. */
async function transfer(found, file, handle, state, tools) {
  let [failures, best] = [0, state.bytes];
  while (state.size === null || state.bytes < state.size) {
    try {
      await attempt(found, file, handle, state, tools);
    } catch (error) {
      // If there is no room for a note either, the first error is the one to tell.
      await note(found, file, handle, state).catch(() => {});
      if (tools.signal?.aborted) throw aborted();
      const passing = error.code === "network" || (error.code === "cors" && (await again(found, file, handle, state, tools)));
      if (!passing) throw error;
      failures = state.bytes > best ? 1 : failures + 1;
      best = Math.max(best, state.bytes);
      if (failures >= ATTEMPTS) throw error;
      if (!continues(state, file)) await restart(found, file, handle, state, tools);
      await pause(delay(error, (tools.retryMs ?? 500) * 2 ** (failures - 1)), tools.signal);
    }
  }
}

/** Milliseconds until another try: as long as the server asks for, if somebody would wait for that. */
export function delay(error, ms) {
  const asked = error.detail?.retryAfterMs ?? 0;
  if (asked > PATIENCE) throw error;
  return Math.max(ms, asked);
}

/**
 * True if a failed request is worth another try. A dropped connection looks like a refusal;
 * and a server may refuse ranges, but not the whole file.
 */
async function again(found, file, handle, state, tools) {
  const first = !state.refused;
  state.refused = true;
  if (first) return true;
  if (state.bytes === 0) return false;
  await restart(found, file, handle, state, tools);
  return true;
}

/** Keeps what came so far, if it can be continued. */
async function note(found, file, handle, state) {
  handle.flush();
  if (state.bytes === 0 || !continues(state, file)) return;
  const { data, bytes, size, validator, own } = state;
  await found.writePart({ url: file.url, name: file.name, data, size, validator, own, bytes });
}

async function attempt(found, file, handle, state, tools) {
  const response = await request(file, state, tools.signal);
  state.refused = false;
  try {
    await begin(response, found, file, handle, state, tools);
    await receive(response, found, file, handle, state, tools);
  } catch (error) {
    if (!response.body?.locked) response.body?.cancel().catch(() => {});
    throw error;
  }
}

/** Writes what comes, at the end of what is there. */
async function receive(response, found, file, handle, state, tools) {
  let flushed = state.bytes;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const part = await reader.read().catch((error) => {
        throw new EngineError("network", `${file.name}: the connection was lost: ${error.message}`, RETRY, at(state));
      });
      if (part.done) break;
      const bytes = part.value;
      if (!begins(file, bytes, state.bytes)) throw noModel(file, response);
      const end = state.bytes + bytes.length;
      if (state.size !== null && end > state.size) throw wrongSize(file, end, state.size);
      writeAll(handle, bytes, state.bytes, state.size ?? undefined);
      for (let i = 0; i < bytes.length; i += HASHED) state.hash.update(bytes.subarray(i, i + HASHED));
      state.bytes = end;
      tools.progress({ stage: "download", loaded: end, total: state.size });
      // An abort leaves no time for it.
      if (end - flushed >= Math.min(FLUSH, Math.max(HASHED, flushed))) {
        await note(found, file, handle, state);
        flushed = end;
      }
    }
  } finally {
    // It may be at its end or lost.
    reader.cancel().catch(() => {});
  }
  if (state.bytes < MAGIC.length && !file.inFolder) throw noModel(file, response);
  if (state.size === null) Object.assign(state, { size: state.bytes, sure: file.sha256 !== undefined });
  if (state.bytes < state.size) {
    throw new EngineError("network", `${file.name}: the connection ended early`, RETRY, at(state));
  }
}

/** True if bytes at this offset can belong to the file. */
const begins = (file, bytes, at) => file.inFolder || MAGIC.subarray(at, at + bytes.length).every((byte, i) => byte === bytes[i]);

function noModel(file, response) {
  const type = response.headers.get("content-type") ?? "something else";
  return new EngineError("bad_file", `${file.url}: expected a GGUF file, found ${type}`, "check the address", { url: file.url });
}

const RETRY = "call again: what has been stored is not loaded twice";
const at = (state) => ({ loaded: state.bytes, total: state.size });

function request(file, state, signal) {
  const headers = { ...file.headers };
  if (state.bytes > 0) {
    headers.range = `bytes=${state.bytes}-`;
    // Another origin would have to allow this header beforehand, which few do: there the answer is compared.
    if (state.validator && state.own) headers["if-range"] = state.validator;
  }
  return send(file.url, headers, { signal, cache: "no-store" });
}

/** Identifies this version of the file; weak tags do not. */
function validatorOf({ headers }) {
  const etag = headers.get("etag");
  return (etag?.startsWith('"') ? etag : headers.get("last-modified")) ?? null;
}

/** The length of an answer's body; null if it is not said. With a content coding it is that of the coded bytes. */
export function lengthOf({ headers }) {
  const length = Number(headers.get("content-length"));
  return length > 0 && !headers.get("content-encoding") ? length : null;
}

/** Makes sense of an answer's status and head. */
async function begin(response, found, file, handle, state, tools) {
  const { status } = response;
  if (status === 206) return rest(response, found, file, handle, state, tools);
  if (status === 200) {
    // The whole file again: it has changed, or the server knows no ranges.
    if (state.bytes > 0) await restart(found, file, handle, state, tools);
    const size = lengthOf(response);
    if (file.size !== undefined && size !== null && size !== file.size) throw wrongSize(file, size, file.size);
    state.size = file.size ?? size;
    state.validator = validatorOf(response);
    // The page's own origin may have passed the request on to another one.
    state.own = isOwn(file.url) && isOwn(response.url);
    return room(state);
  }
  if (status === 416) {
    await restart(found, file, handle, state, tools);
    throw new EngineError("network", `${file.name}: the file has changed`, RETRY);
  }
  throw refusal(response, file.url);
}

/** An answer with a range: it must be the one that was asked for, of the same file. */
async function rest(response, found, file, handle, state, tools) {
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "");
  // Other origins must expose the header; without it there is still the length of the rest.
  const length = lengthOf(response);
  const total = range ? Number(range[2]) || null : length && state.bytes + length;
  const here = !range || Number(range[1]) === state.bytes;
  const seen = response.headers.get(state.validator?.startsWith('"') ? "etag" : "last-modified");
  // The page's own origin has compared the validator itself; where a hash is known, it will tell.
  const same = !state.validator || seen === state.validator || (seen === null && (state.own || file.sha256 !== undefined));
  if (!here || !same || (total !== null && total !== (state.size ?? total))) {
    await restart(found, file, handle, state, tools);
    throw new EngineError("network", `${file.name}: the server sent a range of something else`, RETRY);
  }
  state.size ??= total;
}

/** Begins anew. */
async function restart(found, file, handle, state, tools) {
  // A note of what is not there any more would be believed after a crash.
  await found.dropPart();
  handle.truncate(0);
  Object.assign(state, { bytes: 0, size: file.size ?? null, validator: null, hash: tools.newHash() });
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

function compare(file, state) {
  const found = state.hash.hex();
  if ((file.sha256 ?? found) === found) return;
  throw new EngineError("integrity", `${file.name}: expected sha256 ${file.sha256}, found ${found}`, DAMAGED, {
    found,
    expected: file.sha256,
  });
}

export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(aborted());
    });
  });
}
