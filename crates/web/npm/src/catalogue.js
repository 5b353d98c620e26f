// Models that are known to work in pages, as data: what they are, what they take, and how a file is recognised.

/** The bytes of a token in an f16 cache: keys and values of all layers. */
const kv = (layers, heads, width) => layers * heads * width * 2 * 2;

/** Beside the weights: activations and buffers of prompts. */
const REST = 64e6;
const CONTEXTS = [2048, 4096, 8192, 16384];

/** Id, name, file on Hugging Face, bytes (about), sha256, licence, parameters, context trained for, bytes of a token in the cache, what it is good for. */
const MODELS = [
  ["gemma-3-270m", "Gemma 3 270M", "ggml-org/gemma-3-270m-it-qat-GGUF/gemma-3-270m-it-qat-Q4_0.gguf", 241e6, "3626e245220ca4a1c5911eb4010b3ecb7bdbf5bc53c79403c21355354d1e2dc6", "gemma", 268e6, 32768, kv(18, 1, 256), "Tiny and quick: short answers, rewording."],
  ["qwen3-0.6b", "Qwen3 0.6B", "MaziyarPanahi/Qwen3-0.6B-GGUF/Qwen3-0.6B.Q4_K_M.gguf", 397e6, "dc4503da5d7cc7254055a86cd90e1a8c9d16c6ac71eb3a32b34bf48a1f4e0999", "Apache-2.0", 596e6, 40960, kv(28, 8, 128), "Small, and thinks before it answers."],
  ["lfm2-1.2b-tool", "LFM2 1.2B Tool", "bartowski/LiquidAI_LFM2-1.2B-Tool-GGUF/LiquidAI_LFM2-1.2B-Tool-Q4_K_M.gguf", 731e6, "6bdf2292a137c12264a065d73c12b61065293440b753249727cec0b6dc350d64", "LFM-1.0", 1.17e9, 128000, kv(6, 8, 64), "Made for calling functions."],
  ["gemma-3-1b", "Gemma 3 1B", "ggml-org/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M.gguf", 806e6, "8ccc5cd1f1b3602548715ae25a66ed73fd5dc68a210412eea643eb20eb75a135", "gemma", 1e9, 32768, kv(26, 1, 256), "Good at many languages for its size."],
  ["llama-3.2-1b", "Llama 3.2 1B", "hugging-quants/Llama-3.2-1B-Instruct-Q4_K_M-GGUF/llama-3.2-1b-instruct-q4_k_m.gguf", 808e6, "1d0e9419ec4e12aef73ccf4ffd122703e94c48344a96bc7c5f0f2772c2152ce3", "llama3.2", 1.24e9, 131072, kv(16, 8, 64), "All-round, with a small cache: long conversations."],
  ["qwen3-1.7b", "Qwen3 1.7B", "MaziyarPanahi/Qwen3-1.7B-GGUF/Qwen3-1.7B.Q4_K_M.gguf", 1.11e9, "ea2aa5f1cce3c8df81ae5fd292a6ed265b8393cc89534dc21fc5327cc974116a", "Apache-2.0", 1.72e9, 40960, kv(28, 8, 128), "Thinks, writes code, follows instructions."],
  ["smollm3-3b", "SmolLM3 3B", "bartowski/HuggingFaceTB_SmolLM3-3B-GGUF/HuggingFaceTB_SmolLM3-3B-Q4_K_M.gguf", 1.92e9, "519732558d5fa7420ab058e1b776dcfe73da78013c2fe59c7ca43c325ef89132", "Apache-2.0", 3.08e9, 65536, kv(36, 4, 128), "Open data and recipe; thinks if asked."],
  ["llama-3.2-3b", "Llama 3.2 3B", "hugging-quants/Llama-3.2-3B-Instruct-Q4_K_M-GGUF/llama-3.2-3b-instruct-q4_k_m.gguf", 2.02e9, "c55a83bfb6396799337853ca69918a0b9bbb2917621078c34570bc17d20fd7a1", "llama3.2", 3.21e9, 131072, kv(28, 8, 128), "All-round."],
  ["granite-4.0-micro", "Granite 4.0 Micro", "bartowski/ibm-granite_granite-4.0-micro-GGUF/ibm-granite_granite-4.0-micro-Q4_K_M.gguf", 2.1e9, "bd9d7b4795b9dc44e3e81aeae93bb5d8e6b891b7e823be5bf9910ed3ac060baf", "Apache-2.0", 3.4e9, 131072, kv(40, 8, 64), "Functions, summaries, documents."],
  ["qwen3-4b", "Qwen3 4B", "MaziyarPanahi/Qwen3-4B-GGUF/Qwen3-4B.Q4_K_M.gguf", 2.5e9, "a37931937683a723ae737a0c6fc67dab7782fd8a1b9dea2ca445b7a1dbd5ca3a", "Apache-2.0", 4.02e9, 40960, kv(36, 8, 128), "The strongest here; wants a good GPU."],
];

/** One entry for each model, the smallest first. */
export const catalogue = () =>
  MODELS.map(([id, name, path, bytes, sha256, licence, parameters, trainedContext, perToken, about]) => {
    const file = path.slice(path.lastIndexOf("/") + 1);
    const memory = Object.fromEntries(CONTEXTS.filter((n) => n <= trainedContext).map((n) => [n, bytes + n * perToken + REST]));
    return { id, name, about, model: `hf:${path}`, file, bytes, sha256, licence, parameters, trainedContext, memory };
  });
