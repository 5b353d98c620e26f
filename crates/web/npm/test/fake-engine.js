// The package as the chat page imports it, in tests: `next` is a list of deltas, errors, and functions that are waited for.

export class EngineError extends Error { constructor(code, message) { super(message); Object.assign(this, { code, hint: "" }); } }
export const inspect = async () => ({});
export const capabilities = async () => ({ device: "gpu", webgpu: true });
const CAT = [["gemma-3-270m","Gemma 3 270M","Tiny and quick: short answers, rewording.",241e6,"gemma",268e6,.4e9],["qwen3-0.6b","Qwen3 0.6B","Small, and thinks before it answers.",397e6,"Apache-2.0",596e6,.93e9],["llama-3.2-1b","Llama 3.2 1B","All-round, with a small cache: long conversations.",808e6,"llama3.2",1.2e9,1.01e9],["qwen3-1.7b","Qwen3 1.7B","Thinks, writes code, follows instructions.",1.11e9,"Apache-2.0",1.7e9,1.65e9],["qwen3-4b","Qwen3 4B","The strongest here; wants a good GPU.",2.5e9,"Apache-2.0",4e9,33.2e9]];
export const models = { list: async () => globalThis.stored ?? [], usage: async () => ({ models: 0, usage: 0, quota: 5e10, persisted: false }), persist: async () => true, remove: async () => true, verify: async () => true,
 catalogue: async () => CAT.map(([id,name,about,bytes,licence,parameters,m]) => ({ id, name, about, bytes, licence, parameters, model: `hf:x/${id}.gguf`, memory: { 4096: m } })) };
export const Engine = {
  create: async ({ onProgress, model, signal }) => {
    onProgress({ stage: "download", file: "m", loaded: 1, total: 2, bytesPerSecond: 1, etaSeconds: 1 });
    if (globalThis.hold) await new Promise((r) => (globalThis.release = r, signal.addEventListener("abort", r)));
    if (signal.aborted) throw new EngineError("aborted", "aborted");
    if (globalThis.refuse) throw new EngineError("out_of_memory", globalThis.refuse);
    return {
      memory: () => ({ total: 1, items: {} }),
      info: () => ({ model: { file: "m", description: "a model" }, device: {}, contextLength: 4096, loading: { totalMs: 1 } }),
      stats: () => ({ promptTokens: 12, cachedTokens: 0, promptTokensPerSecond: 812, tokens: 96, tokensPerSecond: 48.2, timeToFirstTokenMs: 31, ...globalThis.numbers }),
      close: async () => {},
      chat: { completions: { create: (request, { signal }) => (async function* () {
        globalThis.request = request;
        for (const step of globalThis.next) {
          if (typeof step === "function") await Promise.race([step(), new Promise((r) => signal.addEventListener("abort", r))]);
          if (signal.aborted) throw new EngineError("aborted", "aborted");
          if (step instanceof Error) throw step;
          if (step === undefined || typeof step === "function") continue;
          if (step.finish_reason || step.prompt_progress) yield { choices: [{ delta: {}, finish_reason: step.finish_reason }], prompt_progress: step.prompt_progress };
          else yield { choices: [{ delta: step }] };
        }
      })() } },
    };
  },
};
