//! Several answers at once: prompts come in whenever they like, and share the device.
//!
//! `cargo run --release --example batch -p chaski -- [MODEL]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;

use chaski::{AddSpecial, BatchEvent, Engine, GenerateOptions, ParseSpecial, SamplerParams, Source};

const PROMPTS: [&str; 4] = ["Once upon a time", "Once upon a hill", "The little dog", "Lily and Tom"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).map_or(Source::Default, Source::path);
    pollster::block_on(async {
        // Two answers at a time; the others wait.
        let mut engine = Engine::builder(source).sequences(2).build().await?;
        let tokenizer = engine.tokenizer();
        let prompts = PROMPTS.map(|p| tokenizer.encode(p, AddSpecial::Yes, ParseSpecial::No));
        let options =
            GenerateOptions { sampler: SamplerParams::greedy(), max_tokens: Some(32), ..Default::default() };
        let mut batch = engine.batch();
        let mut texts = BTreeMap::new();
        for (prompt, text) in prompts.into_iter().zip(PROMPTS) {
            let id = batch.submit(&prompt?, options.clone())?;
            texts.insert(id, text.to_owned());
        }
        while batch.n_open() > 0 {
            for event in batch.step().await? {
                match event {
                    BatchEvent::Piece { id, piece } => texts.entry(id).or_default().push_str(&piece.text),
                    BatchEvent::Finished { id, stats, .. } => {
                        println!(
                            "{}\n  ({} tokens, {} in the cache)",
                            texts[&id], stats.n_token, stats.n_cached
                        );
                    }
                    BatchEvent::Failed { error, .. } => return Err(error.into()),
                }
            }
        }
        Ok(())
    })
}
