//! A tokenizer for models that get none from a file.

use anyhow::Result;
use ggml_format::GgufWriter;

use super::presets::Preset;

/// A byte-level vocabulary: a token for each byte, fillers, and the two special tokens at the end.
///
/// Text becomes one token a byte, and comes back unchanged.
pub(super) fn made_up_tokenizer(head: &mut GgufWriter, preset: &Preset) -> Result<()> {
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
