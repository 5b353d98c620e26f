// Files of a folder as answers to requests of app://.

const { readFile } = require("node:fs/promises");
const path = require("node:path");

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };

exports.answer = async function answer(folder, request) {
  const file = path.join(folder, decodeURIComponent(new URL(request.url).pathname));
  if (!file.startsWith(folder + path.sep)) return new Response("outside of the folder", { status: 403 });
  try {
    return new Response(await readFile(file), { headers: { "content-type": TYPES[path.extname(file)] ?? "application/octet-stream" } });
  } catch (error) {
    return new Response(error.code, { status: 404 });
  }
};
