use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::field::{Body, Field, Kind};
use super::requests as ask;
use crate::dialect::{anthropic, llama, ollama, openai};
use crate::fields::recorded;
use crate::model::Facts;
use crate::testing;

/// Values that a field takes, of each of its kinds and words.
fn samples(kind: Kind) -> Vec<Value> {
    match kind {
        Kind::Any | Kind::Text => vec![json!("x")],
        Kind::Flag => vec![json!(true)],
        Kind::Integer(from, to) => vec![json!(1.clamp(from, to))],
        Kind::Number(from, to) => vec![json!(0.5f64.clamp(from, to))],
        Kind::Words(words) => words.iter().map(|word| json!(word)).collect(),
        Kind::List(kind) => samples(*kind).into_iter().map(|value| json!([value])).collect(),
        Kind::Object(fields) => objects(&fields()),
        Kind::Map => vec![json!({})],
        Kind::Either(kinds) => kinds.iter().flat_map(|kind| samples(*kind)).collect(),
    }
}

/// Objects with all fields, and each value of each field in one of them.
fn objects(fields: &[Field]) -> Vec<Value> {
    let all: Vec<(&str, Vec<Value>)> = fields.iter().map(|field| (field.name, samples(field.kind))).collect();
    let first: Value = all.iter().map(|(name, values)| ((*name).to_owned(), values[0].clone())).collect();
    let with = |(name, value): (&str, &Value)| {
        let mut object = first.clone();
        object[name] = value.clone();
        object
    };
    all.iter().flat_map(|(name, values)| values.iter().map(|value| with((name, value)))).collect()
}

/// The paths of fields, and of those of objects in them.
fn declared(fields: &[Field]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for field in fields {
        paths.insert(field.name.to_owned());
        if let Kind::Object(inner) = field.kind {
            paths.extend(declared(&inner()).into_iter().map(|path| format!("{}.{path}", field.name)));
        }
    }
    paths
}

/// The paths that are read of bodies with each of the fields alone. Of values whose fields are not declared, the paths in
/// them are left out.
fn read(body: &Body, smallest: &Value, read: &dyn Fn(&Value)) -> BTreeSet<String> {
    recorded::take();
    read(smallest);
    let fields = (body.fields)();
    for field in &fields {
        for value in samples(field.kind) {
            let mut body = smallest.clone();
            body[field.name] = value;
            read(&body);
        }
    }
    let is_open = |path: &str| {
        let (name, rest) = path.split_once(['.', '[']).unwrap_or((path, ""));
        let field = fields.iter().find(|field| field.name == name);
        let is_whole = fields.iter().any(|field| field.name == path);
        !is_whole && !rest.is_empty() && !matches!(field.map(|field| field.kind), Some(Kind::Object(_)))
    };
    recorded::take().into_iter().filter(|path| !is_open(path)).collect()
}

/// A body, its smallest value, and its reader.
type Row<'a> = (&'a Body, Value, &'a dyn Fn(&Value));

/// The body without a field, of which others are older names.
fn without(body: &Value, name: &str) -> Value {
    let mut other = body.clone();
    other.as_object_mut().unwrap().remove(name);
    other
}

#[test]
fn requests_have_the_fields_that_are_read() {
    let facts: Facts = testing::facts();
    let shared = Arc::new(testing::facts());
    let of = |dialect: crate::dialect::ReadAsk| {
        let facts = &facts;
        // Errors of samples do not matter here.
        move |body: &Value| {
            drop(dialect(body, facts));
            drop(facts.lora_scales(body));
        }
    };
    let chat = json!({"messages": [{"role": "user", "content": "A"}]});
    let message = json!({"messages": [{"role": "user", "content": "A"}], "max_tokens": 1});
    let prompt = json!({"prompt": "A"});
    let rows: [Row<'_>; 11] = [
        (&ask::CHAT_REQUEST, chat.clone(), &of(openai::chat::ask)),
        (&ask::COMPLETION_REQUEST, prompt.clone(), &of(openai::completions::ask)),
        (&ask::RESPONSE_REQUEST, json!({"input": "A"}), &of(openai::responses::ask)),
        (&ask::MESSAGE_REQUEST, message, &of(anthropic::messages::ask)),
        (&ask::NATIVE_REQUEST, prompt.clone(), &of(llama::completion::ask)),
        (&ask::EMBEDDING_REQUEST, json!({"input": "A"}), &|body| {
            [body, &without(body, "input")]
                .into_iter()
                .for_each(|body| drop(openai::embeddings::ask(body, &shared)));
            drop(shared.lora_scales(body));
        }),
        (&ask::RERANK_REQUEST, json!({"query": "A", "documents": ["B"]}), &|body| {
            [body, &without(body, "documents")]
                .into_iter()
                .for_each(|body| drop(openai::rerank::rerank(body)));
            drop(shared.lora_scales(body));
        }),
        (&ask::SCORE_REQUEST, json!({"text_1": "A", "text_2": "B"}), &|body| {
            drop(openai::rerank::score(body));
            drop(shared.lora_scales(body));
        }),
        (&ask::OLLAMA_CHAT_REQUEST, chat, &|body| {
            drop(ollama::chat::only(body));
            drop(ollama::keep_alive(&crate::fields::Fields::of(body, "").unwrap()));
            of(ollama::chat::ask)(body);
        }),
        (&ask::OLLAMA_GENERATE_REQUEST, prompt, &|body| {
            drop(ollama::generate::only(body));
            drop(ollama::keep_alive(&crate::fields::Fields::of(body, "").unwrap()));
            of(ollama::generate::ask)(body);
        }),
        (&ask::INFILL_REQUEST, json!({"input_prefix": "A", "input_suffix": "B"}), &|body| {
            let fields = crate::fields::Fields::of(body, "").unwrap();
            drop(crate::fim::Gap::read(&fields));
            // The model of the test has no tokens for it.
            let mut native = body.clone();
            native["prompt"] = "A".into();
            of(llama::completion::ask)(&native);
        }),
    ];
    for (body, smallest, reader) in rows {
        let found = read(body, &smallest, reader);
        let mut declared = declared(&(body.fields)());
        // The model is found before the dialect reads the rest.
        declared.remove("model");
        assert_eq!(found, declared, "{}", body.name);
    }
}

#[test]
fn operations_have_names_of_their_own() {
    let all = [&super::CHAT, &super::MESSAGES, &super::OLLAMA_DELETE, &super::STORED_RESPONSE, &super::MODEL];
    let document = super::document(&all, |_| super::Errors::OpenAi);
    assert_eq!(document["paths"]["/v1/models/{id}"]["get"]["operationId"], "get_v1_models___id");
    assert_eq!(document["paths"]["/v1/models/{id}"]["get"]["parameters"][0]["name"], "id");
    assert_eq!(document["paths"]["/api/delete"]["delete"]["responses"].as_object().unwrap().len(), 1);
    let chat = &document["components"]["schemas"]["ChatCompletionRequest"];
    assert_eq!(chat["required"], json!(["messages"]));
    let temperature = json!({
        "type": ["number", "null"], "minimum": 0.0, "maximum": 1e6,
        "description": "Temperature: 0 takes the most likely token",
    });
    assert_eq!(chat["properties"]["temperature"], temperature);
}
