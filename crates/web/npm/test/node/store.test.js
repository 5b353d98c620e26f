// Downloads into a store in memory, from servers that do what servers do.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { store } from "../../src/download.js";
import { entry, hold, list, remove } from "../../src/store.js";
import { Hash, browser, disk } from "./opfs.js";

const body = Buffer.alloc(300_000, 7);
body.write("GGUF");
const sha256 = createHash("sha256").update(body).digest("hex");
let [server, origin] = [];
/** The requests, and how the next ones are answered. */
const asked = [];
let answer = () => {};

before(async () => {
  server = createServer((request, response) => {
    const { range, "if-range": ifRange } = request.headers;
    asked.push({ method: request.method, range, ifRange });
    answer(request, response, Number(/bytes=(\d+)-/.exec(range ?? "")?.[1] ?? 0));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  browser({ origin });
  asked.length = 0;
});

/** Stores the file; what its manifest says then, or the error. */
async function load(file = {}, tools = {}) {
  const all = { newHash: () => new Hash(), progress() {}, retryMs: 1, ...tools };
  try {
    return (await (await store({ url: `${origin}/m.gguf`, name: "m.gguf", ...file }, all)).complete()).manifest;
  } catch (error) {
    return error;
  }
}

const whole = (headers = {}) => (request, response) => {
  response.writeHead(200, { "content-length": body.length, ...headers }).end(body);
};

/** Sends all up to a byte and cuts the connection; ranges are sent whole. */
const cutOnce = (end, first = {}, ranged = {}) => (request, response, start) => {
  if (start > 0) {
    response.writeHead(206, { "content-range": `bytes ${start}-${body.length - 1}/${body.length}`, ...first, ...ranged });
    return response.end(body.subarray(start));
  }
  response.writeHead(200, { "content-length": body.length, ...first });
  response.write(body.subarray(0, end), () => setTimeout(() => response.destroy(), 20));
};

test("a file whose length was not said is resumed, and its length adopted", async () => {
  answer = (request, response, start) => {
    if (start > 0) return cutOnce(0, { etag: '"a"' })(request, response, start);
    response.writeHead(200, { etag: '"a"' });
    response.write(body.subarray(0, 100_000), () => setTimeout(() => response.destroy(), 20));
  };
  assert.equal((await load()).sha256, sha256);
  assert.equal(asked.length, 2);
});

test("a server that never gets further is given up", async () => {
  answer = (request, response) => {
    response.writeHead(200, { "content-length": body.length });
    response.write(body.subarray(0, 1000), () => setTimeout(() => response.destroy(), 5));
  };
  assert.equal((await load()).code, "network");
  assert.ok(asked.length <= 5, `${asked.length} requests`);
});

test("without a validator nothing is resumed", async () => {
  let n = 0;
  answer = (request, response) => (n++ === 0 ? cutOnce(100_000)(request, response, 0) : whole()(request, response));
  assert.equal((await load()).sha256, sha256);
  assert.deepEqual(asked.map((a) => a.range), [undefined, undefined]);
});

test("a weak tag leaves the date to resume by", async () => {
  const date = "Wed, 21 Oct 2015 07:28:00 GMT";
  answer = cutOnce(100_000, { etag: 'W/"a"', "last-modified": date });
  assert.equal((await load()).sha256, sha256);
  assert.equal(asked[1].ifRange, date);
  assert.ok(asked[1].range);
});

test("another origin is asked for a range alone, and its answer is compared", async () => {
  browser();
  answer = cutOnce(100_000, { etag: '"a"' });
  assert.equal((await load()).sha256, sha256);
  assert.ok(asked[1].range && asked[1].ifRange === undefined);

  browser();
  asked.length = 0;
  let n = 0;
  const changed = cutOnce(100_000, { etag: '"a"' }, { etag: '"b"' });
  answer = (request, response, start) => (n++ < 2 ? changed : whole({ etag: '"b"' }))(request, response, start);
  assert.equal((await load()).sha256, sha256);
  assert.deepEqual(asked.map((a) => a.range === undefined), [true, false, true]);
});

test("where the hash is known, ranges need no validator", async () => {
  browser();
  answer = cutOnce(100_000, {}, { "last-modified": "Wed, 21 Oct 2015 07:28:00 GMT" });
  assert.equal((await load({ sha256 })).sha256, sha256);
  assert.ok(asked[1].range);
});

test("what is no GGUF file is never stored", async () => {
  answer = (request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>");
  const error = await load();
  assert.equal(error.code, "bad_file");
  assert.match(error.message, /text\/html/);
  assert.deepEqual(await list(), []);
  answer = (request, response) => response.end("GG");
  assert.equal((await load()).code, "bad_file");
  answer = whole();
  assert.equal((await load()).sha256, sha256);
});

test("the manifest says whether somebody knew how long the file is", async () => {
  answer = whole();
  assert.equal((await load()).sure, true);
  browser({ origin });
  answer = (request, response) => response.writeHead(200, { "transfer-encoding": "chunked" }).end(body);
  assert.equal((await load()).sure, false);
  browser({ origin });
  assert.equal((await load({ sha256 })).sure, true);
});

test("a hash is the same in capitals", async () => {
  answer = whole();
  const capitals = sha256.toUpperCase();
  assert.equal((await load({ sha256: capitals })).sha256, sha256);
  assert.equal((await load({ sha256: capitals }, { offline: true })).sha256, sha256);
  assert.equal(asked.length, 1);
  assert.equal((await load({ sha256: "abc" })).code, "bad_request");
});

test("a wrong hash leaves what was stored", async () => {
  answer = whole();
  await load();
  assert.equal((await load({ sha256: "0".repeat(64) })).code, "integrity");
  assert.equal((await load({}, { offline: true })).sha256, sha256);
  assert.equal((await list())[0].bytes, body.length, "nothing of the refused file is kept");
});

test("a file that is another now takes the place of the stored one, twice", async () => {
  answer = whole();
  await load();
  for (const fill of [8, 9]) {
    const next = Buffer.alloc(200_000 + fill, fill);
    next.write("GGUF");
    answer = (request, response) => response.writeHead(200, { "content-length": next.length }).end(next);
    const manifest = await load({ size: next.length });
    assert.equal(manifest.sha256, createHash("sha256").update(next).digest("hex"));
    const { file } = await (await entry(`${origin}/m.gguf`)).complete();
    assert.ok(Buffer.from(await file.arrayBuffer()).equals(next));
    assert.equal((await list())[0].bytes, next.length);
  }
});

test("a connection that fails once is tried again on the page's own origin", async () => {
  let n = 0;
  answer = (request, response) => {
    if (request.method === "HEAD") return response.end();
    return n++ === 0 ? request.socket.destroy() : whole()(request, response);
  };
  assert.equal((await load()).sha256, sha256);
});

test("who waits for a lock is told so", async () => {
  answer = whole();
  await load();
  const release = await hold(`${origin}/m.gguf`);
  const stages = [];
  const done = load({ size: 1 }, { progress: ({ stage }) => (stages.push(stage), stage === "wait" && setTimeout(release, 10)) });
  assert.equal((await done).code, "integrity");
  assert.equal(stages[0], "wait");
});

test("a full disk names the bytes that the file still needs, and keeps the rest", async () => {
  answer = cutOnce(100_000, { etag: '"a"' });
  let failed = null;
  failed = await load({}, { progress: ({ loaded }) => loaded > 50_000 && (disk.left = Math.min(disk.left, 20_000)) });
  assert.equal(failed.code, "quota_exceeded");
  assert.ok(failed.detail.needed > 100_000 && failed.detail.needed < body.length, `${failed.detail.needed}`);
  disk.left = Infinity;
  asked.length = 0;
  assert.equal((await load()).sha256, sha256);
  assert.match(asked[0].range, /^bytes=[1-9]/);
});

test("notes that cannot be written do not hide what went wrong", async () => {
  answer = cutOnce(100_000, { etag: '"a"' });
  const failed = await load({}, { progress: ({ loaded }) => loaded > 50_000 && (disk.left = 0) });
  assert.equal(failed.code, "quota_exceeded");
  assert.ok(failed.detail.needed > 100_000);
});

test("whatever servers do, a file that counts as whole is one of theirs", async () => {
  const versions = [1, 2].map((fill) => {
    const bytes = Buffer.alloc(4500, fill);
    bytes.write("GGUF");
    return bytes;
  });
  const hashes = versions.map((bytes) => createHash("sha256").update(bytes).digest("hex"));
  let seed = 7;
  const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65536 % n;
  const tags = [
    (v) => ({ etag: `"${v}"` }),
    (v) => ({ etag: `W/"${v}"`, "last-modified": new Date(1e12 + 1e6 * v).toUTCString() }),
    () => ({}),
  ];
  let done = 0;
  for (let run = 0; run < 150; run++) {
    const [tag, lengths, honest] = [tags[random(3)], random(2), random(2)];
    let version = 0;
    answer = (request, response, start) => {
      if (request.method === "HEAD") return response.end();
      if (random(8) === 0) version = 1;
      const [bytes, headers] = [versions[version], tag(version)];
      const kind = random(10);
      if (kind === 0) return response.writeHead(503).end();
      if (kind === 1) return request.socket.destroy();
      const same = !honest || request.headers["if-range"] === undefined || Object.values(headers).includes(request.headers["if-range"]);
      const ranged = start > 0 && start < bytes.length && same && kind !== 2;
      if (start >= bytes.length) return response.writeHead(416).end();
      const from = ranged ? start : 0;
      if (ranged && random(3) > 0) headers["content-range"] = `bytes ${from}-${bytes.length - 1}/${bytes.length}`;
      if (lengths) headers["content-length"] = bytes.length - from;
      response.writeHead(ranged ? 206 : 200, headers);
      const end = random(2) ? bytes.length : from + random(bytes.length - from);
      if (end === bytes.length) return response.end(bytes.subarray(from));
      response.write(bytes.subarray(from, end), () => setTimeout(() => response.destroy(), 2));
    };
    // Half of the servers are the page's own; only honest ones may be, which compare what they are asked to.
    browser(honest && random(2) ? { origin } : {});
    const known = random(3) === 0 ? { sha256: hashes[random(2)] } : {};
    for (let call = 0; call < 3; call++) {
      const found = await load(known, { retryMs: 0 });
      const what = `run ${run}: ${found.code ?? found.sha256}`;
      if (found.sha256) {
        assert.ok(known.sha256 ? found.sha256 === known.sha256 : hashes.includes(found.sha256), what);
        done++;
      } else assert.ok(["network", "integrity"].includes(found.code), `${what} ${found.stack}`);
    }
  }
  assert.ok(done > 100, `${done} were stored`);
});

test("a browser whose files cannot be written says so, whatever it is that fails", async () => {
  const refusals = [
    () => void (navigator.storage.getDirectory = undefined),
    () => void (navigator.storage.getDirectory = () => Promise.reject(new DOMException("no", "SecurityError"))),
    async () => {
      const top = await navigator.storage.getDirectory();
      const handle = Object.getPrototypeOf(await top.getFileHandle("x", { create: true }));
      const { createSyncAccessHandle } = handle;
      handle.createSyncAccessHandle = undefined;
      return () => (handle.createSyncAccessHandle = createSyncAccessHandle);
    },
  ];
  for (const refuse of refusals) {
    browser();
    const undo = await refuse();
    const tools = { newHash: () => new Hash(), progress: () => {} };
    await assert.rejects(store({ url: `${origin}/m.gguf`, name: "m.gguf" }, tools), { code: "storage_unavailable" });
    undo?.();
  }
});

test("a removal waits for whoever is just ending, and no longer", async () => {
  answer = whole();
  await load();
  const url = `${origin}/m.gguf`;
  const release = await hold(url);
  await assert.rejects(remove(url), { code: "in_use" });
  setTimeout(release, 50);
  assert.deepEqual([await remove(url), await remove(url)], [true, false]);
});
