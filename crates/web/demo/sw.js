// The page's files, for when there is no network: from the network while there is one. Models are not among them.

const KEPT = "chaski-page";
/** So long the network may take, in milliseconds, for a file that is kept. */
const PATIENCE = 4000;

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(keepAll());
});
addEventListener("activate", (event) => event.waitUntil(clients.claim()));

/** Keeps all files of the site; `files.json` lists them. */
async function keepAll() {
  const response = await fetch("files.json", { cache: "no-cache" });
  if (!response.ok) throw new Error(`files.json: ${response.status}`);
  const cache = await caches.open(KEPT);
  await cache.addAll((await response.json()).map((file) => new Request(file, { cache: "no-cache" })));
}

addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  const isOurs = request.method === "GET" && url.href.startsWith(registration.scope) && !request.headers.has("range") && !url.pathname.endsWith(".gguf");
  if (isOurs) event.respondWith(answer(request).then(isolated));
});

/** The page may share memory between threads, with which the CPU computes where there is no GPU: servers of static files rarely say so. */
function isolated(response) {
  if (!response.ok) return response;
  const headers = new Headers(response.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

async function answer(request) {
  const cache = await caches.open(KEPT);
  const kept = await cache.match(request, { ignoreSearch: true });
  const fresh = load(request, cache);
  if (!kept) return fresh;
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE, kept));
  return Promise.race([fresh.catch(() => kept), late]);
}

async function load(request, cache) {
  const response = await fetch(request);
  // A site that fails for now does not take the place of what works.
  if (response.ok && response.type === "basic") await cache.put(request, response.clone());
  else if (response.status >= 500) throw new Error(`${request.url}: ${response.status}`);
  return response;
}
