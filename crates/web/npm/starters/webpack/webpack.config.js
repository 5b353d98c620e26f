import { fileURLToPath } from "node:url";

// Nothing for chaski: webpack finds its worker and its module of WebAssembly.
export default {
  mode: "production",
  entry: "./main.js",
  output: { path: fileURLToPath(new URL("dist", import.meta.url)), filename: "main.js", clean: true },
  performance: { hints: false },
};
