// A GGUF file cut into a set, as llama.cpp's gguf-split does: the first file has the metadata, all have tensors.

const [UINT16, INT32, STRING, ARRAY] = [2, 5, 8, 9];
/** Bytes of the values of each type. */
const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, null, null, 8, 8, 8];
const ALIGNMENT = 32;

const aligned = (n) => Math.ceil(n / ALIGNMENT) * ALIGNMENT;
const number = (size, value) => {
  const out = Buffer.alloc(size);
  out.writeUIntLE(value, 0, Math.min(size, 6));
  return out;
};
const string = (text) => Buffer.concat([number(8, Buffer.byteLength(text)), Buffer.from(text)]);
const entry = (key, type, value) => Buffer.concat([string(key), number(4, type), number(SIZES[type], value)]);

/** Reads from place to place. */
class Reader {
  at = 0;
  constructor(bytes) {
    this.bytes = bytes;
  }
  number(size) {
    this.at += size;
    return this.bytes.readUIntLE(this.at - size, Math.min(size, 6));
  }
  string() {
    const n = this.number(8);
    this.at += n;
    return this.bytes.toString("utf8", this.at - n, this.at);
  }
  skip(type) {
    if (type === STRING) this.string();
    else if (type === ARRAY) {
      const [inner, n] = [this.number(4), this.number(8)];
      for (let i = 0; i < n; i++) this.skip(inner);
    } else this.at += SIZES[type];
  }
}

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
