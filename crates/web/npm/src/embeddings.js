// Embeddings in OpenAI's shape.

import { badRequest } from "./errors.js";
import { allow } from "./kinds.js";

const KNOWN = ["input", "model", "encoding_format", "pooling", "lora", "user", "signal"];

/** The texts of a request, and what makes the answer of their vectors. */
export function asked(request) {
  allow(request, KNOWN);
  const { input, pooling, lora, encoding_format: format } = request;
  const texts = typeof input === "string" ? [input] : input;
  if (!Array.isArray(texts) || texts.length === 0 || !texts.every((t) => typeof t === "string")) throw badRequest("input: expected a text or texts");
  const encode = format === "base64" ? base64 : (vector) => [...vector];
  return { texts, pooling, lora: lora && JSON.stringify(lora), whole: (found, model) => whole(found, model, encode, pooling) };
}

function whole(found, model, encode, pooling) {
  // Without pooling there is a vector for each token, of which a text may have but one; a file may say so, too.
  const lists = pooling === "none" || found.some(({ vectors }) => vectors.length > 1);
  const data = found.map(({ vectors }, index) => ({
    object: "embedding",
    index,
    embedding: lists ? vectors.map(encode) : encode(vectors[0]),
  }));
  const tokens = found.reduce((sum, { tokens }) => sum + tokens, 0);
  return { object: "list", model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

/** Floats of 32 bits, the lowest byte first. */
function base64(vector) {
  const bytes = new Uint8Array(4 * vector.length);
  const view = new DataView(bytes.buffer);
  vector.forEach((value, i) => view.setFloat32(4 * i, value, true));
  return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
}
