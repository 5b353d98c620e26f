// Models that are known to work in pages, as data: what they are, what they take, and how a file is recognised.

/** The bytes of a token in an f16 cache: keys and values of all layers. */
const kv = (layers, heads, width) => layers * heads * width * 2 * 2;

/** Beside the weights: activations and buffers of prompts. */
const REST = 64e6;
const CONTEXTS = [2048, 4096, 8192, 16384];

/**
 * Id, name, file on Hugging Face, bytes, sha256, licence, parameters, context trained for, bytes of a token in the cache, its use.
 * Sizes and hashes are those that several programs which download the same files expect.
 */
const MODELS = [
  ["gemma-3-270m", "Gemma 3 270M", "ggml-org/gemma-3-270m-it-qat-GGUF/gemma-3-270m-it-qat-Q4_0.gguf", 241_410_624, "3626e245220ca4a1c5911eb4010b3ecb7bdbf5bc53c79403c21355354d1e2dc6", "gemma", 268e6, 32768, kv(18, 1, 256), "Tiny and quick: short answers, rewording."],
  ["qwen3-0.6b", "Qwen3 0.6B", "unsloth/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q4_K_M.gguf", 396_705_472, "ac2d97712095a558e31573f62f466a3f9d93990898b0ec79d7c974c1780d524a", "Apache-2.0", 596e6, 40960, kv(28, 8, 128), "Small, and thinks before it answers."],
  ["lfm2-1.2b-tool", "LFM2 1.2B Tool", "LiquidAI/LFM2-1.2B-Tool-GGUF/LFM2-1.2B-Tool-Q4_K_M.gguf", 730_894_048, "3a942f51f9f3088c0b502b61ee49480a3d8c54de369f9c53ee5668419caf67a7", "LFM-1.0", 1.17e9, 128000, kv(6, 8, 64), "Made for calling functions."],
  ["gemma-3-1b", "Gemma 3 1B", "ggml-org/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M.gguf", 806_058_240, "8ccc5cd1f1b3602548715ae25a66ed73fd5dc68a210412eea643eb20eb75a135", "gemma", 1e9, 32768, kv(26, 1, 256), "Good at many languages for its size."],
  ["llama-3.2-1b", "Llama 3.2 1B", "hugging-quants/Llama-3.2-1B-Instruct-Q4_K_M-GGUF/llama-3.2-1b-instruct-q4_k_m.gguf", 807_690_656, "1d0e9419ec4e12aef73ccf4ffd122703e94c48344a96bc7c5f0f2772c2152ce3", "llama3.2", 1.24e9, 131072, kv(16, 8, 64), "All-round, with a small cache: long conversations."],
  ["qwen3-1.7b", "Qwen3 1.7B", "unsloth/Qwen3-1.7B-GGUF/Qwen3-1.7B-Q4_K_M.gguf", 1_107_409_472, "b139949c5bd74937ad8ed8c8cf3d9ffb1e99c866c823204dc42c0d91fa181897", "Apache-2.0", 1.72e9, 40960, kv(28, 8, 128), "Thinks, writes code, follows instructions."],
  ["smollm3-3b", "SmolLM3 3B", "bartowski/HuggingFaceTB_SmolLM3-3B-GGUF/HuggingFaceTB_SmolLM3-3B-Q4_K_M.gguf", 1_915_305_792, "519732558d5fa7420ab058e1b776dcfe73da78013c2fe59c7ca43c325ef89132", "Apache-2.0", 3.08e9, 65536, kv(36, 4, 128), "Open data and recipe; thinks if asked."],
  ["llama-3.2-3b", "Llama 3.2 3B", "bartowski/Llama-3.2-3B-Instruct-GGUF/Llama-3.2-3B-Instruct-Q4_K_M.gguf", 2_019_377_696, "6c1a2b41161032677be168d354123594c0e6e67d2b9227c84f296ad037c728ff", "llama3.2", 3.21e9, 131072, kv(28, 8, 128), "All-round."],
  ["granite-4.0-micro", "Granite 4.0 Micro", "ibm-granite/granite-4.0-micro-GGUF/granite-4.0-micro-Q4_K_M.gguf", 2_099_502_528, "97c417dcc0534b0737c74016fb2af083cb17c3b51eaac621192d23961b7024eb", "Apache-2.0", 3.4e9, 131072, kv(40, 8, 64), "Functions, summaries, documents."],
  ["qwen3-4b", "Qwen3 4B", "Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf", 2_497_280_256, "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5", "Apache-2.0", 4.02e9, 40960, kv(36, 8, 128), "The strongest here; wants a good GPU."],
];

/** One entry for each model, the smallest first. */
export const catalogue = () =>
  MODELS.map(([id, name, path, bytes, sha256, licence, parameters, trainedContext, perToken, about]) => {
    const file = path.slice(path.lastIndexOf("/") + 1);
    const memory = Object.fromEntries(CONTEXTS.filter((n) => n <= trainedContext).map((n) => [n, bytes + n * perToken + REST]));
    return { id, name, about, model: `hf:${path}`, file, bytes, sha256, licence, parameters, trainedContext, memory };
  });
