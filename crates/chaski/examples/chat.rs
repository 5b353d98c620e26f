//! A conversation on the terminal, by the model's chat template.
//!
//! `cargo run --release --example chat -p chaski -- [MODEL]`, then a message a line.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::io::{BufRead as _, Write as _};

use chaski::{Engine, GenerateOptions, Message, SamplerParams, Source, TemplateOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).map_or(Source::Default, Source::path);
    pollster::block_on(async {
        let mut engine = Engine::builder(source).build().await?;
        let mut messages = Vec::new();
        for line in std::io::stdin().lock().lines() {
            messages.push(Message::new("user", line?));
            let options = GenerateOptions {
                sampler: SamplerParams { seed: Some(1), ..Default::default() },
                max_tokens: Some(128),
                ..Default::default()
            };
            // What was said before is in the cache and is not run again.
            let mut answer = engine.chat(&messages, &TemplateOptions::default(), options)?;
            let mut text = String::new();
            while let Some(piece) = answer.next().await? {
                print!("{}", piece.text);
                std::io::stdout().flush()?;
                text.push_str(&piece.text);
            }
            println!("\n({} tokens of the prompt were in the cache)", answer.stats().n_cached);
            messages.push(Message::new("assistant", text));
        }
        Ok(())
    })
}
