//! The API as an OpenAPI document, made of the tables that routes, readers and tests share.

pub(crate) mod field;
mod operations;
pub(crate) mod requests;
mod responses;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use field::Body;
pub(crate) use operations::*;

/// Dialects of errors.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errors {
    OpenAi,
    /// OpenAI's with the status as `code`.
    Llama,
    Anthropic,
    Ollama,
}

impl Errors {
    fn body(self) -> &'static Body {
        match self {
            Errors::OpenAi | Errors::Llama => &responses::OPENAI_ERROR,
            Errors::Anthropic => &responses::ANTHROPIC_ERROR,
            Errors::Ollama => &responses::OLLAMA_ERROR,
        }
    }
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Get => "get",
            Method::Post => "post",
            Method::Delete => "delete",
        }
    }
}

/// The document of these operations.
pub(crate) fn document(operations: &[&Operation]) -> Value {
    let mut document = Document::default();
    for operation in operations {
        for path in operation.paths {
            let item = document.operation(operation, path);
            let paths = document.paths.entry(path.replace("{*", "{")).or_insert_with(|| json!({}));
            paths[operation.method.name()] = item;
        }
    }
    let tags: Vec<Value> = Tag::ALL.iter().map(|tag| json!({"name": tag.name()})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Chaski",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": env!("CARGO_PKG_DESCRIPTION"),
            "description": "Fields that are not named here are ignored. Each response has the header `x-request-id`.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        // Servers without keys want none.
        "security": [{}, {"bearer": []}, {"key": []}],
        "tags": tags,
        "paths": document.paths,
        "components": {
            "schemas": document.schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    })
}

#[derive(Default)]
struct Document {
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
}

impl Document {
    /// A reference to the schema of a body, which the document has from now on.
    fn schema(&mut self, body: &Body) -> Value {
        self.schemas.entry(body.name).or_insert_with(|| body.schema());
        json!({"$ref": format!("#/components/schemas/{}", body.name)})
    }

    fn content(&mut self, body: &Body) -> Value {
        json!({"application/json": {"schema": self.schema(body)}})
    }

    fn operation(&mut self, operation: &Operation, path: &str) -> Value {
        let name: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let mut item = json!({
            "operationId": format!("{}{}", operation.method.name(), name.trim_end_matches('_')),
            "tags": [operation.tag.name()],
            "summary": operation.about,
            "responses": self.responses(operation),
        });
        let parameters = parameters(operation, path);
        if !parameters.is_empty() {
            item["parameters"] = parameters.into();
        }
        if let Some(body) = operation.body {
            item["requestBody"] = json!({"required": true, "content": self.content(body)});
        }
        match operation.access {
            Access::All => item["security"] = json!([]),
            Access::Keys => {}
            Access::Admins => {
                let who = "With keys, those of the level `admin`; without, programs of the server's machine.";
                item["description"] = who.into();
            }
        }
        item
    }

    fn error(&mut self, operation: &Operation, why: &str) -> Value {
        json!({"description": why, "content": self.content(operation.errors.body())})
    }

    fn responses(&mut self, operation: &Operation) -> Value {
        let mut content = match operation.answer {
            Answer::Refused(status, why) => return json!({status.to_string(): self.error(operation, why)}),
            Answer::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
            Answer::Json(body) | Answer::Stream(body, _) => self.content(body),
        };
        if let Answer::Stream(_, kind) = operation.answer {
            content[kind] = json!({"schema": {"type": "string"}});
        }
        let error = self.error(operation, "The message of the error");
        json!({"200": {"description": "Done", "content": content}, "default": error})
    }
}

/// The parameters in path and query.
fn parameters(operation: &Operation, path: &str) -> Vec<Value> {
    let named = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = named.map(|name| {
        let name = name.trim_start_matches('*');
        json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
    });
    let in_query = operation.query.iter().map(|field| {
        json!({"name": field.name, "in": "query", "description": field.about, "schema": {"type": "string"}})
    });
    in_path.chain(in_query).collect()
}
