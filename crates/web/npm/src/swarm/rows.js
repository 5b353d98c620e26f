// Rows of values in the number formats in which they travel (crates/wire/src/rows.rs).

/** Number formats. */
export const Dtype = { F32: 0, F16: 1, BF16: 2, Q8: 3 };

/** Values of a block of q8, and its bytes: an f16 scale and signed codes. */
const [BLOCK, BLOCK_BYTES] = [32, 34];
/** Below this f16 has fewer bits than bf16. */
const SMALL = 2 ** -16;
/** Exponents of values in 16 bits that are not finite. */
const [F16_EXPONENT, BF16_EXPONENT] = [0x7c00, 0x7f80];

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

/** Bytes of a row; NaN for an unknown format. */
export function rowBytes(dtype, width) {
  if (dtype === Dtype.Q8) return Math.ceil(width / BLOCK) * BLOCK_BYTES;
  return [4, 2, 2][dtype] * width;
}

/** The f16 nearest to a value, ties to even, as bits. */
export function toHalf(value) {
  float[0] = value;
  const sign = (bits[0] >>> 16) & 0x8000;
  const magnitude = bits[0] & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) return sign | 0x7e00;
  // From 65520 on values round to infinity.
  if (magnitude >= 0x477f_f000) return sign | F16_EXPONENT;
  if (magnitude < 0x3880_0000) {
    // Beside 0.5 the last bit of f32 is that of subnormal f16.
    float[0] = Math.abs(value) + 0.5;
    return sign | (bits[0] - 0x3f00_0000);
  }
  return sign | ((magnitude - 0x3800_0000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
}

/** The bf16 nearest to a value, ties to even, as bits. */
function toBrain(value) {
  float[0] = value;
  return ((bits[0] + 0x7fff + ((bits[0] >>> 16) & 1)) >>> 16) & 0xffff;
}

/** Values of all f16 by their bits, made at first use. */
let halves;
function fromHalf(word) {
  if (!halves) {
    halves = new Float32Array(65536);
    for (let i = 0; i < 65536; i++) {
      const [exponent, fraction] = [(i >> 10) & 31, i & 1023];
      const normal = exponent === 31 ? (fraction ? NaN : Infinity) : (1 + fraction / 1024) * 2 ** (exponent - 15);
      halves[i] = (i & 0x8000 ? -1 : 1) * (exponent === 0 ? fraction * 2 ** -24 : normal);
    }
  }
  return halves[word];
}

function fromBrain(word) {
  bits[0] = word << 16;
  return float[0];
}

/** The values of rows, of which there are exactly as many bytes. @returns {Float32Array} */
export function decodeRows(dtype, width, nRow, bytes) {
  const own = bytes.slice().buffer;
  if (dtype === Dtype.F32) return new Float32Array(own);
  const values = new Float32Array(width * nRow);
  if (dtype === Dtype.Q8) {
    decodeBlocks(new DataView(own), width, values);
    return values;
  }
  const words = new Uint16Array(own);
  const convert = dtype === Dtype.F16 ? fromHalf : fromBrain;
  for (let i = 0; i < values.length; i++) values[i] = convert(words[i]);
  return values;
}

function decodeBlocks(view, width, values) {
  const perRow = Math.ceil(width / BLOCK);
  for (let i = 0; i < values.length; i++) {
    const column = i % width;
    const at = (Math.floor(i / width) * perRow + Math.floor(column / BLOCK)) * BLOCK_BYTES;
    values[i] = fromHalf(view.getUint16(at, true)) * view.getInt8(at + 2 + (column % BLOCK));
  }
}

export const areFinite = (values) => values.every(Number.isFinite);

/**
 * Encodes finite values. Those that a format cannot hold fall back to a wider one, as do f16 values that are all so small
 * that bf16 has more bits for them; q8 is not made here.
 */
export function encodeRows(values, wanted) {
  let dtype = wanted === Dtype.Q8 ? Dtype.BF16 : wanted;
  if (dtype === Dtype.F16) {
    let most = 0;
    for (const v of values) most = Math.max(most, Math.abs(v));
    if (most > 0 && most < SMALL) dtype = Dtype.BF16;
  }
  for (; dtype !== Dtype.F32; dtype = dtype === Dtype.F16 ? Dtype.BF16 : Dtype.F32) {
    const [convert, exponent] = dtype === Dtype.F16 ? [toHalf, F16_EXPONENT] : [toBrain, BF16_EXPONENT];
    const words = Uint16Array.from(values, convert);
    if (words.every((word) => (word & exponent) !== exponent)) return { dtype, bytes: new Uint8Array(words.buffer) };
  }
  return { dtype, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

/**
 * The weighted sums of the rows of each column, in f32 in the order of slots.
 * @param {{ column: number, slot: number }[]} pairs @param {Float32Array} weights @param {Float32Array} rows
 */
export function sums(pairs, weights, rows, nColumn, width) {
  const order = pairs.map((_, i) => i).sort((a, b) => pairs[a].column - pairs[b].column || pairs[a].slot - pairs[b].slot);
  const out = new Float32Array(nColumn * width);
  for (const i of order) {
    const [to, from, weight] = [pairs[i].column * width, i * width, weights[i]];
    for (let j = 0; j < width; j++) out[to + j] += Math.fround(weight * rows[from + j]);
  }
  return out;
}
