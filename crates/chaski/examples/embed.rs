//! How alike texts are: the cosines of the angles between their embeddings.
//!
//! `cargo run --release --example embed -p chaski -- [MODEL]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use chaski::embedding::Pooling;
use chaski::{EmbedOptions, Engine, Source};

const TEXTS: [&str; 3] = [
    "The little dog ran to the park.",
    "A puppy was running in the garden.",
    "She baked a cake with her mom.",
];

fn main() -> Result<(), chaski::Error> {
    let source = std::env::args().nth(1).map_or(Source::Default, Source::path);
    pollster::block_on(async {
        let mut engine = Engine::builder(source).build().await?;
        // Models made for embeddings say how they want to be pooled; any other takes the mean here.
        let pooling = Pooling::of(engine.model().metadata()).unwrap_or(Pooling::Mean);
        let options = EmbedOptions { pooling: Some(pooling), ..EmbedOptions::default() };
        let all = engine.embed(&TEXTS, &options).await?;
        for (text, a) in TEXTS.iter().zip(&all) {
            // Their lengths are 1, so their products are the cosines.
            let cosine = |b: &chaski::Embedding| -> f32 {
                a.vectors[0].iter().zip(&b.vectors[0]).map(|(a, b)| a * b).sum()
            };
            let row: Vec<String> = all.iter().map(|b| format!("{:6.3}", cosine(b))).collect();
            println!("{}  {text}", row.join(" "));
        }
        Ok(())
    })
}
