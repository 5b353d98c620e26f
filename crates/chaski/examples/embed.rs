//! Similarity of texts: cosine similarity of their embeddings.
//!
//! `cargo run --release --example embed -p chaski -- [MODEL]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use chaski::embedding::{EmbedOptions, Pooling};
use chaski::{Engine, Source};

const TEXTS: [&str; 3] = [
    "The little dog ran to the park.",
    "A puppy was running in the garden.",
    "She baked a cake with her mom.",
];

fn main() -> Result<(), chaski::Error> {
    let source = std::env::args().nth(1).map_or(Source::Default, Source::path);
    pollster::block_on(async {
        let mut engine = Engine::builder(source).build().await?;
        // Embedding models specify their pooling; for others, use the mean.
        let pooling = Pooling::of(engine.model().metadata()).unwrap_or(Pooling::Mean);
        let options = EmbedOptions { pooling: Some(pooling), ..EmbedOptions::default() };
        let all = engine.embed(&TEXTS, &options).await?;
        for (text, a) in TEXTS.iter().zip(&all) {
            // Embeddings have length 1, so the dot product is the cosine.
            let cosine = |b: &chaski::embedding::Embedding| -> f32 {
                a.vectors[0].iter().zip(&b.vectors[0]).map(|(a, b)| a * b).sum()
            };
            let row: Vec<String> = all.iter().map(|b| format!("{:6.3}", cosine(b))).collect();
            println!("{}  {text}", row.join(" "));
        }
        Ok(())
    })
}
