//! `chaski synth`: a model with random weights in the shape of a real one, for benchmarks.

mod families;
mod presets;
mod shape;
mod tokenizer;
mod weights;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use ggml_format::{FileType, GgufWriter, MemorySource, Metadata, read_header};
use indicatif::HumanBytes;

use self::presets::preset_parser;
use self::shape::{Preset, Tensor, typed};
use self::tokenizer::made_up_tokenizer;
use self::weights::Weights;
use crate::options;
use crate::output::write_file;
use crate::progress::Unit;
use crate::ui::Ui;

/// Write a model with random weights in the shape of a real one.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The model whose shape to use
    #[arg(long, value_parser = preset_parser())]
    preset: &'static Preset,
    /// File type, such as q4_k_m; each tensor gets the type that it has in such files
    #[arg(long, value_parser = options::file_type)]
    mix: FileType,
    /// Number of layers, if fewer are enough to measure the kernels in little time and memory
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    layers: Option<u32>,
    /// Output file
    #[arg(long)]
    out: PathBuf,
    /// Random seed; the same seed gives the same weights in each mix, up to rounding
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// GGUF file to copy the tokenizer from; by default bytes and filler tokens
    #[arg(long, value_name = "GGUF")]
    pub(crate) vocab: Option<PathBuf>,
}

/// Writes the model.
///
/// # Errors
/// If the vocabulary cannot be read, or the file cannot be written.
pub(crate) fn run(args: Args, ui: &Ui) -> Result<()> {
    let start = Instant::now();
    let preset = &Preset { n_layer: args.layers.unwrap_or(args.preset.n_layer), ..*args.preset };
    let vocab = args.vocab.as_deref().map(read_metadata).transpose()?;
    let n_vocab = match &vocab {
        Some(vocab) => vocab.strings("tokenizer.ggml.tokens")?.len() as u32,
        None => preset.n_vocab,
    };
    ensure!(n_vocab > 0, "the vocabulary has no tokens");
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
    let progress = ui.progress("synth", Unit::Bytes, n_byte);
    let mut weights = Weights::new(args.seed, tensors.iter().map(|t| t.ty))?;
    let inputs: Vec<PathBuf> = args.vocab.into_iter().collect();
    write_file(&args.out, &inputs, |out| {
        let mut data = head.begin(out)?;
        for t in &tensors {
            progress.message(t.name.as_str());
            weights.write(t, preset, &mut data, &progress)?;
        }
        Ok(data.finish()?)
    })?;
    progress.finish();
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
    let gguf = pollster::block_on(read_header(&MemorySource::map(path)?))?;
    Ok(gguf.metadata().clone())
}

#[cfg(test)]
mod tests {
    fn run(args: Args) -> Result<()> {
        super::run(args, &Ui::silent())
    }

    use std::collections::BTreeMap;

    use chaski::text::{AddSpecial, ParseSpecial, RenderSpecial, Tokenizer};
    use std::fs;

    use ggml_format::{GgmlType, ModelFile, OpenError, SourceError, dequantize};

    use super::presets::PRESETS;
    use super::shape::Values;
    use super::weights::DEVIATION;
    use super::*;

    fn preset(name: &str) -> &'static Preset {
        PRESETS.iter().find(|p| p.name == name).unwrap()
    }

    fn open(path: &Path) -> Result<ModelFile<MemorySource>, OpenError> {
        let alone = |name: &str| {
            let n_byte = 0;
            Err(SourceError::OutOfRange { name: name.to_owned(), offset: 0, n_byte, len: 0 })
        };
        pollster::block_on(ModelFile::open(MemorySource::map(path)?, alone))
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
            ("qwen3-30b-a3b", 30_532_122_624),
            ("qwen3-8b", 8_190_735_360),
            ("llama3.3-70b", 70_553_706_560),
            ("llama3.1-405b", 405_853_388_864),
            ("gemma3-4b", 3_880_263_168),
            ("phi3-mini", 3_821_079_552),
            ("lfm2-1.2b", 1_170_340_608),
            ("gpt-oss-20b", 20_914_757_184),
        ];
        for (name, n_param) in expected {
            let preset = preset(name);
            let tensors = preset.tensors(preset.n_vocab);
            let found: u64 = tensors.iter().map(|t| t.ne.iter().product::<u64>()).sum();
            assert_eq!(found, n_param, "{name}");
        }
    }

    #[test]
    fn presets_are_models_of_their_families() {
        let dir = tempfile::tempdir().unwrap();
        for preset in PRESETS {
            // Layers of all kinds; the weights are a hole in the file, and factors of RoPE, which are read, are none.
            let preset = &Preset { n_layer: preset.n_layer.min(6), rope_factor: None, ..*preset };
            let tensors = typed(preset.tensors(preset.n_vocab), preset, FileType::Q8_0).unwrap();
            let mut head = GgufWriter::new();
            preset.describe(&mut head, preset.n_vocab, FileType::Q8_0).unwrap();
            made_up_tokenizer(&mut head, preset).unwrap();
            for t in &tensors {
                head.tensor(&t.name, &t.ne, t.ty).unwrap();
            }
            let path = dir.path().join("model.gguf");
            let mut file = fs::File::create(&path).unwrap();
            drop(head.begin(&mut file).unwrap());
            let padded = |n: u64| n.next_multiple_of(32);
            let n_byte: u64 = tensors.iter().map(|t| padded(t.n_byte())).sum();
            file.set_len(padded(file.metadata().unwrap().len()) + n_byte).unwrap();
            let model = pollster::block_on(chaski::Source::path(&path).open()).unwrap();
            let unread = pollster::block_on(model.unread()).unwrap();
            let unread: Vec<&str> = unread.iter().map(|t| t.name.as_str()).collect();
            assert!(unread.is_empty(), "{}: nothing reads {unread:?}", preset.name);
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
            run(Args { preset: preset("tiny"), mix, layers: None, out: out.clone(), seed: 7, vocab: None })
                .unwrap();
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
            run(Args { preset: preset("tiny"), mix, layers: None, out: out.clone(), seed, vocab: None })
                .unwrap();
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
            assert_eq!(ids.first() == tokenizer.bos().as_ref(), preset.family.architecture == "llama");
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
        run(Args {
            preset: preset("tiny"),
            mix,
            layers: None,
            out: out.clone(),
            seed: 1,
            vocab: Some(vocab),
        })
        .unwrap();
        let model = open(&out).unwrap();
        assert_eq!(model.tensor("token_embd.weight").unwrap().ne[1], 3);
        assert_eq!(model.metadata().strings("tokenizer.ggml.tokens").unwrap().len(), 3);
        assert_eq!(model.metadata().str("general.name").unwrap(), "tiny (random weights)");
        assert_eq!(model.metadata().u32("llama.vocab_size").unwrap(), 3);
    }
}
