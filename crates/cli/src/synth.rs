//! `chaski synth`: a model of random weights in the shape of a real one, for measurements.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ggml_format::{
    DataWriter, FileType, GgmlType, GgufWriter, Metadata, MixCounters, MmapSource, ModelFacts, mix_order,
    needs_importance, quantize, read_header, tensor_type,
};
use indicatif::{HumanBytes, ProgressBar};
use rayon::prelude::*;

use crate::options;
use crate::output::write_file;
use crate::ui::{BYTES_BAR, Ui};

/// Write a model of random weights in the shape of a real one.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The model whose shape the file gets
    #[arg(long, value_parser = preset_parser())]
    preset: &'static Preset,
    /// The file type, such as q4_k_m; each tensor gets the type that it has in such files
    #[arg(long, value_parser = options::file_type)]
    mix: FileType,
    /// The file to write
    #[arg(long)]
    out: PathBuf,
    /// Start of the random numbers; the same seed gives the same weights in each mix, up to rounding
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A GGUF file to copy the tokenizer from; without it the file gets one of bytes and filler tokens
    #[arg(long, value_name = "GGUF")]
    vocab: Option<PathBuf>,
}

/// The shape of a model.
#[derive(Debug)]
struct Preset {
    name: &'static str,
    architecture: &'static str,
    /// Name of the rule that cuts text into words, `tokenizer.ggml.pre`.
    pre: &'static str,
    n_layer: u32,
    n_embd: u32,
    n_ff: u32,
    n_head: u32,
    n_head_kv: u32,
    d_head: u32,
    n_vocab: u32,
    /// Whether the token embedding is the output matrix too.
    is_tied: bool,
    rope_base: f32,
    /// By how much the longest waves of the rotation are stretched: `rope_freqs.weight`.
    rope_factor: Option<f32>,
    rms_eps: f32,
    n_ctx: u32,
}

const PRESETS: &[Preset] = &[
    Preset {
        name: "llama3.2-1b",
        architecture: "llama",
        pre: "llama-bpe",
        n_layer: 16,
        n_embd: 2048,
        n_ff: 8192,
        n_head: 32,
        n_head_kv: 8,
        d_head: 64,
        n_vocab: 128_256,
        is_tied: true,
        rope_base: 500_000.0,
        rope_factor: Some(32.0),
        rms_eps: 1e-5,
        n_ctx: 131_072,
    },
    Preset {
        name: "llama3.2-3b",
        architecture: "llama",
        pre: "llama-bpe",
        n_layer: 28,
        n_embd: 3072,
        n_ff: 8192,
        n_head: 24,
        n_head_kv: 8,
        d_head: 128,
        n_vocab: 128_256,
        is_tied: true,
        rope_base: 500_000.0,
        rope_factor: Some(32.0),
        rms_eps: 1e-5,
        n_ctx: 131_072,
    },
    Preset {
        name: "llama3.1-8b",
        architecture: "llama",
        pre: "llama-bpe",
        n_layer: 32,
        n_embd: 4096,
        n_ff: 14336,
        n_head: 32,
        n_head_kv: 8,
        d_head: 128,
        n_vocab: 128_256,
        is_tied: false,
        rope_base: 500_000.0,
        rope_factor: Some(8.0),
        rms_eps: 1e-5,
        n_ctx: 131_072,
    },
    Preset {
        name: "qwen3-0.6b",
        architecture: "qwen3",
        pre: "qwen2",
        n_layer: 28,
        n_embd: 1024,
        n_ff: 3072,
        n_head: 16,
        n_head_kv: 8,
        d_head: 128,
        n_vocab: 151_936,
        is_tied: true,
        rope_base: 1_000_000.0,
        rope_factor: None,
        rms_eps: 1e-6,
        n_ctx: 40_960,
    },
    Preset {
        name: "tiny",
        architecture: "llama",
        pre: "llama-bpe",
        n_layer: 4,
        n_embd: 256,
        n_ff: 768,
        n_head: 4,
        n_head_kv: 2,
        d_head: 64,
        n_vocab: 32_000,
        is_tied: true,
        rope_base: 10_000.0,
        rope_factor: None,
        rms_eps: 1e-5,
        n_ctx: 2048,
    },
];

fn preset_parser() -> impl TypedValueParser<Value = &'static Preset> {
    let find = |name: String| PRESETS.iter().find(|p| p.name == name).expect("the parser knows these names");
    PossibleValuesParser::new(PRESETS.iter().map(|p| p.name)).map(find)
}

/// Writes the model.
///
/// # Errors
/// If the vocabulary cannot be read, or the file not be written.
pub(crate) fn run(args: Args, ui: &Ui) -> Result<()> {
    let start = Instant::now();
    let preset = args.preset;
    let vocab = args.vocab.as_deref().map(read_metadata).transpose()?;
    let n_vocab = match &vocab {
        Some(vocab) => vocab.strings("tokenizer.ggml.tokens")?.len() as u32,
        None => preset.n_vocab,
    };
    ensure!(n_vocab > 0, "expected a vocabulary, found one without tokens");
    if n_vocab != preset.n_vocab {
        let usual = preset.n_vocab;
        ui.note(&format!("the vocabulary has {n_vocab} tokens, {} has {usual}", preset.name));
    }
    let tensors = typed(preset.tensors(n_vocab), preset, args.mix)?;

    let mut head = GgufWriter::new();
    preset.describe(&mut head, n_vocab, args.mix)?;
    match &vocab {
        Some(vocab) => {
            head.copy_metadata(vocab, |key| key.starts_with("tokenizer."))?;
        }
        None => made_up_tokenizer(&mut head, preset)?,
    }
    for t in &tensors {
        head.tensor(&t.name, &t.ne, t.ty)?;
    }

    let n_byte = tensors.iter().map(Tensor::n_byte).sum();
    let bar = ui.bar(n_byte, BYTES_BAR);
    let mut weights = Weights::new(args.seed, tensors.iter().map(|t| t.ty))?;
    let inputs: Vec<PathBuf> = args.vocab.into_iter().collect();
    write_file(&args.out, &inputs, |out| {
        let mut data = head.begin(out)?;
        for t in &tensors {
            bar.set_message(t.name.clone());
            weights.write(t, preset, &mut data, &bar)?;
        }
        Ok(data.finish()?)
    })?;
    bar.finish_and_clear();
    let n_param: u64 = tensors.iter().map(|t| t.ne.iter().product::<u64>()).sum();
    ui.say(&format!(
        "{}: {} {}, {:.2} G parameters, {}, in {:.1} s",
        args.out.display(),
        preset.name,
        args.mix,
        n_param as f64 / 1e9,
        HumanBytes(n_byte),
        start.elapsed().as_secs_f64()
    ));
    Ok(())
}

fn read_metadata(path: &Path) -> Result<Metadata> {
    let gguf = pollster::block_on(read_header(&MmapSource::open(path)?))?;
    Ok(gguf.metadata().clone())
}

/// What a tensor's values are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Values {
    Random,
    Ones,
    RopeFactors,
}

#[derive(Debug)]
struct Tensor {
    name: String,
    /// Fastest varying first.
    ne: Vec<u64>,
    values: Values,
    ty: GgmlType,
}

impl Tensor {
    fn n_row(&self) -> u64 {
        self.ne[1..].iter().product()
    }

    fn row_bytes(&self) -> u64 {
        self.ty.row_bytes(self.ne[0]).expect("the mix chooses types that the rows fit")
    }

    fn n_byte(&self) -> u64 {
        self.row_bytes() * self.n_row()
    }
}

impl Preset {
    /// All tensors as f32, in the order in which a quantised file has them.
    fn tensors(&self, n_vocab: u32) -> Vec<Tensor> {
        let (embd, ff) = (u64::from(self.n_embd), u64::from(self.n_ff));
        let d_head = u64::from(self.d_head);
        let q = d_head * u64::from(self.n_head);
        let kv = d_head * u64::from(self.n_head_kv);
        let mut tensors = Vec::new();
        let mut add = |name: &str, values: Values, ne: &[u64]| {
            tensors.push(Tensor {
                name: format!("{name}.weight"),
                ne: ne.to_vec(),
                values,
                ty: GgmlType::F32,
            })
        };
        add("token_embd", Values::Random, &[embd, u64::from(n_vocab)]);
        if !self.is_tied {
            add("output", Values::Random, &[embd, u64::from(n_vocab)]);
        }
        add("output_norm", Values::Ones, &[embd]);
        if self.rope_factor.is_some() {
            add("rope_freqs", Values::RopeFactors, &[d_head / 2]);
        }
        for layer in 0..self.n_layer {
            let mut add =
                |name: &str, values: Values, ne: &[u64]| add(&format!("blk.{layer}.{name}"), values, ne);
            add("attn_norm", Values::Ones, &[embd]);
            add("attn_q", Values::Random, &[embd, q]);
            add("attn_k", Values::Random, &[embd, kv]);
            add("attn_v", Values::Random, &[embd, kv]);
            add("attn_output", Values::Random, &[q, embd]);
            if self.architecture == "qwen3" {
                add("attn_q_norm", Values::Ones, &[d_head]);
                add("attn_k_norm", Values::Ones, &[d_head]);
            }
            add("ffn_norm", Values::Ones, &[embd]);
            add("ffn_gate", Values::Random, &[embd, ff]);
            add("ffn_up", Values::Random, &[embd, ff]);
            add("ffn_down", Values::Random, &[ff, embd]);
        }
        tensors.sort_by(|a, b| mix_order(&a.name).cmp(&mix_order(&b.name)));
        tensors
    }

    /// The metadata but for the tokenizer.
    fn describe(&self, head: &mut GgufWriter, n_vocab: u32, mix: FileType) -> Result<()> {
        head.set("general.architecture", self.architecture)?
            .set("general.type", "model")?
            .set("general.name", format!("{} (random weights)", self.name))?;
        let key = |name: &str| format!("{}.{name}", self.architecture);
        head.set(&key("block_count"), self.n_layer)?
            .set(&key("context_length"), self.n_ctx)?
            .set(&key("embedding_length"), self.n_embd)?
            .set(&key("feed_forward_length"), self.n_ff)?
            .set(&key("attention.head_count"), self.n_head)?
            .set(&key("attention.head_count_kv"), self.n_head_kv)?
            .set(&key("attention.key_length"), self.d_head)?
            .set(&key("attention.value_length"), self.d_head)?
            .set(&key("attention.layer_norm_rms_epsilon"), self.rms_eps)?
            .set(&key("rope.dimension_count"), self.d_head)?
            .set(&key("rope.freq_base"), self.rope_base)?
            .set(&key("vocab_size"), n_vocab)?;
        head.set("general.file_type", mix.id())?.set("general.quantization_version", 2u32)?;
        Ok(())
    }

    /// By how much the rotation of each channel pair is slowed down.
    ///
    /// # Source
    /// Llama 3.1: waves longer than the context of the first training are stretched by the whole factor, those of
    /// less than a quarter of it not at all; between the two the slowdown is blended.
    fn rope_factors(&self) -> Vec<f32> {
        const N_CTX_BEFORE: f32 = 8192.0;
        const LOW: f32 = 1.0;
        const HIGH: f32 = 4.0;
        let factor = self.rope_factor.unwrap_or(1.0);
        let n_pair = self.d_head / 2;
        let of_pair = |pair: u32| {
            let frequency = self.rope_base.powf(-(pair as f32) / n_pair as f32);
            let n_turn = N_CTX_BEFORE * frequency / std::f32::consts::TAU;
            let blend = ((n_turn - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
            1.0 / ((1.0 - blend) / factor + blend)
        };
        (0..n_pair).map(of_pair).collect()
    }
}

/// Gives each tensor its type.
fn typed(mut tensors: Vec<Tensor>, preset: &Preset, mix: FileType) -> Result<Vec<Tensor>> {
    let mut facts = ModelFacts {
        n_layer: preset.n_layer,
        n_attn_v: preset.n_layer,
        gqa: preset.n_head / preset.n_head_kv,
        n_expert: 0,
        has_output: !preset.is_tied,
        is_70b: false,
        has_importance: false,
    };
    // Files of some types are only ever made with importance weights, and these change the rules.
    for has_importance in [false, true] {
        facts.has_importance = has_importance;
        let mut counters = MixCounters::default();
        for t in &mut tensors {
            t.ty = tensor_type(mix, &t.name, &t.ne, &facts, &mut counters)?.unwrap_or(GgmlType::F32);
        }
        if !tensors.iter().any(|t| needs_importance(mix, &t.name, t.ty)) {
            break;
        }
    }
    Ok(tensors)
}

/// A byte-level vocabulary: a token for each byte, fillers, and the two special tokens at the end.
///
/// Text becomes one token a byte, and comes back unchanged.
fn made_up_tokenizer(head: &mut GgufWriter, preset: &Preset) -> Result<()> {
    const SPECIAL: [&str; 2] = ["<|begin_of_text|>", "<|end_of_text|>"];
    const CONTROL: i32 = 3;
    const NORMAL: i32 = 1;
    let n_vocab = preset.n_vocab as usize;
    let first_special = n_vocab - SPECIAL.len();
    let mut tokens: Vec<String> = byte_chars().iter().map(char::to_string).collect();
    // A tokenizer of this kind has merges; two spaces are the only one.
    let space = tokens[usize::from(b' ')].clone();
    tokens.push(space.repeat(2));
    tokens.extend((tokens.len()..first_special).map(|id| format!("<tok_{id}>")));
    tokens.extend(SPECIAL.map(String::from));
    let mut kinds = vec![NORMAL; n_vocab];
    kinds[first_special..].fill(CONTROL);
    head.set("tokenizer.ggml.model", "gpt2")?
        .set("tokenizer.ggml.pre", preset.pre)?
        .set("tokenizer.ggml.tokens", tokens)?
        .set("tokenizer.ggml.token_type", kinds)?
        .set("tokenizer.ggml.merges", vec![format!("{space} {space}")])?
        .set("tokenizer.ggml.bos_token_id", first_special as u32)?
        .set("tokenizer.ggml.eos_token_id", first_special as u32 + 1)?
        .set("tokenizer.ggml.add_bos_token", preset.architecture == "llama")?;
    Ok(())
}

/// The character that stands for each byte in byte-level vocabularies.
///
/// Bytes that are printable in Latin-1 stand for themselves; the others get the characters from U+0100 on.
fn byte_chars() -> [char; 256] {
    let mut next = 0x100;
    std::array::from_fn(|byte| match byte as u32 {
        c @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => char::from_u32(c).expect("a character of Latin-1"),
        _ => {
            next += 1;
            char::from_u32(next - 1).expect("a character of Latin Extended-A")
        }
    })
}

/// Standard deviation of the weights.
const DEVIATION: f32 = 0.02;

/// Values that a pool holds: rows are stretches of it.
const POOL_LEN: usize = 1 << 22;

/// Rows begin at multiples of this in a pool, a multiple of every block length.
const POOL_STEP: usize = 256;

/// Bytes that are written at once, about.
const CHUNK_BYTES: u64 = 8 << 20;

/// Random weights: a pool of blocks for each type, from which rows are taken at random places.
struct Weights {
    pools: BTreeMap<GgmlType, Vec<u8>>,
    random: Random,
    chunk: Vec<u8>,
}

impl Weights {
    fn new(seed: u64, types: impl Iterator<Item = GgmlType>) -> Result<Weights> {
        let mut values = vec![0.0; POOL_LEN];
        values.par_chunks_mut(1 << 14).enumerate().for_each(|(i, chunk)| {
            let mut random = Random::new(seed, i as u64 + 1);
            for pair in chunk.chunks_exact_mut(2) {
                pair.copy_from_slice(&random.normal_pair().map(|x| x * DEVIATION));
            }
        });
        let mut pools = BTreeMap::new();
        for ty in types {
            if let Entry::Vacant(entry) = pools.entry(ty) {
                entry.insert(pool(ty, &values)?);
            }
        }
        Ok(Weights { pools, random: Random::new(seed, 0), chunk: Vec::new() })
    }

    fn write(
        &mut self,
        t: &Tensor,
        preset: &Preset,
        data: &mut DataWriter<impl Write>,
        bar: &ProgressBar,
    ) -> Result<()> {
        if t.values != Values::Random {
            let values =
                if t.values == Values::Ones { vec![1.0f32; t.ne[0] as usize] } else { preset.rope_factors() };
            let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
            data.write(&t.name, &bytes)?;
            bar.inc(bytes.len() as u64);
            return Ok(());
        }
        let pool = &self.pools[&t.ty];
        let row_bytes = t.row_bytes() as usize;
        let step_bytes = POOL_STEP / t.ty.block_len() * t.ty.block_bytes();
        let n_place = ((POOL_LEN - t.ne[0] as usize) / POOL_STEP) as u64;
        let chunk_rows = (CHUNK_BYTES / row_bytes as u64).max(1);
        let mut n_left = t.n_row();
        while n_left > 0 {
            let n_row = n_left.min(chunk_rows);
            self.chunk.clear();
            for _ in 0..n_row {
                let start = (self.random.next() % n_place) as usize * step_bytes;
                self.chunk.extend_from_slice(&pool[start..start + row_bytes]);
            }
            data.write(&t.name, &self.chunk)?;
            bar.inc(self.chunk.len() as u64);
            n_left -= n_row;
        }
        Ok(())
    }
}

/// The pool's values in blocks of a type.
fn pool(ty: GgmlType, values: &[f32]) -> Result<Vec<u8>> {
    const N_PIECE: usize = 1 << 12;
    let n_byte = ty.row_bytes(values.len() as u64).context("the pool is no whole number of blocks")?;
    let mut bytes = vec![0; n_byte as usize];
    let piece_bytes = N_PIECE / ty.block_len() * ty.block_bytes();
    let pieces = values.par_chunks(N_PIECE).zip(bytes.par_chunks_mut(piece_bytes));
    pieces.try_for_each(|(x, out)| quantize(ty, x, x.len(), None, out))?;
    Ok(bytes)
}

/// Random numbers that are the same on every machine (splitmix64).
struct Random(u64);

impl Random {
    /// The numbers of one of many streams.
    fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed);
        random.0 = random.next() ^ stream;
        random.0 = random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1].
    fn uniform(&mut self) -> f32 {
        ((self.next() >> 40) + 1) as f32 / (1 << 24) as f32
    }

    /// Two values of the normal distribution, by Box and Muller.
    fn normal_pair(&mut self) -> [f32; 2] {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * self.uniform()).sin_cos();
        [radius * cos, radius * sin]
    }
}

#[cfg(test)]
mod tests {
    fn run(args: Args) -> Result<()> {
        super::run(args, &Ui::silent())
    }

    use chaski::{AddSpecial, ParseSpecial, RenderSpecial, Tokenizer};
    use std::fs;

    use ggml_format::{ModelFile, OpenError, SourceError, dequantize};

    use super::*;

    fn preset(name: &str) -> &'static Preset {
        PRESETS.iter().find(|p| p.name == name).unwrap()
    }

    fn open(path: &Path) -> Result<ModelFile<MmapSource>, OpenError> {
        let alone = async |name: &str| {
            let n_byte = 0;
            Err(SourceError::OutOfRange { name: name.to_owned(), offset: 0, n_byte, len: 0 })
        };
        pollster::block_on(ModelFile::open(MmapSource::open(path)?, alone))
    }

    fn types(preset: &Preset, mix: FileType) -> BTreeMap<String, GgmlType> {
        let tensors = typed(preset.tensors(preset.n_vocab), preset, mix).unwrap();
        tensors.into_iter().map(|t| (t.name, t.ty)).collect()
    }

    #[test]
    fn tensors_of_a_q4_k_m_file_have_the_types_of_the_mix() {
        let types = types(preset("tiny"), FileType::Q4_K_M);
        let expect = |name: &str, ty: GgmlType| assert_eq!(types[name], ty, "{name}");
        expect("token_embd.weight", GgmlType::Q6_K);
        expect("output_norm.weight", GgmlType::F32);
        // Of four layers the third and the last get more bits.
        for (layer, ty) in [GgmlType::Q4_K, GgmlType::Q4_K, GgmlType::Q6_K, GgmlType::Q6_K].iter().enumerate()
        {
            expect(&format!("blk.{layer}.attn_v.weight"), *ty);
            expect(&format!("blk.{layer}.ffn_down.weight"), *ty);
            expect(&format!("blk.{layer}.attn_k.weight"), GgmlType::Q4_K);
            expect(&format!("blk.{layer}.ffn_norm.weight"), GgmlType::F32);
        }
    }

    #[test]
    fn presets_have_the_parameters_of_their_models() {
        let expected = [
            ("llama3.2-1b", 1_235_814_432),
            ("llama3.2-3b", 3_212_749_888),
            ("llama3.1-8b", 8_030_261_312),
            ("qwen3-0.6b", 596_049_920),
        ];
        for (name, n_param) in expected {
            let preset = preset(name);
            let tensors = preset.tensors(preset.n_vocab);
            let found: u64 = tensors.iter().map(|t| t.ne.iter().product::<u64>()).sum();
            assert_eq!(found, n_param, "{name}");
        }
    }

    #[test]
    fn tensors_stand_in_the_order_of_a_quantised_file() {
        let tensors = preset("llama3.1-8b").tensors(10);
        let names: Vec<&str> = tensors.iter().map(|t| t.name.as_str()).collect();
        let globals = ["output.weight", "output_norm.weight", "rope_freqs.weight", "token_embd.weight"];
        assert_eq!(names[..4], globals);
        assert_eq!(names[4], "blk.0.attn_k.weight");
        assert_eq!(names[names.len() - 1], "blk.31.ffn_up.weight");
    }

    #[test]
    fn rope_factors_stretch_long_waves_and_leave_short_ones() {
        let factors = preset("llama3.2-1b").rope_factors();
        assert_eq!(factors.len(), 32);
        assert_eq!(factors[0], 1.0);
        assert_eq!(factors[31], 32.0);
        assert!(factors.is_sorted());
        // Wave of pair 16: 2 pi sqrt(500000) = 4442.9 tokens, of which 8192 hold 1.8438.
        let blend = (1.843_8 - 1.0) / 3.0;
        assert!((factors[16] - 1.0 / ((1.0 - blend) / 32.0 + blend)).abs() < 1e-2, "{}", factors[16]);
    }

    #[test]
    fn a_written_model_opens_with_all_tensors_and_finite_values() {
        let dir = tempfile::tempdir().unwrap();
        // A mix of quantisers, and one of codebooks.
        for mix in [FileType::F16, FileType::Q4_K_M, FileType::IQ1_M] {
            let out = dir.path().join(format!("{mix}.gguf"));
            run(Args { preset: preset("tiny"), mix, out: out.clone(), seed: 7, vocab: None }).unwrap();
            let model = open(&out).unwrap();
            assert_eq!(model.metadata().u32("general.file_type").unwrap(), mix.id());
            let expected = typed(preset("tiny").tensors(32_000), preset("tiny"), mix).unwrap();
            assert_eq!(model.tensors().len(), expected.len());
            for (found, expected) in model.tensors().iter().zip(&expected) {
                assert_eq!(found.name, expected.name);
                assert_eq!(found.ty, expected.ty, "{}", found.name);
                assert_eq!(found.n_byte, expected.n_byte(), "{}", found.name);
                let bytes = model.tensor_bytes(found).unwrap();
                assert_eq!((found.ty.info().invalid_block)(bytes), None, "{}", found.name);
                let mut values = vec![0.0; found.n_elem() as usize];
                dequantize(found.ty, bytes, &mut values).unwrap();
                let square: f64 = values.iter().map(|&x| f64::from(x).powi(2)).sum();
                let size = (square / values.len() as f64).sqrt();
                let expected = if expected.values == Values::Random { f64::from(DEVIATION) } else { 1.0 };
                // Codes of less than two bits lose a tenth of the size.
                assert!((size / expected - 1.0).abs() < 0.15, "{}: {size}", found.name);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_weights_in_each_mix() {
        let dir = tempfile::tempdir().unwrap();
        let written = |mix: FileType, seed: u64| {
            let out = dir.path().join("model.gguf");
            run(Args { preset: preset("tiny"), mix, out: out.clone(), seed, vocab: None }).unwrap();
            let model = open(&out).unwrap();
            let t = model.tensor("blk.2.ffn_up.weight").unwrap();
            let mut values = vec![0.0; t.n_elem() as usize];
            dequantize(t.ty, model.tensor_bytes(t).unwrap(), &mut values).unwrap();
            values
        };
        let error = |a: &[f32], b: &[f32]| {
            let square: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
            (square / a.len() as f64).sqrt() / f64::from(DEVIATION)
        };
        let exact = written(FileType::F32, 7);
        assert!(error(&exact, &written(FileType::Q8_0, 7)) < 0.01);
        assert!(error(&exact, &written(FileType::F32, 8)) > 1.0);
    }

    #[test]
    fn the_made_up_tokenizer_gives_texts_back() {
        let dir = tempfile::tempdir().unwrap();
        for preset in PRESETS {
            let mut head = GgufWriter::new();
            preset.describe(&mut head, preset.n_vocab, FileType::F16).unwrap();
            made_up_tokenizer(&mut head, preset).unwrap();
            let path = dir.path().join("vocab.gguf");
            fs::write(&path, head.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
            let tokenizer = Tokenizer::from_metadata(&read_metadata(&path).unwrap()).unwrap();
            assert_eq!(tokenizer.n_vocab(), preset.n_vocab as usize);
            let text = "Grüezi,  \u{1f999}!\n\tit's 12345 <tok_300>";
            let ids = tokenizer.encode(text, AddSpecial::Yes, ParseSpecial::Yes).unwrap();
            assert_eq!(ids.first() == tokenizer.bos().as_ref(), preset.architecture == "llama");
            assert_eq!(tokenizer.decode(&ids, RenderSpecial::No), text.as_bytes());
            assert!(tokenizer.is_eog(preset.n_vocab - 1));
        }
    }

    #[test]
    fn a_tokenizer_is_copied_and_decides_the_size_of_the_vocabulary() {
        let dir = tempfile::tempdir().unwrap();
        let (vocab, out) = (dir.path().join("vocab.gguf"), dir.path().join("model.gguf"));
        let mut head = GgufWriter::new();
        head.set("tokenizer.ggml.tokens", vec!["a", "b", "c"]).unwrap();
        head.set("general.name", "another").unwrap();
        fs::write(&vocab, head.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
        let mix = FileType::Q8_0;
        run(Args { preset: preset("tiny"), mix, out: out.clone(), seed: 1, vocab: Some(vocab) }).unwrap();
        let model = open(&out).unwrap();
        assert_eq!(model.tensor("token_embd.weight").unwrap().ne[1], 3);
        assert_eq!(model.metadata().strings("tokenizer.ggml.tokens").unwrap().len(), 3);
        assert_eq!(model.metadata().str("general.name").unwrap(), "tiny (random weights)");
        assert_eq!(model.metadata().u32("llama.vocab_size").unwrap(), 3);
    }
}
