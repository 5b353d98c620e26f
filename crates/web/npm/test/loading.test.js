// From the network to the browser's storage, with everything that goes wrong on the way.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { stat, readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launch, sendFile, serve } from "./browser.js";
import { LEFT_FOR_FULL, MODEL, MODELS, OTHER_BROWSER, MODEL_FILE as FILE, open } from "./page.js";
import { split } from "./split.js";

const full = Boolean(Number(process.env.CHASKI_TEST_FULL ?? 0));
let [t, other, size, sha256] = [];
/** Requests to the server below /odd/, and its answers. */
const asked = [];
let odd = () => {};

before(async () => {
  size = (await stat(FILE)).size;
  sha256 = createHash("sha256").update(await readFile(FILE)).digest("hex");
  t = await open(async (request, response, url) => {
    if (!url.pathname.startsWith("/odd/")) return false;
    if (request.method === "GET") asked.push({ path: url.pathname, ...request.headers });
    await odd(request, response, url);
    return true;
  });
  other = await serve(MODELS);
});
after(async () => {
  await t?.close();
  await other?.close();
});

/** Downloads in the page; the error if it fails. */
function download(url, options = {}) {
  return t.page.evaluate(
    ([url, options]) => failure(chaski.models.download(url, { retryMs: 10, ...options })),
    [url, options],
  );
}

const stored = (name) =>
  t.page.evaluate(async (name) => (await chaski.models.list()).find((m) => m.url.endsWith(name)) ?? null, name);
const verify = (name) => t.page.evaluate((name) => chaski.models.verify(name), name);

/** Sends the file up to a byte, and cuts the connection when a busy browser has had time to read that. */
function cutAt(request, response, end) {
  const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
  const whole = start === 0;
  response.writeHead(whole ? 200 : 206, {
    etag: '"v1"',
    "content-length": size - start,
    ...(whole ? {} : { "content-range": `bytes ${start}-${size - 1}/${size}` }),
  });
  readFile(FILE).then((bytes) => response.write(bytes.subarray(start, end), () => setTimeout(() => response.destroy(), 400)));
}

test("a file is stored, listed, verified, and removed once", async () => {
  const url = `${MODEL}?plain`;
  assert.equal(await download(url), null);
  const found = await stored("?plain");
  assert.deepEqual([found.complete, found.size, found.bytes, found.sha256], [true, size, size, sha256]);
  assert.equal(await verify(url), true);
  const usage = await t.page.evaluate(() => chaski.models.usage());
  assert.ok(usage.models >= size && usage.quota > usage.models);
  const removed = await t.page.evaluate(async (url) => [await chaski.models.remove(url), await chaski.models.remove(url)], url);
  assert.deepEqual(removed, [true, false]);
  assert.equal(await stored("?plain"), null);
});

test("a cut connection goes on where it ended", async () => {
  asked.length = 0;
  odd = (request, response) => {
    if (asked.length === 1) return cutAt(request, response, 1_500_000);
    assert.equal(request.headers["if-range"], '"v1"');
    // The server's own rules for ranges know a file by its size.
    delete request.headers["if-range"];
    return sendFile(request, response, FILE, size, { etag: '"v1"' });
  };
  assert.equal(await download("/odd/cut.gguf"), null);
  assert.equal(asked.length, 2);
  const from = Number(/bytes=(\d+)-/.exec(asked[1].range)[1]);
  assert.ok(from > 0 && from <= 1_500_000, asked[1].range);
  assert.equal((await stored("cut.gguf")).sha256, sha256);
});

test("a cut connection goes on where the page's own origin passes requests on to another one", { skip: LEFT_FOR_FULL }, async () => {
  const [seen, bytes] = [[], await readFile(FILE)];
  const cors = { "access-control-allow-origin": "*", "last-modified": "Wed, 21 Oct 2015 07:28:00 GMT" };
  const cdn = await serve({}, (request, response) => {
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    seen.push([request.method, start > 0]);
    if (request.method === "OPTIONS") response.writeHead(405, cors).end();
    else if (start > 0) response.writeHead(206, cors).end(bytes.subarray(start));
    else {
      response.writeHead(200, { ...cors, "content-length": size });
      response.write(bytes.subarray(0, 1_000_000), () => setTimeout(() => response.destroy(), 400));
    }
    return true;
  });
  odd = (request, response) => response.writeHead(302, { location: `${cdn.origin}/m.gguf`, "access-control-allow-origin": "*" }).end();
  assert.equal(await download("/odd/passed-on.gguf"), null);
  await cdn.close();
  assert.deepEqual(seen, [["GET", false], ["GET", true]]);
  assert.equal((await stored("passed-on.gguf")).sha256, sha256);
});

test("a lost network is an error that keeps what came, for the next call", async () => {
  asked.length = 0;
  odd = (request, response) => (asked.length === 1 ? cutAt(request, response, 1_000_000) : response.destroy());
  const error = await download("/odd/lost.gguf");
  assert.equal(error.code, "network");
  assert.ok(error.hint.length > 0);
  const partial = await stored("lost.gguf");
  assert.equal(partial.complete, false);
  assert.ok(partial.bytes > 0);

  asked.length = 0;
  odd = (request, response) => {
    delete request.headers["if-range"];
    sendFile(request, response, FILE, size, { etag: '"v1"' });
  };
  assert.equal(await download("/odd/lost.gguf"), null);
  assert.match(asked[0].range, /^bytes=[1-9]/);
  assert.equal((await stored("lost.gguf")).sha256, sha256);
});

test("a file that changed meanwhile is loaded anew", async () => {
  asked.length = 0;
  odd = (request, response) => {
    if (asked.length === 1) return cutAt(request, response, 1_000_000);
    // The tag is another one, so the answer is the whole file.
    return sendFile(request, response, FILE, size);
  };
  assert.equal(await download("/odd/changed.gguf"), null);
  assert.equal((await stored("changed.gguf")).sha256, sha256);
});

test("a wrong hash is an error, and nothing of the file is used", async () => {
  const wrong = "0".repeat(64);
  const error = await download(`${MODEL}?hash`, { sha256: { "storyteller-Q4_K_M.gguf": wrong } });
  assert.equal(error.code, "integrity");
  assert.deepEqual(error.detail, { found: sha256, expected: wrong });
  assert.equal((await stored("?hash"))?.complete ?? false, false);
  assert.equal(await download(`${MODEL}?hash`, { sha256: { "storyteller-Q4_K_M.gguf": sha256 } }), null);
});

test("a hash that nothing would check is refused", { skip: LEFT_FOR_FULL }, async () => {
  const name = "storyteller-Q4_K_M.gguf";
  for (const hashes of [sha256, 5, { other: sha256 }, { [name]: 5 }, { [name]: "" }]) {
    assert.equal((await download(MODEL, { sha256: hashes })).code, "bad_request", JSON.stringify(hashes));
  }
  const found = await t.page.evaluate(
    async ([url, sha256]) => {
      const file = new File([await (await fetch(url)).blob()], Object.keys(sha256)[0]);
      const create = (model, options) => failure(chaski.Engine.create({ model, sha256, ...options }));
      return [await create(file), await create(url, { cache: "none" })];
    },
    [MODEL, { [name]: sha256 }],
  );
  assert.deepEqual(found.map((e) => e?.code), ["bad_request", "bad_request"]);
  assert.match(found[0].hint, /leave out sha256/);
});

test("refusals, missing files and dead servers are told apart", async () => {
  const refused = await download(`${other.origin}${MODEL}`);
  assert.equal(refused.code, "cors");
  assert.match(refused.hint, /Access-Control-Allow-Origin/);
  const dead = await serve({});
  await dead.close();
  assert.equal((await download(`${dead.origin}/x.gguf`)).code, "network");
  assert.equal((await download("/model/none.gguf")).code, "not_found");
  assert.equal((await download("ftp://example.org/x.gguf")).code, "bad_request");
  assert.equal((await download("hf:nonsense")).code, "bad_request");
});

test("reading by ranges has the errors of a download, and goes on after a moment's failure", { skip: LEFT_FOR_FULL }, async () => {
  const inspect = (url, options) => t.page.evaluate(([url, options]) => failure(chaski.inspect(url, { retryMs: 10, ...options })), [url, options]);
  for (const [status, code] of [[500, "network"], [503, "network"], [429, "network"], [416, "download_failed"], [204, "download_failed"], [403, "forbidden"]]) {
    odd = (request, response) => response.writeHead(status).end();
    const error = await inspect("/odd/status.gguf");
    assert.equal(error?.code, code, `${status}`);
    if (status === 403) assert.match(error.hint, /hfToken/);
  }
  // The head's piece fails twice, and then comes.
  asked.length = 0;
  odd = (request, response) => {
    if (asked.length === 2) return response.writeHead(503).end();
    if (asked.length !== 3) return sendFile(request, response, FILE, size);
    response.writeHead(206, { "content-range": `bytes 0-${size - 1}/${size}`, "content-length": size });
    response.write("GGUF", () => setTimeout(() => response.destroy(), 50));
  };
  assert.equal(await inspect("/odd/moment.gguf"), null);
  odd = (request, response) => {
    if (/-0$/.test(request.headers.range)) return sendFile(request, response, FILE, size);
    response.writeHead(206, { "content-length": size });
    response.write("GGUF", () => setTimeout(() => response.destroy(), 50));
  };
  const cut = await inspect("/odd/cuts.gguf");
  assert.deepEqual([cut.code, cut.hint], ["network", "check the connection"]);
  // A refusal has a length, too.
  const cdn = await serve({}, (request, response) => {
    const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
    if (request.method === "HEAD") response.writeHead(403, { ...cors, "content-length": 243 }).end();
    else sendFile(request, response, FILE, size, cors);
    return true;
  });
  const unknown = await inspect(`${cdn.origin}/x.gguf`);
  assert.match(unknown.message, /does not say how long/);
  assert.deepEqual([unknown.code, unknown.hint], ["no_ranges", 'store it: models.download, or cache: "opfs"']);
  await cdn.close();
});

test("a head is read from a server without ranges", async () => {
  odd = (request, response) => readFile(FILE).then((bytes) => response.writeHead(200, { "content-length": size }).end(bytes));
  const [found, refused] = await t.page.evaluate(async () => {
    const url = "/odd/whole.gguf";
    return [await chaski.inspect(url), await failure(chaski.Engine.create({ model: url, cache: "none" }))];
  });
  assert.deepEqual([found.architecture, found.fileBytes, found.downloadBytes], ["llama", size, size]);
  assert.equal(refused.code, "no_ranges");
});

test("a head without an end is given up", { skip: full ? false : "SKIPPED: half a gigabyte of requests, with --full" }, async () => {
  odd = (request, response) => {
    response.writeHead(200, { "content-length": 1e12 });
    const head = Buffer.alloc(1 << 20);
    // A file of version 3 with one value: a text of a gigabyte.
    head.write("GGUF\u0003");
    head.writeUInt32LE(1, 16);
    head.writeUInt32LE(1, 24);
    head.write("a\u0008", 32);
    head.writeUInt32LE(1e9, 37);
    const more = () => {
      while (response.write(head));
      response.once("drain", more);
    };
    more();
  };
  const endless = await t.page.evaluate(() => failure(chaski.inspect("/odd/endless.gguf")));
  assert.match(endless.hint, /models.download/, JSON.stringify(endless));
});

test("a server that allows simple requests alone is resumed, and read anew where it refuses ranges", { skip: LEFT_FOR_FULL }, async () => {
  const [seen, bytes, cors] = [[], await readFile(FILE), { "access-control-allow-origin": "*" }];
  let ranges = true;
  const cdn = await serve({}, (request, response) => {
    seen.push([request.method, request.headers.range]);
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    // No preflight is answered, and ranges are only sometimes.
    if (request.method === "OPTIONS") response.writeHead(405, cors).end();
    else if (start > 0 && !ranges) response.writeHead(206).end();
    else if (start > 0) response.writeHead(206, { ...cors, "last-modified": "Wed, 21 Oct 2015 07:28:00 GMT" }).end(bytes.subarray(start));
    else {
      response.writeHead(200, { ...cors, "last-modified": "Wed, 21 Oct 2015 07:28:00 GMT", "content-length": size });
      if (seen.length > 1) response.end(bytes);
      else response.write(bytes.subarray(0, 1_000_000), () => setTimeout(() => response.destroy(), 400));
    }
    return true;
  });
  assert.equal(await download(`${cdn.origin}/simple.gguf`), null);
  assert.equal((await stored("simple.gguf")).sha256, sha256);
  assert.deepEqual(seen.map(([method, range]) => [method, /^bytes=[1-9]/.test(range)]), [["GET", false], ["GET", true]]);

  [ranges, seen.length] = [false, 0];
  assert.equal(await download(`${cdn.origin}/refusing.gguf`), null);
  assert.equal((await stored("refusing.gguf")).sha256, sha256);
  await cdn.close();
});

test("a full disk is an error with the bytes that are missing", { skip: OTHER_BROWSER }, async () => {
  const devtools = await t.browser.context.newCDPSession(t.page);
  const { usage } = await t.page.evaluate(() => chaski.models.usage());
  const quotaSize = usage + 1_000_000;
  await devtools.send("Storage.overrideQuotaForOrigin", { origin: t.server.origin, quotaSize });
  const error = await download(`${MODEL}?full`);
  // Where the length is not known beforehand, a write fails.
  odd = (request, response) => readFile(FILE).then((bytes) => response.writeHead(200, { "transfer-encoding": "chunked" }).end(bytes));
  const written = await download("/odd/full.gguf");
  await devtools.send("Storage.overrideQuotaForOrigin", { origin: t.server.origin });
  assert.equal(error.code, "quota_exceeded");
  assert.ok(error.detail.needed > 0);
  assert.equal(written.code, "quota_exceeded");
  assert.notEqual((await stored("?full"))?.complete, true);
  assert.equal(await download(`${MODEL}?full`), null);
});

test("an address is stored and read on the page's own thread, too", { skip: LEFT_FOR_FULL }, async () => {
  odd = (request, response) => response.end("GGUF, and then nothing that is a model");
  const create = (worker) =>
    t.page.evaluate((worker) => failure(chaski.Engine.create({ model: "/odd/none.gguf", worker, offline: false })), worker);
  assert.equal((await create(false)).code, "bad_file");
  assert.equal((await t.page.evaluate((url) => failure(chaski.models.download(url, { worker: false })), `${MODEL}?direct`)), null);
  assert.equal((await stored("?direct")).sha256, sha256);
});

test("a file that ended early is not kept when nobody knew its length", async () => {
  odd = (request, response) => readFile(FILE).then((bytes) => response.writeHead(200, { "transfer-encoding": "chunked" }).end(bytes.subarray(0, 100_000)));
  assert.equal(await download("/odd/short.gguf"), null);
  assert.equal((await stored("short.gguf")).complete, true);
  const error = await t.page.evaluate(() => failure(chaski.Engine.create({ model: "/odd/short.gguf" })));
  assert.ok(["bad_file", "read_failed"].includes(error.code), error.code);
  assert.equal(await stored("short.gguf"), null);
});

test("a page on plain http reads from the server, and is told why it stores nothing", { skip: OTHER_BROWSER || LEFT_FOR_FULL }, async () => {
  const browser = await launch(["--host-resolver-rules=MAP plain.test 127.0.0.1"]);
  const page = await browser.context.newPage();
  await page.goto(t.server.origin.replace("127.0.0.1", "plain.test"));
  const found = await page.evaluate(async (model) => {
    const chaski = await import("/npm/index.js");
    const of = (promise) => promise.then((e) => e.info?.().model.architecture ?? e, ({ code, hint }) => `${code}: ${hint}`);
    const { Engine, models } = chaski;
    const created = [await of(Engine.create({ model })), await of(Engine.create({ model, worker: false }))];
    return [...created, await of(models.remove(model)), await of(models.list()), await of(models.download(model))];
  }, MODEL);
  await browser.close();
  const refused = "storage_unavailable: serve the page over https";
  assert.deepEqual(found, ["llama", "llama", refused, refused, refused]);
});

test("a worker of the caller's serves several engines, and stays", async () => {
  const found = await t.page.evaluate(async (url) => {
    const worker = new Worker("/npm/worker.js", { type: "module" });
    const inspect = () => chaski.inspect(url, { worker }).then((i) => i.architecture);
    const both = await Promise.all([inspect(), inspect(), failure(chaski.models.download(url, { worker }))]);
    const again = await inspect();
    worker.terminate();
    return [...both, again];
  }, MODEL);
  assert.deepEqual(found, ["llama", "llama", null, "llama"]);
});

test("two tabs load a file once", async () => {
  asked.length = 0;
  odd = (request, response) => setTimeout(() => sendFile(request, response, FILE, size), 300);
  const page = await t.browser.context.newPage();
  await page.goto(`${t.server.origin}/`);
  const both = await Promise.all([
    download("/odd/tabs.gguf"),
    page.evaluate(async () => (await import("/npm/index.js")).models.download("/odd/tabs.gguf")),
  ]);
  assert.equal(both[0], null);
  assert.equal(both[1][0].size, size);
  assert.equal(asked.length, 1);
  await page.close();
});

test("an abort ends a download at once, and what came can be removed then", async () => {
  odd = (request, response) => {
    response.writeHead(200, { "content-length": size });
    response.write("GGUF");
  };
  const [error, ms] = await t.page.evaluate(async () => {
    const controller = new AbortController();
    const start = performance.now();
    setTimeout(() => controller.abort(), 300);
    const error = await failure(chaski.Engine.create({ model: "/odd/slow.gguf", device: "cpu", signal: controller.signal }));
    const ms = performance.now() - start;
    await chaski.models.remove("/odd/slow.gguf");
    return [error, ms];
  });
  assert.equal(error.code, "aborted");
  assert.ok(ms < 3000, `${ms} ms`);
});

test("an abort keeps most of what came", async () => {
  odd = (request, response) => cutAt(request, { writeHead: (...head) => response.writeHead(...head), write: (bytes) => response.write(bytes) }, 3 << 20);
  const code = await t.page.evaluate(async () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 800);
    return (await failure(chaski.models.download("/odd/kept.gguf", { signal: controller.signal }))).code;
  });
  assert.equal(code, "aborted");
  assert.ok((await stored("kept.gguf"))?.bytes >= 1 << 20);
});

test("a large file passes through a small heap", async () => {
  const total = (full ? 300 : 100) << 20;
  odd = (request, response) => {
    response.writeHead(200, { "content-length": total });
    const piece = Buffer.alloc(1 << 20);
    piece.write("GGUF");
    let left = total / piece.length;
    const more = () => {
      while (left > 0) if (left--, !response.write(piece)) return void response.once("drain", more);
      response.end();
    };
    more();
  };
  const heap = await t.page.evaluate(async () => {
    const { once } = await import("/npm/src/channel.js");
    return (await once({}, "download", { model: new URL("/odd/large.gguf", location.href).href, options: {} })).heap;
  });
  assert.ok(heap > 0 && heap < 16 << 20, `${heap} bytes of wasm heap`);
  await t.page.evaluate(() => chaski.models.remove(new URL("/odd/large.gguf", location.href).href));
});

test("what is stored is taken without the network, and only then if offline", async () => {
  assert.equal((await download("/odd/nowhere.gguf", { offline: true })).code, "not_stored");
  asked.length = 0;
  assert.equal(await download("/odd/cut.gguf", { offline: true }), null);
  assert.equal(asked.length, 0);
});

test("a repository's file is found by its quantisation, and its hash is known", { skip: LEFT_FOR_FULL }, async () => {
  const sha = sha256;
  const hub = await serve(MODELS, (request, response, url) => {
    const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*", "access-control-expose-headers": "*" };
    if (request.method === "OPTIONS") response.writeHead(204, cors).end();
    else if (url.pathname === "/api/models/a/b/tree/main") {
      const file = (path, oid) => ({ type: "file", path, size, lfs: { oid } });
      const files = [file("b-Q8_0.gguf", "f".repeat(64)), file("b-Q4_K_M.gguf", sha), file("mmproj-b.gguf", sha)];
      response.writeHead(200, { "content-type": "application/json", ...cors }).end(JSON.stringify(files));
    } else if (url.pathname.startsWith("/a/b/resolve/main/")) sendFile(request, response, FILE, size, cors);
    else response.writeHead(404, cors).end();
    return true;
  });
  assert.equal(await download("hf:a/b:q4_k_m", { hub: hub.origin }), null);
  const missing = await download("hf:a/b:Q2_K", { hub: hub.origin });
  assert.equal(missing.code, "not_found");
  assert.match(missing.hint, /b-Q8_0.gguf/);
  const wrong = await download("hf:a/b:Q8_0", { hub: hub.origin });
  assert.equal(wrong.code, "integrity");
  await hub.close();
  // The hub is gone; what is stored has its name still.
  const found = await t.page.evaluate(async (hub) => {
    const model = "hf:a/b:q4_k_m";
    const offline = await failure(chaski.models.download(model, { hub, offline: true }));
    const unreachable = await failure(chaski.models.download(model, { hub }));
    const verified = await chaski.models.verify(model, { hub });
    const removed = [await chaski.models.remove(model, { hub }), await chaski.models.remove(model, { hub })];
    return { offline, unreachable, verified, removed, unknown: await chaski.models.remove("hf:c/d") };
  }, hub.origin);
  assert.deepEqual(found, { offline: null, unreachable: null, verified: true, removed: [true, false], unknown: false });
});

test("names with signs of addresses, hubs as they are written, and lists of Files are understood", async () => {
  const found = await t.page.evaluate(async () => {
    const { locate } = await import("/npm/src/locate.js");
    const [fetched, asked] = [globalThis.fetch, []];
    globalThis.fetch = async (url) => asked.push(url) && new Response(JSON.stringify([{ type: "file", path: "a#b/50%?.gguf", size: 1 }]));
    const [file] = await locate("hf:a/b", { hub: "https://h.org/" });
    globalThis.fetch = fetched;
    const list = new DataTransfer();
    list.items.add(new File(["x"], "a.gguf"));
    const names = [...(await locate("/50%.gguf", {})), ...(await locate(list.files, {}))].map((f) => f.name);
    return [asked[0], file.url, file.name, ...names, (await failure(locate("hf:a/b", { hub: "nonsense" }))).code];
  });
  const tree = "https://h.org/api/models/a/b/tree/main?recursive=true";
  const url = "https://h.org/a/b/resolve/main/a%23b/50%25%3F.gguf";
  assert.deepEqual(found, [tree, url, "50%?.gguf", "50%.gguf", "a.gguf", "bad_request"]);
});

test("what is beyond the memory of a module or the budget does not fit", async () => {
  const why = (options) => t.page.evaluate(async ([url, options]) => (await chaski.inspect(url, options)).reasons.join(), [MODEL, options]);
  assert.equal(await why({ device: "cpu" }), "");
  assert.match(await why({ device: "cpu", contextLength: 2_000_000 }), /^it takes \d+ bytes of memory, WebAssembly has 4 GiB$/);
  assert.match(await why({ memoryBudget: 0 }), /the budget is 0$/);
});

test("a split set is one model: from its first address, as Files in a list, and without being stored", async () => {
  const parts = split(await readFile(FILE), 3);
  const name = (i) => `split-0000${i + 1}-of-00003.gguf`;
  const ranges = [];
  const folder = await serve({}, (request, response, url) => {
    const bytes = parts[parts.findIndex((_, i) => url.pathname === `/${name(i)}`)];
    const cors = { "access-control-allow-origin": "*", "access-control-expose-headers": "content-range" };
    if (!bytes) response.writeHead(404, cors).end();
    else if (!request.headers.range) response.writeHead(200, { ...cors, "content-length": bytes.length }).end(bytes);
    else {
      const [, from, to] = /bytes=(\d+)-(\d*)/.exec(request.headers.range);
      const end = to ? Math.min(Number(to) + 1, bytes.length) : bytes.length;
      ranges.push([url.pathname, end - from]);
      response.writeHead(206, { ...cors, "content-range": `bytes ${from}-${end - 1}/${bytes.length}` }).end(bytes.subarray(from, end));
    }
    return true;
  });
  const found = await t.page.evaluate(
    async ([url, whole, names]) => {
      const facts = ({ bytes, parameters, fileBytes, downloadBytes }) => [bytes, parameters, fileBytes, downloadBytes];
      const remote = facts(await chaski.inspect(url, { cache: "none" }));
      const before = (await chaski.models.list()).length;
      const files = (await chaski.models.download(url)).map((f) => f.name);
      const local = facts(await chaski.inspect(url));
      const blobs = await Promise.all(names.map(async (n) => new File([await (await fetch(new URL(n, url))).blob()], n)));
      const chosen = facts(await chaski.inspect(blobs));
      const one = facts(await chaski.inspect(whole));
      const verified = await chaski.models.verify(url);
      const removed = await chaski.models.remove(url);
      const missing = await failure(chaski.inspect(blobs.slice(1)));
      return { remote, before, files, local, chosen, one, verified, removed, after: (await chaski.models.list()).length, missing };
    },
    [`${folder.origin}/${name(0)}`, MODEL, parts.map((_, i) => name(i))],
  );
  await folder.close();
  const fileBytes = parts.reduce((sum, part) => sum + part.length, 0);
  const facts = found.one.slice(0, 2);
  assert.deepEqual(found.remote, [...facts, fileBytes, fileBytes]);
  assert.deepEqual([found.local, found.chosen], [[...facts, fileBytes, 0], [...facts, fileBytes, 0]]);
  assert.deepEqual(found.files, parts.map((_, i) => name(i)));
  assert.deepEqual([found.verified, found.removed, found.after], [true, true, found.before]);
  assert.ok(["bad_file", "bad_request"].includes(found.missing?.code), JSON.stringify(found.missing));
  assert.ok(ranges.length > 0 && ranges.every(([, n]) => n <= 4 << 20), "pieces of at most 4 MiB");
});

test("options that make no sense cost no download", async () => {
  asked.length = 0;
  odd = (request, response) => sendFile(request, response, FILE, size);
  const errors = await t.page.evaluate(async () => {
    const of = (options) => failure(chaski.Engine.create({ model: "/odd/options.gguf", device: "cpu", ...options }));
    return [await of({ kvType: "fp16" }), await of({ inputs: "i4" }), await of({ kvType: "q9_9", worker: false })];
  });
  for (const [i, word] of ["fp16", "i4", "q9_9"].entries()) {
    assert.equal(errors[i]?.code, "bad_request");
    assert.match(errors[i].message, new RegExp(word));
  }
  assert.deepEqual([asked, await stored("options.gguf")], [[], null]);
});
