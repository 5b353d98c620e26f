use std::collections::BTreeSet;
use std::sync::Arc;

use chaski::loras::LoraInfo;
use serde_json::{Value, json};

use super::field::{Body, Field, Form, Kind};
use super::{Errors, requests as ask};
use crate::dialect::{ReadAsk, anthropic, llama, ollama, openai};
use crate::error::ApiError;
use crate::fields::{Fields, recorded};
use crate::fim::Gap;
use crate::loras::Loras;
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
        Kind::Null => vec![Value::Null],
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

/// Reads a body, and returns the errors that it finds.
type Read<'a> = Box<dyn Fn(&Value) -> Vec<ApiError> + 'a>;

/// A body of requests, its smallest values, and its reader.
struct Row<'a> {
    body: &'a Body,
    smallest: Vec<Value>,
    read: Read<'a>,
}

fn row<'a, const N: usize>(
    body: &'a Body,
    smallest: [Value; N],
    read: impl Fn(&Value) -> Vec<ApiError> + 'a,
) -> Row<'a> {
    Row { body, smallest: smallest.to_vec(), read: Box::new(read) }
}

impl Row<'_> {
    /// Reads an object, alone in a list where the body is one.
    fn read(&self, object: Value) -> Vec<ApiError> {
        let is_list = self.body.form == Form::List;
        (self.read)(&if is_list { json!([object]) } else { object })
    }

    /// The smallest values with this one for a field.
    fn with(&self, name: &str, value: &Value) -> impl Iterator<Item = Value> {
        self.smallest.iter().map(move |smallest| {
            let mut body = smallest.clone();
            body[name] = value.clone();
            body
        })
    }

    /// The paths that are read of bodies with each of the fields alone. Of values whose fields are not declared, the
    /// paths in them are left out.
    fn paths(&self) -> BTreeSet<String> {
        recorded::take();
        self.smallest.iter().for_each(|smallest| drop(self.read(smallest.clone())));
        let fields = (self.body.fields)();
        for field in &fields {
            for value in samples(field.kind) {
                self.with(field.name, &value).for_each(|body| drop(self.read(body)));
            }
        }
        let is_open = |path: &str| {
            let (name, rest) = path.split_once(['.', '[']).unwrap_or((path, ""));
            let field = fields.iter().find(|field| field.name == name);
            let is_whole = fields.iter().any(|field| field.name == path);
            !is_whole && !rest.is_empty() && !matches!(field.map(|field| field.kind), Some(Kind::Object(_)))
        };
        let paths = recorded::take().into_iter();
        let in_list = paths.map(|path| path.strip_prefix("[0].").map(String::from).unwrap_or(path));
        in_list.filter(|path| !is_open(path)).collect()
    }

    /// Number of values at and beside the bounds of a field, and those that are not refused exactly where they are
    /// outside.
    fn check_bounds(&self, field: &Field) -> (usize, Vec<String>) {
        let (mut n, mut wrong) = (0, Vec::new());
        for Bounded { path, value, is_outside } in bounded(field) {
            let is_bound = |error: &ApiError| {
                let param = error.param.as_deref().unwrap_or_default();
                let at = param.strip_prefix("[0].").unwrap_or(param);
                at == path
                    && ["must be", "between", "at least"].iter().any(|text| error.message.contains(text))
            };
            let mut errors = self.with(field.name, &value).flat_map(|body| self.read(body));
            let is_refused = errors.any(|error| is_bound(&error));
            if is_refused != is_outside {
                wrong.push(format!("{}: {} = {value}", self.body.name, field.name));
            }
            n += 1;
        }
        (n, wrong)
    }
}

/// A value of a field at or outside of a bound of a number in it.
struct Bounded {
    /// Path of the number.
    path: String,
    value: Value,
    is_outside: bool,
}

/// Values of a field at each of its bounds, and outside.
fn bounded(field: &Field) -> Vec<Bounded> {
    let of = |value: Value, is_outside| Bounded { path: field.name.into(), value, is_outside };
    match field.kind {
        Kind::Integer(from, to) => {
            let low = (from > i64::MIN).then(|| [of(from.into(), false), of((from - 1).into(), true)]);
            let high = (to < i64::MAX).then(|| [of(to.into(), false), of((to + 1).into(), true)]);
            low.into_iter().chain(high).flatten().collect()
        }
        Kind::Number(from, to) => {
            let low = from.is_finite().then(|| [of(from.into(), false), of((from - 1.0).into(), true)]);
            let high = to.is_finite().then(|| [of(to.into(), false), of((to + 1.0).into(), true)]);
            low.into_iter().chain(high).flatten().collect()
        }
        Kind::List(kind @ Kind::Integer(..)) => {
            let inner = bounded(&Field { kind: *kind, ..field.clone() });
            inner.into_iter().map(|one| Bounded { value: json!([one.value]), ..one }).collect()
        }
        Kind::Object(fields) => inside(&fields(), |path| format!("{}.{path}", field.name), |value| value),
        Kind::List(Kind::Object(fields)) => {
            inside(&fields(), |path| format!("{}[0].{path}", field.name), |value| json!([value]))
        }
        _ => Vec::new(),
    }
}

/// Those of the fields of an object, in objects with the needed ones.
fn inside(fields: &[Field], path: impl Fn(&str) -> String, outer: impl Fn(Value) -> Value) -> Vec<Bounded> {
    let needed = fields.iter().filter(|field| field.is_needed);
    let base: Value = needed.map(|field| (field.name.to_owned(), samples(field.kind)[0].clone())).collect();
    let of = |field: &Field| {
        let each = bounded(field).into_iter().map(|one| {
            let mut object = base.clone();
            object[field.name] = one.value;
            Bounded { path: path(&one.path), value: outer(object), ..one }
        });
        each.collect::<Vec<_>>()
    };
    fields.iter().flat_map(of).collect()
}

/// Calls `f` with a row for each body that an operation takes.
fn with_rows(f: impl FnOnce(&[Row<'_>])) {
    fn errors<const N: usize>(read: [Result<(), ApiError>; N]) -> Vec<ApiError> {
        read.into_iter().filter_map(Result::err).collect()
    }
    let mut facts = testing::facts();
    // The most that the command takes.
    facts.dialects.max_n = 256;
    facts.loras = Arc::new(Loras::new(vec![LoraInfo::default()], true));
    // Vectors as long as a request can want them.
    facts.about.n_embd = u32::MAX.into();
    let facts = Arc::new(facts);
    let served = testing::served();
    let lora = |body: &Value| facts.lora_scales(body).map(drop);
    let of = |ask: ReadAsk| {
        let facts = &facts;
        move |body: &Value| errors([ask(body, facts).map(drop), facts.lora_scales(body).map(drop)])
    };
    let stays = |body: &Value| Fields::of(body, "").and_then(|fields| ollama::keep_alive(&fields)).map(drop);
    let chat = json!({"messages": [{"role": "user", "content": "A"}]});
    let message = json!({"messages": [{"role": "user", "content": "A"}], "max_tokens": 1});
    let prompt = json!({"prompt": "A"});
    let embeddings = [json!({"input": "A"}), json!({"content": "A"}), json!({"prompt": "A"})];
    let documents = [json!({"query": "A", "documents": ["B"]}), json!({"query": "A", "texts": ["B"]})];
    let rows = [
        row(&ask::CHAT_REQUEST, [chat.clone()], of(openai::chat::ask)),
        row(&ask::COMPLETION_REQUEST, [prompt.clone()], of(openai::completions::ask)),
        row(&ask::RESPONSE_REQUEST, [json!({"input": "A"})], of(openai::responses::ask)),
        row(&ask::MESSAGE_REQUEST, [message], of(anthropic::messages::ask)),
        row(&ask::COUNT_REQUEST, [chat.clone()], |body| {
            errors([anthropic::messages::counted(body, &facts).map(drop)])
        }),
        row(&ask::NATIVE_REQUEST, [prompt.clone()], of(llama::completion::ask)),
        row(&ask::INFILL_REQUEST, [json!({"input_prefix": "A", "input_suffix": "B"})], |body| {
            let gap = Fields::of(body, "").and_then(|fields| Gap::read(&fields).map(drop));
            // The model of the test has no tokens for it.
            let mut native = body.clone();
            native["prompt"] = "A".into();
            [errors([gap]), of(llama::completion::ask)(&native)].concat()
        }),
        row(&ask::EMBEDDING_REQUEST, embeddings.clone(), |body| {
            errors([openai::embeddings::ask(body, &facts).map(drop), lora(body)])
        }),
        row(&ask::OLLAMA_EMBEDDING_REQUEST, embeddings, |body| {
            errors([stays(body), openai::embeddings::ask(body, &facts).map(drop), lora(body)])
        }),
        row(&ask::RERANK_REQUEST, documents, |body| {
            errors([openai::rerank::rerank(body).map(drop), lora(body)])
        }),
        row(&ask::SCORE_REQUEST, [json!({"text_1": "A", "text_2": "B"})], |body| {
            errors([openai::rerank::score(body).map(drop), lora(body)])
        }),
        row(&ask::TOKENIZE_REQUEST, [json!({"content": "A"}), json!({}), chat.clone()], |body| {
            errors([llama::tokens::tokenize(&served, body).map(drop)])
        }),
        row(&ask::DETOKENIZE_REQUEST, [json!({})], |body| {
            errors([llama::tokens::detokenize(&served, body).map(drop)])
        }),
        row(&ask::RENDER_REQUEST, [prompt.clone()], |body| {
            errors([llama::tokens::prompts(&served, body).map(drop)])
        }),
        row(&ask::LORAS_REQUEST, [json!({"id": 0, "scale": 1})], |body| errors([facts.loras.set(body)])),
        row(&ask::SLOT_REQUEST, [json!({})], |body| {
            errors([crate::http::slots::named(body).map(drop), lora(body)])
        }),
        row(&ask::NAMED_REQUEST, [json!({})], |body| errors([openai::models::named(body).map(drop)])),
        row(&ask::SHOW_REQUEST, [json!({})], |body| errors([ollama::models::shown(body).map(drop)])),
        row(&ask::CONTROL_REQUEST, [json!({}), json!({"id": "A"})], |body| {
            errors([openai::chat::controlled(body).map(drop)])
        }),
        row(&ask::PULL_REQUEST, [json!({})], |body| errors([ollama::pulls::pulled(body).map(drop)])),
        row(&ask::COPY_REQUEST, [json!({}), json!({"source": "A"})], |body| {
            errors([ollama::pulls::copied(body).map(drop)])
        }),
        row(&ask::OLLAMA_CHAT_REQUEST, [chat], |body| {
            let more = errors([ollama::chat::only(body).map(drop), stays(body)]);
            [more, of(ollama::chat::ask)(body)].concat()
        }),
        row(&ask::OLLAMA_GENERATE_REQUEST, [prompt], |body| {
            let more = errors([ollama::generate::only(body).map(drop), stays(body)]);
            [more, of(ollama::generate::ask)(body)].concat()
        }),
    ];
    let taken: BTreeSet<&str> =
        super::ALL.iter().filter_map(|operation| Some(operation.body?.name)).collect();
    let known: BTreeSet<&str> = rows.iter().map(|row| row.body.name).collect();
    assert_eq!(known, taken, "each body that an operation takes has a row");
    f(&rows);
}

#[test]
fn requests_have_the_fields_that_are_read() {
    let chats = declared(&(ask::CHAT_REQUEST.fields)());
    with_rows(|rows| {
        for row in rows {
            let mut found = row.paths();
            let mut declared = declared(&(row.body.fields)());
            // Its description refers to those of chats.
            if row.body.name == ask::TOKENIZE_REQUEST.name {
                found.retain(|path| declared.contains(path) || !chats.contains(path));
            }
            // The model is found before the dialect reads the rest.
            for paths in [&mut declared, &mut found] {
                paths.remove("model");
            }
            assert_eq!(found, declared, "{}", row.body.name);
        }
    });
}

#[test]
fn numbers_are_taken_within_the_bounds_of_the_document() {
    with_rows(|rows| {
        let bounds = |row: &Row<'_>| {
            (row.body.fields)().iter().map(|field| row.check_bounds(field)).collect::<Vec<_>>()
        };
        let (n, wrong): (Vec<usize>, Vec<Vec<String>>) = rows.iter().flat_map(bounds).unzip();
        assert_eq!(wrong.concat(), [""; 0]);
        assert!(n.iter().sum::<usize>() > 500, "{n:?}");
    });
}

#[test]
fn paths_lead_to_their_operations() {
    for operation in super::ALL {
        for path in operation.paths {
            let path = path.replace("{id}", "x").replace("{*id}", "x/y").replace("{digest}", "z");
            assert!(super::at(&path).any(|found| std::ptr::eq(found, *operation)), "{path}");
            assert_eq!(super::errors_of(&path), operation.errors, "{path}");
        }
        for path in operation.paths.iter().filter(|path| !path.contains('{')) {
            assert_eq!(super::route(path), Some(*path));
        }
    }
    for (path, errors) in [
        ("/v1/messages/batches", Errors::Anthropic),
        ("/v1/messagesx", Errors::OpenAi),
        ("/api", Errors::Ollama),
        ("/api/unknown", Errors::Ollama),
        ("/apis", Errors::OpenAi),
        ("/slots/0/x", Errors::Llama),
        ("/unknown", Errors::OpenAi),
    ] {
        assert_eq!((super::at(path).count(), super::errors_of(path)), (0, errors), "{path}");
    }
}

#[test]
fn operations_have_names_of_their_own() {
    let all = [&super::CHAT, &super::MESSAGES, &super::OLLAMA_DELETE, &super::STORED_RESPONSE, &super::MODEL];
    let document = super::document(&all);
    assert_eq!(document["paths"]["/v1/models/{id}"]["get"]["operationId"], "get_v1_models___id");
    assert_eq!(document["paths"]["/v1/models/{id}"]["get"]["parameters"][0]["name"], "id");
    assert_eq!(document["paths"]["/api/delete"]["delete"]["responses"].as_object().unwrap().len(), 2);
    let chat = &document["components"]["schemas"]["ChatCompletionRequest"];
    assert_eq!(chat["required"], json!(["messages"]));
    let temperature = json!({
        "type": ["number", "null"], "minimum": 0.0, "maximum": 1e6,
        "description": "Temperature: 0 takes the most likely token",
    });
    assert_eq!(chat["properties"]["temperature"], temperature);
}
