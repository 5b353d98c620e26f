// A folder of Hugging Face or of MLC as one file: by a module of WebAssembly of their own, loaded with the first such model.

import { EngineError } from "./errors.js";
import { later } from "./later.js";

/** Opens a folder; `files` are its files, ready to be read. */
export async function openFolder(name, files, url) {
  let bindings;
  try {
    bindings = await later(new URL("../wasm/folder/chaski_folder.js", import.meta.url));
    await bindings.default({ module_or_path: url ?? new URL("../wasm/folder/chaski_folder_bg.wasm", import.meta.url) });
  } catch (error) {
    throw new EngineError("wasm_failed", `the module of folders did not load: ${error.message}`, "serve it beside the package, or say where it is with folderUrl");
  }
  const made = await known(() => bindings.Checkpoint.open(name, files));
  return {
    name: `${name.split("/").filter(Boolean).pop() ?? "model"}.gguf`,
    size: made.size(),
    notes: made.notes(),
    parts: files,
    read: (offset, length) => known(() => made.read(offset, length)),
    close: () => files.forEach((file) => file.close()),
    free: () => made.free(),
  };
}

/** Errors of the module are texts, those of files are what they were. */
async function known(f) {
  try {
    return await f();
  } catch (error) {
    if (typeof error !== "string") throw error;
    throw new EngineError("unsupported_format", error, "docs/checkpoints.md says which classes and formats there are");
  }
}
