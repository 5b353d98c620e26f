// From what a caller names (`hf:owner/repo:quant`, an address, files) to a list of files to read.

import { EngineError, badRequest } from "./errors.js";

const SPLIT = /-(\d{5})-of-(\d{5})\.gguf$/;
const HUB = "https://huggingface.co";

/**
 * The files of a model: each has `name` and either `blob` or `url`, and what is known of size and sha256.
 * @param {string | URL | Blob | Blob[]} model
 * @param {{ headers?: Record<string, string>, hfToken?: string, hub?: string, signal?: AbortSignal }} options
 */
export async function locate(model, options) {
  if (typeof Blob !== "undefined" && model instanceof Blob) return [fromBlob(model, 0)];
  if (Array.isArray(model)) {
    if (model.length === 0) throw badRequest("model: the list of files is empty");
    return model.map((part, i) => {
      if (!(part instanceof Blob)) throw badRequest(`model[${i}]: expected a File or Blob`);
      return fromBlob(part, i);
    });
  }
  if (typeof model === "string" && model.startsWith("hf:")) return fromHub(model.slice(3), options);
  if (typeof model === "string" || model instanceof URL) return fromUrl(model, options);
  throw badRequest("model: expected an address, hf:owner/repo:quant, a File, or a list of Files");
}

/** A blob without a name gets one, so that parts of a list differ. */
function fromBlob(blob, index) {
  return { name: blob.name ?? `file-${index}.gguf`, size: blob.size, blob };
}

function fromUrl(model, { headers = {} }) {
  let url;
  try {
    url = new URL(model, globalThis.location?.href);
  } catch {
    throw badRequest(`model: not an address: ${model}`);
  }
  if (!/^https?:$/.test(url.protocol)) throw badRequest(`model: expected http or https, found ${url.protocol}`);
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

const fileName = (url) => decodeURIComponent(url.pathname.split("/").pop()) || "model.gguf";

/** `owner/repo`, `owner/repo:quant` or `owner/repo/path/file.gguf`, each with `@revision` behind the repository. */
async function fromHub(text, { hfToken, hub = HUB, signal }) {
  const found = /^([\w.-]+\/[\w.-]+?)(?:@([\w./-]+?))?(?::([\w.-]+)|\/(.+\.gguf))?$/.exec(text);
  if (!found) throw badRequest(`model: expected hf:owner/repo:quant or hf:owner/repo/file.gguf, found hf:${text}`);
  const [, repo, revision = "main", quant, path] = found;
  const headers = hfToken ? { authorization: `Bearer ${hfToken}` } : {};
  const tree = await list(`${hub}/api/models/${repo}/tree/${encodeURIComponent(revision)}?recursive=true`, headers, signal);
  const ggufs = tree.filter((f) => f.type === "file" && f.path.endsWith(".gguf") && !/mmproj/i.test(f.path));
  const first = choose(ggufs, path, quant, repo);
  const url = new URL(`${hub}/${repo}/resolve/${encodeURIComponent(revision)}/${first.path}`);
  return parts(url, (part) => {
    const relative = decodeURIComponent(part.pathname).split(`/resolve/${revision}/`)[1];
    const entry = ggufs.find((f) => f.path === relative);
    if (!entry) throw new EngineError("not_found", `${repo}: ${relative} is missing from the split set`);
    // The id of a large file is its sha256.
    return { url: part.href, name: fileName(part), size: entry.size, sha256: entry.lfs?.oid, headers };
  });
}

async function list(url, headers, signal) {
  let response;
  try {
    response = await fetch(url, { headers, signal, referrerPolicy: "no-referrer" });
  } catch (error) {
    if (signal?.aborted) throw EngineError.from({ name: "AbortError" });
    throw new EngineError("network", `could not reach ${new URL(url).host}: ${error.message}`, "check the connection");
  }
  if (response.status === 401 || response.status === 403 || response.status === 404) {
    const hint = "check the name; private and gated repositories need hfToken";
    throw new EngineError("not_found", `${url}: ${response.status}`, hint, { status: response.status });
  }
  if (!response.ok) throw new EngineError("download_failed", `${url}: ${response.status}`, "try again later");
  return response.json();
}

/** The file that was asked for: by its path, by its quantisation, or the usual one. */
function choose(files, path, quant, repo) {
  const firsts = files.filter((f) => !SPLIT.test(f.path) || SPLIT.exec(f.path)[1] === "00001");
  const names = firsts.map((f) => f.path);
  const fits = (word) => firsts.find((f) => f.path.toLowerCase().includes(word.toLowerCase()));
  const found = path ? firsts.find((f) => f.path === path) : quant ? fits(quant) : (fits("Q4_K_M") ?? firsts[0]);
  if (found) return found;
  const what = path ?? quant ?? "a GGUF file";
  throw new EngineError("not_found", `${repo} has no ${what}`, `it has: ${names.join(", ") || "none"}`, { files: names });
}
