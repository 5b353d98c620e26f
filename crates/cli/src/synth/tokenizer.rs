//! A tokenizer for models that do not get one from a file.

use anyhow::Result;
use chaski::text::byte_to_char;
use ggml_format::GgufWriter;

use super::shape::Preset;

/// A byte-level vocabulary: a token per byte, fillers, and two special tokens at the end.
///
/// Text is tokenised byte by byte and round-trips.
pub(super) fn made_up_tokenizer(head: &mut GgufWriter, preset: &Preset) -> Result<()> {
    const SPECIAL: [&str; 2] = ["<|begin_of_text|>", "<|end_of_text|>"];
    const CONTROL: i32 = 3;
    const NORMAL: i32 = 1;
    let n_vocab = preset.n_vocab as usize;
    let first_special = n_vocab - SPECIAL.len();
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_to_char(byte).to_string()).collect();
    // A BPE tokenizer needs merges; two spaces are the only one.
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
        .set("tokenizer.ggml.add_bos_token", preset.family.architecture == "llama")?;
    Ok(())
}
