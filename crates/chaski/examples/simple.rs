//! The smallest program: continues a text with the default model, or with a given file.
//!
//! `cargo run --release --example simple -p chaski -- [MODEL] [PROMPT]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::io::Write as _;

use chaski::{Engine, GenerateOptions, SamplerParams, Source};

fn main() -> Result<(), chaski::Error> {
    let mut args = std::env::args().skip(1);
    let source = args.next().map_or(Source::Default, Source::path);
    let prompt = args.next().unwrap_or("Once upon a time".into());
    pollster::block_on(async {
        let mut engine = Engine::builder(source).build().await?;
        let options =
            GenerateOptions { sampler: SamplerParams::greedy(), max_tokens: Some(96), ..Default::default() };
        let mut answer = engine.generate(&prompt, options)?;
        while let Some(piece) = answer.next().await? {
            print!("{}", piece.text);
            let _ = std::io::stdout().flush();
        }
        println!("\n{:?}", answer.stats());
        Ok(())
    })
}
