//! `chaski convert`: writes a folder of Hugging Face or of MLC as a GGUF file.

use std::path::PathBuf;

use anyhow::Result;
use chaski::source::folder::{OpenOptions, Types};

use super::input::open_folder;
use super::layout::parse_size;
use super::parse_target;
use super::plan::Target;
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Writes a checkpoint of Hugging Face or of MLC as a GGUF file.

DIR has config.json, the tokenizer, and the weights: model.safetensors, or several such files with their index; or what \
MLC has in their place. Without \
--type, tensors keep the types of the checkpoint; 8-bit floats and other codes that GGUF does not have become q8_0. TYPE is \
one of the types of `chaski quantize`; matrices in mxfp4 stay as they are.

All other commands take DIR as a model, too, without converting it. The model is streamed: memory use does not depend on \
its size. docs/checkpoints.md lists the classes that are known.";

/// Write a checkpoint of Hugging Face or MLC as a GGUF file.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the checkpoint
    #[arg(value_name = "DIR")]
    pub(crate) input: PathBuf,
    /// Output file; with --split, the prefix of the file names
    output: PathBuf,
    /// File type, such as q4_k_m, or a tensor type for all matrices [default: as in the checkpoint]
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    target: Option<Target>,
    /// Split the output into files of about this size, such as 45G: OUTPUT-00001-of-00003.gguf and so on
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    split: Option<u64>,
    /// Name of the rule that splits texts into words (tokenizer.ggml.pre), where the tokenizer's own is not known
    #[arg(long, value_name = "NAME")]
    pre: Option<String>,
    /// Convert classes and formats that were never compared with the original
    #[arg(long)]
    allow_unproven: bool,
    /// Dry run: print tensor types and sizes, write nothing
    #[arg(long)]
    dry_run: bool,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

fn parse_type(name: &str) -> Result<Target, String> {
    match parse_target(name)? {
        Target::Copy => Err("without --type, types are those of the checkpoint".into()),
        target => Ok(target),
    }
}

/// Writes the model, or prints the plan.
///
/// # Errors
/// If the folder cannot be read as a model, or the file cannot be written.
pub(crate) fn run(args: Args, ui: &Ui) -> Result<()> {
    let types = if args.target.is_some() { Types::Exact } else { Types::Auto };
    let options = OpenOptions { types, pre: args.pre, allow_unproven: args.allow_unproven };
    let (model, notes) = open_folder(&args.input, &options)?;
    notes.iter().for_each(|note| ui.note(note));
    let args = super::Args {
        target: args.target.unwrap_or(Target::Copy),
        split_max_size: args.split,
        dry_run: args.dry_run,
        threads: args.threads,
        keep_coded: true,
        ..super::Args::plain(args.input, args.output)
    };
    super::write(&model, &args.wishes()?, &args, ui)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser as _;
    use ggml_format::{FileType, GgmlType};

    use super::*;
    use crate::quantize::input::{Model, open};

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// Runs the command with these arguments.
    fn convert(words: &[&str]) -> Result<()> {
        let words = ["convert"].iter().chain(words);
        run(Line::try_parse_from(words)?.args, &Ui::silent())
    }

    /// The golden checkpoints.
    fn checkpoints() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/weights/checkpoints")
    }

    /// Name, type and bytes of all tensors.
    fn tensors(model: &Model) -> Vec<(String, GgmlType, Vec<u8>)> {
        let bytes = |t: &ggml_format::TensorInfo| {
            let mut bytes = vec![0; t.n_byte as usize];
            pollster::block_on(model.read_tensor(t, 0, &mut bytes)).unwrap();
            bytes
        };
        let mut all: Vec<_> = model.tensors().iter().map(|t| (t.name.clone(), t.ty, bytes(t))).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// The folder as a file, in these types.
    fn opened(folder: &Path, types: Types) -> Model {
        open_folder(folder, &OpenOptions { types, ..OpenOptions::default() }).unwrap().0
    }

    #[test]
    fn a_converted_file_is_the_folder() {
        let checkpoints = checkpoints();
        let dir = tempfile::tempdir().unwrap();
        let cases = [
            ("llama-rope3-tied", None, Types::Auto),
            ("deepseek3", None, Types::Auto),
            ("llama-ct-int4", None, Types::Auto),
            ("gpt-oss", Some("f32"), Types::Mix(FileType::F32)),
            ("llama-gptq", Some("q8_0"), Types::Mix(FileType::Q8_0)),
            ("gpt-oss-mxfp4", Some("q8_0"), Types::Mix(FileType::Q8_0)),
        ];
        for (name, ty, types) in cases {
            let (folder, out) = (checkpoints.join(name), dir.path().join(format!("{name}.gguf")));
            let mut words = vec![folder.to_str().unwrap(), out.to_str().unwrap()];
            words.extend(ty.iter().flat_map(|ty| ["--type", ty]));
            convert(&words).unwrap();
            let (found, expected) = (open(&out).unwrap(), opened(&folder, types));
            assert!(tensors(&found) == tensors(&expected), "{name}");
            for (key, value) in expected.metadata().iter() {
                assert_eq!(found.metadata().get(key), Some(value), "{name}: {key}");
            }
        }
    }

    #[test]
    fn a_set_of_files_has_the_same_tensors() {
        let checkpoints = checkpoints();
        let dir = tempfile::tempdir().unwrap();
        let folder = checkpoints.join("qwen3");
        let out = dir.path().join("set.gguf");
        convert(&[folder.to_str().unwrap(), out.to_str().unwrap(), "--split", "50K"]).unwrap();
        let set = open(&dir.path().join("set-00001-of-00002.gguf")).unwrap();
        assert!(set.shards().len() == 2 && tensors(&set) == tensors(&opened(&folder, Types::Auto)));
    }

    #[test]
    fn files_of_the_folder_are_not_overwritten_and_other_folders_are_refused() {
        let checkpoints = checkpoints();
        let dir = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(checkpoints.join("llama-gqa")).unwrap() {
            let path = entry.unwrap().path();
            std::fs::write(dir.path().join(path.file_name().unwrap()), std::fs::read(&path).unwrap())
                .unwrap();
        }
        let (folder, weights) = (dir.path().to_str().unwrap(), dir.path().join("model.safetensors"));
        let before = std::fs::read(&weights).unwrap();
        let error = convert(&[folder, weights.to_str().unwrap()]).unwrap_err().to_string();
        assert!(error.ends_with("the output must not be an input file"), "{error}");
        assert!(std::fs::read(&weights).unwrap() == before);
        std::fs::remove_file(&weights).unwrap();
        let error = format!("{:#}", convert(&[folder, "out.gguf"]).unwrap_err());
        assert!(error.contains("expected model.safetensors or"), "{error}");
        assert!(!Path::new("out.gguf").exists());
    }
}
