// From what a caller names (`hf:owner/repo:quant`, an address, files) to a list of files to read. A folder of Hugging Face or of MLC is a list with
// a name (`folder`), whose files have their paths as names.

import { EngineError, aborted, badRequest } from "./errors.js";
import { refusal, send } from "./network.js";
import * as store from "./store.js";

const SPLIT = /-(\d{5})-of-(\d{5})\.gguf$/;
const HUB = "https://huggingface.co";
/** Which files of a folder are a model: few pages ask. */
const folders = () => import("./folder-files.js");
const named = (files, folder) => Object.assign(files.map((file) => ({ ...file, inFolder: true })), { folder });

/**
 * The files of a model: each has `name` and either `blob` or `url`, and what is known of size and sha256.
 * @param {string | URL | Blob | Blob[]} model
 * @param {{ headers?: Record<string, string>, hfToken?: string, hub?: string, signal?: AbortSignal, offline?: boolean,
 *   cache?: string, sha256?: Record<string, string> }} options
 */
export async function locate(model, options) {
  const found = await find(model, options);
  for (const [name, sha256] of Object.entries(options.sha256 ?? {})) {
    const file = found.find((f) => f.name === name);
    if (!file) throw badRequest(`sha256: the model has no file ${name}`);
    file.sha256 = sha256 ?? file.sha256;
  }
  return found;
}

async function find(model, options) {
  if (globalThis.FileList && model instanceof FileList) model = Array.from(model);
  if (typeof Blob !== "undefined" && model instanceof Blob) return [fromBlob(model, 0)];
  if (Array.isArray(model)) {
    if (model.length === 0) throw badRequest("model: the list of files is empty");
    const files = model.map((part, i) => {
      if (!(part instanceof Blob)) throw badRequest(`model[${i}]: expected a File or Blob`);
      return fromBlob(part, i);
    });
    const inside = files.some(({ name }) => name.endsWith(".json")) ? (await folders()).inFolder(files) : [];
    return inside.length > 0 ? named(inside, model[0].webkitRelativePath?.split("/")[0] || "folder") : files;
  }
  if (typeof model === "string" && model.startsWith("hf:")) return fromHub(model.slice(3), options);
  if (typeof model === "string" || model instanceof URL) return fromUrl(model, options);
  throw badRequest("model: expected an address, hf:owner/repo:quant, a File, or a list of Files");
}

/** A blob without a name gets one, so that parts of a list differ. Files of a folder that was chosen know their paths. */
function fromBlob(blob, index) {
  const path = blob.webkitRelativePath?.split("/").slice(1).join("/");
  return { name: path || (blob.name ?? `file-${index}.gguf`), size: blob.size, blob };
}

function address(what, text, base) {
  let url;
  try {
    url = new URL(text, base);
  } catch {
    throw badRequest(`${what}: not an address: ${text}`);
  }
  if (!/^https?:$/.test(url.protocol)) throw badRequest(`${what}: expected http or https, found ${url.protocol}`);
  return url;
}

async function fromUrl(model, options) {
  const { headers = {} } = options;
  const url = address("model", model, globalThis.location?.href);
  const repo = !/\.gguf$/i.test(url.pathname) && url.origin === new URL(options.hub ?? HUB, globalThis.location?.href).origin && /^\/([\w.-]+\/[\w.-]+)\/?$/.exec(url.pathname);
  if (repo) return fromHub(repo[1], options);
  if (url.pathname.endsWith("/")) {
    const files = await listed(url.href, options, async () => (await folders()).probe(url, options));
    return named(files.map((name) => ({ url: new URL(name, url).href, name, headers })), url.href);
  }
  return parts(url, (part) => ({ url: part.href, name: fileName(part), headers }));
}

/** All files of a split set, or the one. */
function parts(url, make) {
  const found = SPLIT.exec(url.pathname);
  const n = found ? Number(found[2]) : 1;
  return Array.from({ length: n }, (_, i) => {
    const part = new URL(url);
    if (found) {
      const number = String(i + 1).padStart(5, "0");
      part.pathname = url.pathname.replace(SPLIT, `-${number}-of-${found[2]}.gguf`);
    }
    return make(part);
  });
}

function fileName(url) {
  const name = url.pathname.split("/").pop() || "model.gguf";
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** `owner/repo`, `owner/repo:quant` or `owner/repo/path/file.gguf`, each with `@revision` behind the repository. */
async function fromHub(text, options) {
  const { hfToken } = options;
  const hub = address("hub", options.hub ?? HUB).href.replace(/\/+$/, "");
  const found = /^([\w.-]+\/[\w.-]+?)(?:@([\w./-]+?))?(?::([\w.-]+)|\/(.+\.gguf))?$/.exec(text);
  if (!found) throw badRequest(`model: expected hf:owner/repo:quant or hf:owner/repo/file.gguf, found hf:${text}`);
  const [, repo, revision = "main", quant, path] = found;
  const headers = hfToken ? { authorization: `Bearer ${hfToken}` } : {};
  const tree = `${hub}/api/models/${repo}/tree/${encodeURIComponent(revision)}?recursive=true`;
  const ggufs = await listed(tree, options, () => inRepository(tree, headers, options.signal));
  const at = (path) => new URL(`${hub}/${repo}/resolve/${encodeURIComponent(revision)}/${path.replace(/[#?%]/g, encodeURIComponent)}`);
  if (!path && !quant && ggufs.length > 0 && !ggufs.some(isModel)) {
    return named(ggufs.map(({ path, size, sha256 }) => ({ url: at(path).href, name: path, size, sha256, headers })), repo);
  }
  const first = choose(ggufs.filter(isModel), path, quant, repo);
  const url = at(first.path);
  return parts(url, (part) => {
    const relative = decodeURIComponent(part.pathname).split(`/resolve/${revision}/`)[1];
    const entry = ggufs.find((f) => f.path === relative);
    if (!entry) throw new EngineError("not_found", `${repo}: ${relative} is missing from the split set`);
    // The id of a large file is its sha256.
    return { url: part.href, name: fileName(part), size: entry.size, sha256: entry.sha256, headers };
  });
}

const isModel = ({ path }) => path.endsWith(".gguf") && !/mmproj/i.test(path);

/** A repository's files: its models, or the one that it is as a folder. */
async function inRepository(tree, headers, signal) {
  const found = await list(tree, headers, signal);
  const files = found.filter((f) => f.type === "file").map(({ path, size, lfs }) => ({ name: path, path, size, sha256: lfs?.oid }));
  const models = files.filter(isModel);
  return models.length > 0 ? models : (await folders()).inFolder(files);
}

/** The list behind an address: as it was when it was last reached, if it cannot be reached or shall not be. */
async function listed(address, { offline, cache }, ask) {
  if (offline) {
    const kept = await store.kept("list", address);
    if (kept) return kept;
    throw new EngineError("not_stored", `${address} was never asked for`, "leave out offline to ask for it");
  }
  try {
    const found = await ask();
    if (cache !== "none") await store.keep("list", address, found);
    return found;
  } catch (error) {
    const passing = ["network", "cors", "download_failed"].includes(error.code);
    const kept = passing ? await store.kept("list", address) : null;
    if (kept) return kept;
    throw error;
  }
}

async function list(url, headers, signal) {
  const response = await send(url, headers, { signal });
  if (!response.ok) throw refusal(response, url, "check the name; private repositories need hfToken");
  const tree = await response.json().catch(() => null);
  if (signal?.aborted) throw aborted();
  if (Array.isArray(tree)) return tree;
  // Networks that want a login first answer everything with a page.
  throw new EngineError("network", `${url}: expected a list of files, found something else`, "check the connection");
}

/** The file that was asked for: by its path, by its quantisation, or the usual one. */
function choose(files, path, quant, repo) {
  const firsts = files.filter((f) => !SPLIT.test(f.path) || SPLIT.exec(f.path)[1] === "00001");
  const names = firsts.map((f) => f.path);
  const found = path ? firsts.find((f) => f.path === path) : quant ? byWord(firsts, quant) : (byWord(firsts, "Q4_K_M") ?? firsts[0]);
  if (found) return found;
  const what = path ?? quant ?? "a GGUF file";
  throw new EngineError("not_found", `${repo} has no ${what}`, `it has: ${names.join(", ") || "none"}`, { files: names });
}

/** The file with this word in its path, or with one that begins so: F16 is no BF16, but Q4_K may be Q4_K_M. */
function byWord(files, word) {
  const begins = `(?:^|[^a-z0-9])${word.replace(/[^\w]/g, "\\$&")}`;
  const fits = (pattern) => files.find((f) => new RegExp(pattern, "i").test(f.path));
  return fits(`${begins}(?![a-z0-9_])`) ?? fits(begins);
}
