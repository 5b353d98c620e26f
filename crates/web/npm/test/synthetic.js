// A model in the shape of the default one with all sizes but the vocabulary's times a factor, whose weights are made while
// they are sent.

import { Reader, aligned, number } from "./gguf.js";

/** Sizes that grow: of rows, and how many heads of the same size there are. */
const GROWS = ["embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv"].map((k) => `llama.${k}`);

/** Blocks of ggml's types 0, 12 and 14: values in it, and its bytes. */
function block(type) {
  // Anything but regular; what are scales is small.
  const bytes = Buffer.from(Array.from({ length: 210 }, (_, i) => (i * 89 + 41) & 0xff));
  if (type === 0) return [1, Buffer.from([0, 0, 0x80, 0x3f])];
  if (type === 12) {
    bytes.writeUInt16LE(0x1000, 0);
    bytes.writeUInt16LE(0x1c00, 2);
    return [256, bytes.subarray(0, 144)];
  }
  if (type === 14) {
    bytes.writeUInt16LE(0x0800, 208);
    return [256, bytes];
  }
  throw new Error(`the default model has tensors of type ${type}, too`);
}

/** The whole file's size, and a function that makes its bytes from one place to another. */
export function synthetic(bytes, factor) {
  const reader = new Reader(bytes);
  reader.at = 4;
  const [version, nTensor, nEntry] = [reader.number(4), reader.number(8), reader.number(8)];
  const head = [Buffer.from("GGUF"), number(4, version), number(8, nTensor), number(8, nEntry)];
  for (let i = 0; i < nEntry; i++) {
    const from = reader.at;
    const key = reader.string();
    const type = reader.number(4);
    const at = reader.at;
    reader.skip(type);
    const whole = Buffer.from(bytes.subarray(from, reader.at));
    if (GROWS.includes(key)) whole.writeUInt32LE(bytes.readUInt32LE(at) * factor, at - from);
    head.push(whole);
  }
  const tensors = [];
  let offset = 0;
  for (let i = 0; i < nTensor; i++) {
    const from = reader.at;
    const name = reader.string();
    const nDim = reader.number(4);
    const afterName = reader.at - 4;
    const sizes = Array.from({ length: nDim }, () => reader.number(8));
    const type = reader.number(4);
    reader.number(8);
    const grown = sizes.map((n, d) => (name === "token_embd.weight" && d === 1 ? n : n * factor));
    const [nValue, pattern] = block(type);
    const nByte = (grown.reduce((a, b) => a * b) / nValue) * pattern.length;
    head.push(bytes.subarray(from, afterName), number(4, nDim), ...grown.map((n) => number(8, n)), number(4, type), number(8, offset));
    // Many blocks, so that few copies make a piece.
    tensors.push({ offset, nByte, pattern: Buffer.concat(Array(256).fill(pattern)) });
    offset += aligned(nByte);
  }
  const front = Buffer.concat(head);
  const data = aligned(front.length);
  return {
    size: data + offset,
    bytes(from, to) {
      const out = Buffer.alloc(to - from);
      if (from < front.length) front.copy(out, 0, from, Math.min(to, front.length));
      for (const { offset, nByte, pattern } of tensors) {
        let at = Math.max(from, data + offset);
        const end = Math.min(to, data + offset + nByte);
        while (at < end) {
          const phase = (at - data - offset) % pattern.length;
          at += pattern.copy(out, at - from, phase, Math.min(pattern.length, phase + end - at));
        }
      }
      return out;
    },
  };
}
