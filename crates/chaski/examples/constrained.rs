//! Output that a program can parse: a JSON object that follows a schema.
//!
//! `cargo run --release --example constrained -p chaski -- [MODEL] [PROMPT]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use chaski::{Engine, GenerateOptions, Grammar, SamplerParams, Source};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let source = args.next().map_or(Source::Default, Source::path);
    let prompt = args.next().unwrap_or("The animal of this story: ".into());
    let schema = json!({
        "type": "object",
        "properties": {
            "animal": { "enum": ["cat", "dog", "mouse"] },
            "legs": { "type": "integer", "minimum": 2, "maximum": 4 },
        },
        "required": ["animal", "legs"],
        "additionalProperties": false,
    });
    pollster::block_on(async {
        let mut engine = Engine::builder(source).build().await?;
        let options = GenerateOptions {
            sampler: SamplerParams::greedy(),
            grammar: Some(Grammar::JsonSchema(schema)),
            max_tokens: Some(64),
            ..Default::default()
        };
        let mut answer = engine.generate(&prompt, options)?;
        let mut text = String::new();
        while let Some(piece) = answer.next().await? {
            text.push_str(&piece.text);
        }
        let value: Value = serde_json::from_str(&text)?;
        let animal = value["animal"].as_str().unwrap_or_default();
        println!("a {animal} with {} legs", value["legs"]);
        Ok(())
    })
}
