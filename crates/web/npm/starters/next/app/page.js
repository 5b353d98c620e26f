"use client";

import { Engine } from "chaski";
import { useEffect, useState } from "react";

async function run(signal, show) {
  const model = new URLSearchParams(location.search).get("model") ?? "hf:Qwen/Qwen3-0.6B-GGUF:Q8_0";
  const onProgress = ({ stage, loaded, total }) => show({ state: `${stage} ${loaded} of ${total ?? "?"}` });
  const engine = await Engine.create({ model, signal, onProgress });
  signal.addEventListener("abort", () => engine.close());
  show({ state: engine.info().model.description });
  let answer = "";
  const messages = [{ role: "user", content: "Tell me about the chaski of the Inca." }];
  for await (const chunk of engine.chat.completions.create({ messages, stream: true, max_tokens: 48 }, { signal })) {
    answer += chunk.choices[0]?.delta.content ?? "";
    show({ answer });
  }
}

export default function Page() {
  const [found, setFound] = useState({ state: "", answer: "" });
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const show = (part) => signal.aborted || setFound((before) => ({ ...before, ...part }));
    run(signal, show).catch((error) => show({ state: `${error.code}: ${error.message}` }));
    return () => controller.abort();
  }, []);
  return ["state", "answer"].map((name) => (
    <p key={name}>
      <output>{found[name]}</output>
    </p>
  ));
}
