// The declarations are enough for themselves: an older target, and no library of types but the browser's.

import { Engine, type TextChunk } from "chaski";

export async function first(engine: Engine): Promise<TextChunk | undefined> {
  for await (const chunk of engine.completions.create({ prompt: "x", stream: true })) return chunk;
  return undefined;
}
