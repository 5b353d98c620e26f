//! Changes of models as events.

use serde_json::{Map, Value, json};

use super::listed::status;
use super::shelf::Entry;

/// The states that a listener has been told.
#[derive(Default)]
pub(crate) struct News {
    told: Option<Vec<(String, Value)>>,
}

impl News {
    /// The changes since the last call, in llama-server's form; nothing at the first.
    pub(crate) fn next<T>(&mut self, entries: &[Entry<T>]) -> Vec<Value> {
        let now: Vec<(String, Value)> =
            entries.iter().map(|entry| (entry.offer.id.clone(), status(&entry.state))).collect();
        let Some(told) = self.told.replace(now.clone()) else { return Vec::new() };
        let find = |all: &[(String, Value)], id: &str| all.iter().find(|(known, _)| known == id).cloned();
        let mut events = Vec::new();
        let gone = told.iter().filter(|(id, _)| find(&now, id).is_none());
        events.extend(gone.map(|(id, _)| json!({"model": id, "event": "model_remove"})));
        if now.iter().any(|(id, _)| find(&told, id).is_none()) {
            events.push(json!({"model": "*", "event": "models_reload"}));
        }
        let changed =
            now.iter().filter(|(id, status)| find(&told, id).is_none_or(|(_, before)| before != *status));
        events.extend(changed.map(|(id, status)| event(id, status)));
        events
    }
}

/// The event of a state.
fn event(id: &str, status: &Value) -> Value {
    let mut data: Map<String, Value> = status.as_object().cloned().unwrap_or_default();
    let value = data.remove("value").unwrap_or_default();
    data.insert("status".into(), value);
    json!({"model": id, "event": "model_status", "data": data})
}
