// Bindings of modules of WebAssembly that few pages need.

/** Imports bindings that lie at an address. Bundlers copy them as they are: those that make one script of a worker would put all into it. */
export const later = (url) => import(/* webpackIgnore: true */ /* @vite-ignore */ url.href);
