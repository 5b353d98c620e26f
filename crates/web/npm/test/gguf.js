// Reading and writing of GGUF files, as far as tests make some.

export const [UINT16, INT32, FLOAT32, STRING, ARRAY] = [2, 5, 6, 8, 9];
/** Bytes of the values of each type. */
const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, null, null, 8, 8, 8];
const ALIGNMENT = 32;

export const aligned = (n) => Math.ceil(n / ALIGNMENT) * ALIGNMENT;
export const number = (size, value) => {
  const out = Buffer.alloc(size);
  out.writeUIntLE(value, 0, Math.min(size, 6));
  return out;
};
export const string = (text) => Buffer.concat([number(8, Buffer.byteLength(text)), Buffer.from(text)]);
export const entry = (key, type, value) => Buffer.concat([string(key), number(4, type), number(SIZES[type], value)]);

/** Reads from place to place. */
export class Reader {
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

/** A file with more keys: `entries` are those of `entry` and `strings`. */
export function withEntries(bytes, entries) {
  const reader = new Reader(bytes);
  reader.at = 8;
  const [nTensor, nEntry] = [reader.number(8), reader.number(8)];
  const from = reader.at;
  for (let i = 0; i < nEntry; i++) {
    reader.string();
    reader.skip(reader.number(4));
  }
  const keys = reader.at;
  for (let i = 0; i < nTensor; i++) {
    reader.string();
    const nDim = reader.number(4);
    reader.at += 8 * nDim + 4 + 8;
  }
  const head = Buffer.concat([bytes.subarray(0, 8), number(8, nTensor), number(8, nEntry + entries.length), bytes.subarray(from, keys), ...entries, bytes.subarray(keys, reader.at)]);
  return Buffer.concat([head, Buffer.alloc(aligned(head.length) - head.length), bytes.subarray(aligned(reader.at))]);
}

export const text = (key, value) => Buffer.concat([string(key), number(4, STRING), string(value)]);
export const texts = (key, values) => Buffer.concat([string(key), number(4, ARRAY), number(4, STRING), number(8, values.length), ...values.map(string)]);

/** A file of f32 matrices: `tensors` have a name, sizes, the fastest first, and their values. */
export function written(entries, tensors) {
  let offset = 0;
  const infos = tensors.map(({ name, sizes, values }) => {
    const info = Buffer.concat([string(name), number(4, sizes.length), ...sizes.map((n) => number(8, n)), number(4, 0), number(8, offset)]);
    offset += aligned(4 * values.length);
    return info;
  });
  const head = Buffer.concat([Buffer.from("GGUF"), number(4, 3), number(8, tensors.length), number(8, entries.length), ...entries, ...infos]);
  const out = Buffer.alloc(aligned(head.length) + offset);
  head.copy(out);
  let at = aligned(head.length);
  for (const { values } of tensors) {
    Buffer.from(Float32Array.from(values).buffer).copy(out, at);
    at += aligned(4 * values.length);
  }
  return out;
}
