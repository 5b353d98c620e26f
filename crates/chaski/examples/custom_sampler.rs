//! A custom sampler over the model's logits: the most probable token that has not occurred yet.
//!
//! `cargo run --release --example custom_sampler -p chaski -- [MODEL] [PROMPT]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use chaski::text::{AddSpecial, ParseSpecial, RenderSpecial};
use chaski::{Engine, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let source = args.next().map_or(Source::Default, Source::path);
    let prompt = args.next().unwrap_or("Once upon a time".into());
    pollster::block_on(async {
        let mut engine = Engine::builder(source).build().await?;
        let (tokenizer, runner) = engine.parts();
        let mut tokens = tokenizer.encode(&prompt, AddSpecial::Yes, ParseSpecial::No)?;
        runner.prefill(&tokens).await?;
        for _ in 0..24 {
            let logits = runner.logits().await?;
            let unused = (0..runner.n_vocab()).filter(|t| !tokens.contains(t));
            let best = unused.max_by(|a, b| logits[*a as usize].total_cmp(&logits[*b as usize]));
            let Some(token) = best.filter(|t| !tokenizer.is_eog(*t)) else { break };
            tokens.push(token);
            runner.prefill(&[token]).await?;
        }
        println!("{}", tokenizer.decode_lossy(&tokens, RenderSpecial::No));
        Ok(())
    })
}
