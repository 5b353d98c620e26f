// A GGUF file cut into a set, as llama.cpp's gguf-split does: the first file has the metadata, all have tensors.

import { INT32, Reader, UINT16, aligned, entry, number } from "./gguf.js";

/** The set of `n` files. */
export function split(bytes, n) {
  const reader = new Reader(bytes);
  reader.at = 4;
  const [version, nTensor, nEntry] = [reader.number(4), reader.number(8), reader.number(8)];
  const from = reader.at;
  for (let i = 0; i < nEntry; i++) {
    reader.string();
    reader.skip(reader.number(4));
  }
  const metadata = bytes.subarray(from, reader.at);
  const tensors = Array.from({ length: nTensor }, () => {
    const begin = reader.at;
    reader.string();
    const nDim = reader.number(4);
    reader.at += 8 * nDim + 4;
    return { head: bytes.subarray(begin, reader.at), offset: reader.number(8) };
  });
  const data = bytes.subarray(aligned(reader.at));
  const ends = [...tensors.map((t) => t.offset), data.length].sort((a, b) => a - b);
  const parts = Array.from({ length: n }, () => []);
  tensors.forEach((tensor, i) => parts[Math.floor((i * n) / nTensor)].push(tensor));
  return parts.map((part, i) => {
    const entries = [entry("split.no", UINT16, i), entry("split.count", UINT16, n), entry("split.tensors.count", INT32, nTensor)];
    let offset = 0;
    const [infos, bodies] = [[], []];
    for (const tensor of part) {
      const body = data.subarray(tensor.offset, ends.find((end) => end > tensor.offset));
      infos.push(tensor.head, number(8, offset));
      bodies.push(body, Buffer.alloc(aligned(body.length) - body.length));
      offset += aligned(body.length);
    }
    const nAll = entries.length + (i === 0 ? nEntry : 0);
    const counts = [Buffer.from("GGUF"), number(4, version), number(8, part.length), number(8, nAll)];
    const head = Buffer.concat([...counts, ...(i === 0 ? [metadata] : []), ...entries, ...infos]);
    return Buffer.concat([head, Buffer.alloc(aligned(head.length) - head.length), ...bodies]);
  });
}
