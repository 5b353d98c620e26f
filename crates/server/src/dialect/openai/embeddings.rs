//! `/v1/embeddings`, and llama-server's `/embedding`.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chaski::embedding::{EmbedOptions, Embedding, VectorNorm};
use serde_json::{Value, json};

use super::cache_salt;
use super::completions::parts_of;
use crate::ask::{Part, read_parts};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::model::Facts;

/// Most texts in a request.
const MOST: usize = 2048;

/// A request for embeddings.
pub(crate) struct EmbedAsk {
    /// The tokens of each text.
    pub(crate) inputs: Vec<Vec<u32>>,
    pub(crate) options: EmbedOptions,
    /// Only requests with the same salt share cached prefixes.
    pub(crate) salt: Option<String>,
    /// Values of each vector, if fewer than the model's are wanted.
    dimensions: Option<usize>,
    is_base64: bool,
}

/// Reads the body of OpenAI's endpoint; of llama-server's, whose texts may be `content`; or of ollama's: the older one
/// has a `prompt`, and `truncate` cuts texts to the context.
pub(crate) fn ask(body: &Value, facts: &std::sync::Arc<Facts>) -> Result<EmbedAsk, ApiError> {
    let fields = Fields::of(body, "")?;
    let name = ["input", "content", "prompt"].into_iter().find(|name| fields.get(name).is_some());
    let name = name.unwrap_or("input");
    let salt = cache_salt(&fields)?;
    let cut = fields.integer("truncate_prompt_tokens", -1..=i64::from(u32::MAX))?;
    let cut = cut.map(|n| usize::try_from(n).unwrap_or(facts.n_ctx).min(facts.n_ctx));
    let cut = cut.or(fields.flag("truncate")?.filter(|cut| *cut).map(|_| facts.n_ctx));
    let is_base64 = match fields.text("encoding_format")? {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => return Err(fields.wrong("encoding_format", "\"float\" or \"base64\"")),
    };
    let norm = fields.integer("embd_normalize", -1..=1000)?;
    let norm = norm.and_then(|n| VectorNorm::from_number(n as i32)).unwrap_or(VectorNorm::P(2));
    let dimensions = fields.integer("dimensions", 1..=i64::from(u32::MAX))?.map(|n| n as usize);
    if dimensions.is_some_and(|n| n as u64 > facts.about.n_embd) {
        return Err(fields.wrong("dimensions", format!("at most {}", facts.about.n_embd)));
    }
    let texts = parts_of(&fields, name, MOST)?;
    let mut inputs = Vec::new();
    for (i, parts) in texts.iter().enumerate() {
        if matches!(&parts[..], [Part::Text(text)] if text.is_empty()) {
            let message = format!("`{name}` must have no empty text (text {i})");
            return Err(ApiError::field(name, message));
        }
        let limit = if cut.is_some() { usize::MAX } else { facts.n_ctx };
        let read = read_parts(facts, parts, limit).map_err(|error| error.of_field(name))?;
        let mut tokens = read.tokens;
        if let Some(most) = cut {
            tokens.truncate(most);
        }
        if tokens.len() > facts.n_ctx {
            return Err(ApiError::context(tokens.len(), facts.n_ctx));
        }
        inputs.push(tokens);
    }
    let options = EmbedOptions { pooling: facts.pooling, norm };
    Ok(EmbedAsk { inputs, options, salt, dimensions, is_base64 })
}

impl EmbedAsk {
    /// The vector of a text, as long as it is wanted.
    fn vector(&self, embedding: &Embedding) -> Result<Vec<f32>, ApiError> {
        let [vector] = &embedding.vectors[..] else {
            let message =
                "the model makes a vector of each token; start the server with --pooling mean, cls or last";
            return Err(ApiError::new(Kind::Invalid, message));
        };
        let mut vector = vector.clone();
        if let Some(n) = self.dimensions {
            vector.truncate(n);
            self.options.norm.normalize(&mut vector);
        }
        Ok(vector)
    }

    /// OpenAI's body.
    pub(crate) fn openai(&self, model: &str, found: &[Embedding]) -> Result<Value, ApiError> {
        let mut data = Vec::new();
        for (index, embedding) in found.iter().enumerate() {
            let vector = self.vector(embedding)?;
            let embedding = if self.is_base64 {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                json!(BASE64_STANDARD.encode(bytes))
            } else {
                json!(vector)
            };
            data.push(json!({"object": "embedding", "index": index, "embedding": embedding}));
        }
        let n_token: usize = found.iter().map(|embedding| embedding.n_token).sum();
        let usage = json!({"prompt_tokens": n_token, "total_tokens": n_token});
        Ok(json!({"object": "list", "model": model, "data": data, "usage": usage}))
    }

    /// llama-server's body: a vector for each token if they are not pooled.
    pub(crate) fn llama(&self, found: &[Embedding]) -> Value {
        let row =
            |(index, embedding): (usize, &Embedding)| json!({"index": index, "embedding": embedding.vectors});
        found.iter().enumerate().map(row).collect()
    }

    /// ollama's body, with the times of the whole request and of the wait for its model.
    pub(crate) fn ollama(
        &self,
        model: &str,
        found: &[Embedding],
        [total, loading]: [Duration; 2],
    ) -> Result<Value, ApiError> {
        let vectors: Vec<Vec<f32>> = found.iter().map(|one| self.vector(one)).collect::<Result<_, _>>()?;
        let n_token: usize = found.iter().map(|embedding| embedding.n_token).sum();
        Ok(json!({
            "model": model,
            "embeddings": vectors,
            "total_duration": total.as_nanos() as u64,
            "load_duration": loading.as_nanos() as u64,
            "prompt_eval_count": n_token,
        }))
    }

    /// The body of ollama's older endpoint, which has one text.
    pub(crate) fn old_ollama(&self, found: &[Embedding]) -> Result<Value, ApiError> {
        let first = found.first().map(|embedding| self.vector(embedding)).transpose()?;
        Ok(json!({"embedding": first.unwrap_or_default()}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_covers, contract, served};

    #[test]
    fn bodies_of_ollama_are_as_its_clients_expect_them() {
        let asked = ask(&json!({"model": "m", "input": "A"}), &served().facts).unwrap();
        // A half and a quarter are the same in 32 and in 64 bits.
        let found = [Embedding { vectors: vec![vec![0.5, 0.25]], n_token: 2 }];
        let mut expected = contract("ollama-embed.json")["body"].take();
        expected["embeddings"] = json!([[0.5, 0.25]]);
        let body = asked.ollama("m", &found, [9, 4].map(Duration::from_nanos)).unwrap();
        assert_eq!(body["load_duration"], 4);
        assert_covers(&body, &expected, "body");
        let names = |body: &Value| body.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!((names(&body), &body["total_duration"]), (names(&expected), &expected["total_duration"]));
        assert_eq!(asked.old_ollama(&found).unwrap(), json!({"embedding": [0.5, 0.25]}));
    }
}
