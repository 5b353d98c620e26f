// Reading and writing of GGUF files, as far as tests make some.

export const [UINT16, INT32, STRING, ARRAY] = [2, 5, 8, 9];
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
