//! The fuzz targets of templates, grammars, schemas and tokenizers with random changes of their seeds.
#![cfg(feature = "constraint")]

#[path = "fuzz/bodies.rs"]
mod bodies;
#[path = "../../../fuzz/drive.rs"]
mod drive;

use drive::drive;

#[test]
fn templates() {
    drive("template", bodies::template);
}

#[test]
fn grammars() {
    drive("grammar", bodies::grammar);
}

#[test]
fn schemas() {
    drive("schema", bodies::schema);
}

#[test]
fn tokenizers() {
    drive("tokenizer", bodies::tokenizer);
}
