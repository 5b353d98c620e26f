//! A chat on the terminal, with the model's chat template.
//!
//! `cargo run --release --example chat -p chaski -- [MODEL]`, then one message per line.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::io::{BufRead as _, Write as _};

use chaski::text::{AnswerEvent, TemplateOptions};
use chaski::{ChatEvent, Engine, GenerateOptions, Message, SamplerParams, Source};

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
            // The conversation so far is in the KV cache and is not run again.
            let mut answer = engine.chat(&messages, &TemplateOptions::default(), options)?;
            while let Some(event) = answer.next().await? {
                match event {
                    ChatEvent::Part(AnswerEvent::Content(text)) => {
                        print!("{text}");
                        std::io::stdout().flush()?;
                    }
                    ChatEvent::Finished { answer, stats, .. } => {
                        println!("\n({} tokens of the prompt were in the cache)", stats.n_cached);
                        messages.push(answer.into_message(0));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    })
}
