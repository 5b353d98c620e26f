//! Tensors with values, for test cases: random inputs, operands of references, and expected outputs.

use ggml_format::GgmlType;

use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::{Dispatch, DispatchError, Step};
use crate::rng::Rng;
use crate::tensor::Tensor;
use crate::values::{decode, to_device};

/// A tensor and the bytes of its buffer, in GGUF layout.
#[derive(Clone, Debug)]
pub struct Data {
    /// Layout of the values.
    pub tensor: Tensor,
    /// Bytes of the whole buffer.
    pub bytes: Vec<u8>,
    /// Values of the whole buffer.
    values: Vec<f64>,
}

impl Data {
    /// A tensor over these bytes.
    pub fn new(tensor: Tensor, bytes: Vec<u8>) -> Self {
        let values = decode(tensor.ty, &bytes);
        Data { tensor, bytes, values }
    }

    /// Uniform values in `low..high`, about one in a hundred an outlier; integers are rounded. Formats without a
    /// quantiser get random valid blocks.
    pub fn random(tensor: Tensor, seed: u64, low: f32, high: f32) -> Self {
        let mut rng = Rng::new(seed);
        let values: Vec<f32> = (0..tensor.n_alloc)
            .map(|_| {
                let v = rng.range(low, high);
                if rng.below(128) == 0 { v * 3.0 } else { v }
            })
            .collect();
        Data::of(tensor, &values, seed)
    }

    /// Values to be quantised: as [`Self::random`], but some runs of 16 or 256 are zeros of either sign, of one sign,
    /// or small. Runs of 256 may also repeat one value, or have it once and then zeros. Within a block such runs have
    /// many scales that fit equally well, so the driver's rounding would decide.
    pub fn runs(tensor: Tensor, seed: u64, low: f32, high: f32) -> Self {
        let mut rng = Rng::new(seed);
        let mut values: Vec<f32> =
            Data::random(tensor, seed, low, high).values.iter().map(|v| *v as f32).collect();
        for block in values.chunks_mut(256) {
            let n = if rng.below(6) == 0 { 256 } else { 16 };
            for run in block.chunks_mut(n) {
                let first = run[0];
                match rng.below(12) {
                    0 => run.fill(0.0),
                    1 => run.fill(-0.0),
                    2 => run.iter_mut().for_each(|v| *v = v.abs()),
                    3 => run.iter_mut().for_each(|v| *v = -v.abs()),
                    4 => run.iter_mut().for_each(|v| *v /= 256.0),
                    5 if n == 256 => run.fill(first),
                    6 if n == 256 => run[1..].fill(0.0),
                    _ => {}
                }
            }
        }
        Data::of(tensor, &values, seed)
    }

    /// These values for the whole buffer, rounded to the type.
    pub fn of(tensor: Tensor, values: &[f32], seed: u64) -> Self {
        let info = tensor.ty.info();
        let n = tensor.n_alloc as usize / info.block_len * info.block_bytes;
        let mut bytes = vec![0; n];
        match (tensor.ty, info.quantize) {
            (_, Some(quantize)) => quantize(values, None, &mut bytes),
            (GgmlType::I8, _) => fill(&mut bytes, values, |v| (v as i8).to_le_bytes()),
            (GgmlType::I16, _) => fill(&mut bytes, values, |v| (v as i16).to_le_bytes()),
            (GgmlType::I32, _) => fill(&mut bytes, values, |v| (v as i32).to_le_bytes()),
            (GgmlType::I64, _) => fill(&mut bytes, values, |v| (v as i64).to_le_bytes()),
            (GgmlType::F64, _) => fill(&mut bytes, values, |v| f64::from(v).to_le_bytes()),
            _ => {
                let mut rng = Rng::new(seed);
                for block in bytes.chunks_exact_mut(info.block_bytes) {
                    loop {
                        block.iter_mut().for_each(|b| *b = rng.below(256) as u8);
                        if (info.invalid_block)(block).is_none() {
                            break;
                        }
                    }
                }
            }
        }
        Data::new(tensor, bytes)
    }

    /// Values of the whole buffer.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The value at these coordinates.
    pub fn at(&self, c: [u32; 4]) -> f64 {
        self.values[self.tensor.index(c)]
    }

    /// The value at these coordinates modulo the sizes (ggml's broadcasting).
    pub fn wrapped(&self, c: [u32; 4]) -> f64 {
        self.at(std::array::from_fn(|k| c[k] % self.tensor.ne[k]))
    }

    /// The bytes of the cell (value or block) at these coordinates, counted in cells.
    pub fn cell(&self, c: [u32; 4]) -> &[u8] {
        let n = self.tensor.ty.block_bytes();
        &self.bytes[self.tensor.cells().index(c) * n..][..n]
    }

    /// The bytes in device layout.
    pub fn device_bytes(&self) -> Vec<u8> {
        to_device(&self.tensor, &self.bytes)
    }

    /// A buffer that is only read.
    pub fn input(&self, binding: &'static str) -> CaseBuffer {
        CaseBuffer::input(binding, &self.device_bytes())
    }
}

fn fill<const N: usize>(bytes: &mut [u8], values: &[f32], f: impl Fn(f32) -> [u8; N]) {
    for (b, v) in bytes.chunks_exact_mut(N).zip(values) {
        b.copy_from_slice(&f(v.round()));
    }
}

/// Initial bytes of an output buffer for tensor `t`, different at every position.
pub(crate) fn before(t: &Tensor) -> Vec<u8> {
    let n = t.n_alloc as usize / t.ty.block_len() * t.ty.block_bytes();
    (0..n).map(|i| (i * 37 % 101) as u8 + 7).collect()
}

/// A case with numeric results: `values` in ggml's order, compared after rounding to the type of y.
pub(crate) fn value_case<S: Into<Vec<Step>>>(
    label: String,
    steps: impl Fn(&Caps) -> Result<S, DispatchError> + Send + Sync + 'static,
    buffers: Vec<CaseBuffer>,
    y: Output,
    values: &[f64],
    max_nmse: f64,
) -> Case {
    encoded_case(label, steps, buffers, y, values, max_nmse, None)
}

/// The same where a search encoded `source` as `values`.
pub(crate) fn encoded_case<S: Into<Vec<Step>>>(
    label: String,
    steps: impl Fn(&Caps) -> Result<S, DispatchError> + Send + Sync + 'static,
    mut buffers: Vec<CaseBuffer>,
    y: Output,
    values: &[f64],
    max_nmse: f64,
    source: Option<Vec<f64>>,
) -> Case {
    let (tensor, bytes) = match y {
        Output::New(t) => (t, before(&t)),
        Output::InPlace(d) => (d.tensor, d.bytes),
    };
    let values = round(tensor.ty, values);
    let expect = Expected::Tensor { tensor, values, max_nmse, source };
    buffers.push(CaseBuffer::output("y", &to_device(&tensor, &bytes), expect));
    Case::new(label, steps, buffers)
}

/// Contents of y before the dispatch.
pub(crate) enum Output {
    /// Irrelevant; bytes between the values must be preserved.
    New(Tensor),
    /// Operands of an in-place operation.
    InPlace(Data),
}

/// A case that moves cells: `source` gives the bytes of the cell at coordinates of y, counted in cells.
pub(crate) fn move_case(
    label: String,
    dispatch: impl Fn(&Caps) -> Result<Dispatch, DispatchError> + Send + Sync + 'static,
    mut buffers: Vec<CaseBuffer>,
    y: Output,
    source: impl Fn([u32; 4]) -> Vec<u8>,
) -> Case {
    let (tensor, bytes) = match y {
        Output::New(t) => (t, before(&t)),
        Output::InPlace(d) => (d.tensor, d.bytes),
    };
    let mut want = bytes.clone();
    let (cells, n) = (tensor.cells(), tensor.ty.block_bytes());
    for i in 0..cells.n_elem() {
        let c = cells.coords(i);
        want[cells.index(c) * n..][..n].copy_from_slice(&source(c));
    }
    let expect = Expected::Bytes(to_device(&tensor, &want));
    buffers.push(CaseBuffer::output("y", &to_device(&tensor, &bytes), expect));
    Case::new(label, dispatch, buffers)
}

/// Values rounded to the type.
fn round(ty: GgmlType, values: &[f64]) -> Vec<f64> {
    match ty {
        GgmlType::F16 => values.iter().map(|v| half::f16::from_f64(*v).to_f64()).collect(),
        GgmlType::BF16 => values.iter().map(|v| half::bf16::from_f64(*v).to_f64()).collect(),
        _ if ty.block_len() > 1 => values.to_vec(),
        GgmlType::I32 | GgmlType::I64 => values.to_vec(),
        _ => values.iter().map(|v| f64::from(*v as f32)).collect(),
    }
}

/// All coordinates of a tensor in ggml's order.
pub(crate) fn each(t: &Tensor) -> impl Iterator<Item = [u32; 4]> + use<> {
    let t = *t;
    (0..t.n_elem()).map(move |i| t.coords(i))
}

/// ggml's tolerance for this type, widened for types whose last bit may round differently.
pub(crate) const fn default_nmse(ty: GgmlType) -> f64 {
    match ty {
        GgmlType::F16 => 1e-6,
        GgmlType::BF16 => 1e-5,
        _ => 1e-7,
    }
}

/// A tensor of random sizes, within a larger one, in a random order of axes.
pub(crate) fn random_tensor(rng: &mut Rng, ty: GgmlType, ne: [u32; 4]) -> Tensor {
    let block = ty.block_len() as u32;
    let mut axes = [0, 1, 2, 3];
    // The first axis of blocks stays where it is.
    let low = if block > 1 { 1 } else { 0 };
    for i in (low + 1..4).rev() {
        let j = low + rng.below((i - low + 1) as u32) as usize;
        axes.swap(i, j);
    }
    let inner: [u32; 4] = std::array::from_fn(|i| ne[axes[i]]);
    let (mut outer, mut at) = (inner, [0; 4]);
    for k in 0..4 {
        let step = if k == 0 { block } else { 1 };
        at[k] = rng.below(2) * rng.below(3) * step;
        outer[k] += at[k] + rng.below(2) * rng.below(4) * step;
    }
    Tensor::new(ty, outer).slice(at, inner).permute(axes)
}

/// Random sizes with at most a few thousand values.
pub(crate) fn random_ne(rng: &mut Rng) -> [u32; 4] {
    let mut ne = [0; 4];
    for (k, n) in ne.iter_mut().enumerate() {
        *n = 1 + rng.below([40, 9, 5, 4][k]);
    }
    let k = rng.below(4) as usize;
    ne.swap(0, k);
    ne
}
