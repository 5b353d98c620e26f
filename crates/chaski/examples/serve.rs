//! Several answers at once: requests arrive at any time, from any thread, and share the device.
//!
//! `cargo run --release --example serve -p chaski -- [MODEL]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::thread;

use chaski::serve::Event;
use chaski::{Engine, GenerateOptions, SamplerParams, Source};

const PROMPTS: [&str; 4] = ["Once upon a time", "Once upon a hill", "The little dog", "Lily and Tom"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).map_or(Source::Default, Source::path);
    // Two answers at a time; other requests wait.
    let engine = pollster::block_on(Engine::builder(source).sequences(2).build())?;
    let handle = engine.spawn()?;
    let options =
        GenerateOptions { sampler: SamplerParams::greedy(), max_tokens: Some(32), ..Default::default() };
    let callers = PROMPTS.map(|prompt| {
        let (handle, options) = (handle.clone(), options.clone());
        thread::spawn(move || pollster::block_on(tell(&handle, prompt, options)))
    });
    for caller in callers {
        caller.join().expect("a caller that does not panic").map_err(|e| e as Box<dyn std::error::Error>)?;
    }
    Ok(())
}

async fn tell(
    handle: &chaski::Handle,
    prompt: &str,
    options: GenerateOptions,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut answer = handle.generate(prompt, options)?;
    let mut text = prompt.to_owned();
    while let Some(event) = answer.next().await {
        match event {
            Event::Piece(piece) => text.push_str(&piece.text),
            Event::Finished { stats, .. } => {
                println!("{text}\n  ({} tokens, {} in the cache)", stats.n_token, stats.n_cached);
            }
            Event::Failed { error } => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}
