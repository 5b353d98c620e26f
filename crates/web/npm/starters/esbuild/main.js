import { Engine } from "chaski";

const model = new URLSearchParams(location.search).get("model") ?? "hf:Qwen/Qwen3-0.6B-GGUF:Q8_0";
const [state, answer] = document.querySelectorAll("output");

try {
  // esbuild finds neither: build.js puts them here.
  const places = { workerUrl: "worker.js", wasmUrl: "chaski_web_bg.wasm", grammarUrl: "chaski_grammar_bg.wasm" };
  const engine = await Engine.create({ model, ...places, onProgress: ({ stage, loaded, total }) => (state.value = `${stage} ${loaded} of ${total ?? "?"}`) });
  state.value = engine.info().model.description;
  const messages = [{ role: "user", content: "Tell me about the chaski of the Inca." }];
  for await (const chunk of engine.chat.completions.create({ messages, stream: true, max_tokens: 48 })) {
    answer.append(chunk.choices[0]?.delta.content ?? "");
  }
} catch (error) {
  state.value = `${error.code}: ${error.message} ${error.hint}`;
}
