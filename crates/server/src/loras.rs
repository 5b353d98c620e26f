//! LoRAs of a model: their names as models, and the scales of a request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use chaski::loras::LoraInfo;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::names::{lora_called, stem};

/// A LoRA, and the requests that use it.
struct One {
    info: LoraInfo,
    /// Its name as a model.
    name: String,
    n_waiting: AtomicUsize,
    n_running: AtomicUsize,
}

/// The LoRAs of a model.
#[derive(Default)]
pub(crate) struct Loras {
    all: Vec<One>,
    /// Scales of requests that say nothing.
    scales: Mutex<Vec<f32>>,
}

impl Loras {
    /// Those of a model; `are_applied`: their scales hold for requests that say nothing.
    pub(crate) fn new(infos: Vec<LoraInfo>, are_applied: bool) -> Loras {
        let scales = infos.iter().map(|info| if are_applied { info.scale } else { 0.0 }).collect();
        let one = |info: LoraInfo| {
            let name = stem(&info.file).to_owned();
            One { info, name, n_waiting: AtomicUsize::new(0), n_running: AtomicUsize::new(0) }
        };
        Loras { all: infos.into_iter().map(one).collect(), scales: Mutex::new(scales) }
    }

    /// The files.
    pub(crate) fn files(&self) -> Vec<String> {
        self.all.iter().map(|one| one.info.file.clone()).collect()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<f32>> {
        // No code panics while it is locked.
        self.scales.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Sets the scales of requests that say nothing from now on, from llama-server's `[{"id": 0, "scale": 0.5}]`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn set(&self, body: &Value) -> Result<(), ApiError> {
        let scales = self.read(body, "")?;
        *self.locked() = scales;
        Ok(())
    }

    /// The scales of a list: 0 for LoRAs that it lacks.
    ///
    /// # Errors
    /// Anything but a list of objects with an id that exists and a finite scale. `path` is that of the list, empty for
    /// a body.
    fn read(&self, list: &Value, path: &str) -> Result<Vec<f32>, ApiError> {
        let wrong = || {
            let what = if path.is_empty() { "the body".into() } else { format!("`{path}`") };
            ApiError::field(path, format!("{what} must be a list of objects with `id` and `scale`"))
        };
        let list = list.as_array().ok_or_else(wrong)?;
        let mut scales = vec![0.0; self.all.len()];
        for (i, item) in list.iter().enumerate() {
            let fields = Fields::of(item, format!("{path}[{i}]"))?;
            let id = fields.need("id", fields.integer("id", 0..=i64::MAX)?)? as usize;
            let scale = fields.need("scale", fields.number("scale", -MAX_SCALE..=MAX_SCALE)?)?;
            let expected = || match self.all.len() {
                0 => "absent: the model has no LoRAs (`--lora FILE` of the server)".into(),
                n => format!("the number of a LoRA, at most {} (`GET /lora-adapters` lists them)", n - 1),
            };
            *scales.get_mut(id).ok_or_else(|| fields.wrong("id", expected()))? = scale as f32;
        }
        Ok(scales)
    }

    /// The scales of requests that say nothing, as requests say them.
    pub(crate) fn in_force(&self) -> Value {
        self.locked().iter().enumerate().map(|(id, scale)| json!({"id": id, "scale": scale})).collect()
    }

    /// The LoRA that a name means, of a model with these names.
    pub(crate) fn called(&self, id: &str, aliases: &[String], name: &str) -> Option<usize> {
        lora_called(id, aliases, self.all.iter().map(|one| &*one.name), name)
    }

    /// The scales of a request with this `lora`, or for the LoRA that it names as its model.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn scales(&self, list: Option<&Value>, named: Option<usize>) -> Result<Vec<f32>, ApiError> {
        match (list, named) {
            (None, None) => Ok(self.locked().clone()),
            (None, Some(at)) => {
                let mut scales = vec![0.0; self.all.len()];
                // A LoRA with the scale 0 was meant to be named.
                scales[at] = if self.all[at].info.scale == 0.0 { 1.0 } else { self.all[at].info.scale };
                Ok(scales)
            }
            (Some(list), _) => self.read(list, "lora"),
        }
    }

    /// The LoRAs in llama-server's words.
    pub(crate) fn list(&self) -> Value {
        let scales = self.locked();
        let one = |(id, (one, scale)): (usize, (&One, &f32))| {
            json!({
                "id": id,
                "path": one.info.file,
                "scale": scale,
                "task_name": one.info.task.as_deref().unwrap_or_default(),
                "prompt_prefix": one.info.prompt_prefix.as_deref().unwrap_or_default(),
            })
        };
        self.all.iter().zip(scales.iter()).enumerate().map(one).collect()
    }

    /// The names of LoRAs that running requests use, and those of waiting ones.
    pub(crate) fn in_use(&self) -> [Vec<&str>; 2] {
        let names = |n: fn(&One) -> &AtomicUsize| {
            let used = self.all.iter().filter(|one| n(one).load(Ordering::Relaxed) > 0);
            used.map(|one| one.name.as_str()).collect()
        };
        [names(|one| &one.n_running), names(|one| &one.n_waiting)]
    }

    /// Number of LoRAs.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

/// The largest scale: products with it stay finite.
const MAX_SCALE: f64 = 1e6;

/// The use of LoRAs by a request, until it is dropped: at first it waits.
pub(crate) struct Using {
    all: Arc<Loras>,
    used: Vec<usize>,
    is_running: bool,
}

impl Using {
    /// Those with a scale other than 0.
    pub(crate) fn new(all: Arc<Loras>, scales: &[f32]) -> Using {
        let used = scales.iter().enumerate().filter(|(_, scale)| **scale != 0.0);
        let using = Using { used: used.map(|(i, _)| i).collect(), all, is_running: false };
        using.count(|n| n.fetch_add(1, Ordering::Relaxed));
        using
    }

    /// The request starts to run.
    pub(crate) fn started(&mut self) {
        if !self.is_running {
            self.count(|n| n.fetch_sub(1, Ordering::Relaxed));
            self.is_running = true;
            self.count(|n| n.fetch_add(1, Ordering::Relaxed));
        }
    }

    /// Changes the counts of its state.
    fn count(&self, change: impl Fn(&AtomicUsize) -> usize) {
        for i in &self.used {
            let one = &self.all.all[*i];
            change(if self.is_running { &one.n_running } else { &one.n_waiting });
        }
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        self.count(|n| n.fetch_sub(1, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Facts;

    /// A model with the LoRAs `first`, of scale 0.5, and `second`, of scale 0.
    fn facts() -> Facts {
        let info = |file: &str, scale| LoraInfo { file: file.into(), scale, ..LoraInfo::default() };
        let loras = Arc::new(Loras::new(vec![info("a/first.gguf", 0.5), info("second.gguf", 0.0)], true));
        let mut facts = Facts::for_tests();
        (facts.loras, facts.aliases) = (loras, vec!["other".into()]);
        facts
    }

    fn scales(body: Value) -> Vec<f32> {
        facts().lora_scales(&body).expect("scales").expect("there are LoRAs")
    }

    #[test]
    fn a_request_says_its_scales_or_names_a_lora() {
        assert_eq!(scales(json!({})), [0.5, 0.0]);
        assert_eq!(scales(json!({"model": "golden"})), [0.5, 0.0]);
        assert_eq!(scales(json!({"lora": []})), [0.0, 0.0]);
        assert_eq!(scales(json!({"lora": [{"id": 1, "scale": -2}]})), [0.0, -2.0]);
        for (name, expected) in [
            ("first", [0.5, 0.0]),
            ("second", [0.0, 1.0]),
            ("golden:second", [0.0, 1.0]),
            ("other:second:latest", [0.0, 1.0]),
        ] {
            assert_eq!(scales(json!({"model": name})), expected, "{name}");
            assert_eq!(scales(json!({"model": name, "lora": [{"id": 0, "scale": 3}]})), [3.0, 0.0]);
        }
        assert_eq!(Facts::for_tests().lora_scales(&json!({"lora": []})).expect("none"), None);
    }

    #[test]
    fn loras_that_are_not_applied_keep_their_scales() {
        let info = LoraInfo { file: "first.gguf".into(), scale: 0.5, ..LoraInfo::default() };
        let mut facts = Facts::for_tests();
        facts.loras = Arc::new(Loras::new(vec![info], false));
        assert_eq!(facts.loras.list()[0]["scale"], 0.0);
        assert_eq!(facts.lora_scales(&json!({})).expect("scales"), Some(vec![0.0]));
        assert_eq!(facts.lora_scales(&json!({"model": "first"})).expect("scales"), Some(vec![0.5]));
    }

    #[test]
    fn what_is_no_lora_is_refused_by_its_path() {
        for (lora, param, message) in [
            (json!("first"), "lora", "`lora` must be a list of objects with `id` and `scale`"),
            (json!([0]), "lora[0]", "`lora[0]` must be an object"),
            (json!([{"id": 0}]), "lora[0].scale", "`lora[0].scale` is missing"),
            (json!([{"id": 0, "scale": 1}, {"scale": 1}]), "lora[1].id", "`lora[1].id` is missing"),
            (json!([{"id": 0, "scale": 1e39}]), "lora[0].scale", "between -1000000 and 1000000"),
            (json!([{"id": -1, "scale": 1}]), "lora[0].id", "`lora[0].id` must be at least 0"),
            (json!([{"id": 2, "scale": 1}]), "lora[0].id", "must be the number of a LoRA, at most 1"),
        ] {
            let error = facts().lora_scales(&json!({"lora": lora})).expect_err("it is wrong");
            assert_eq!(error.param.as_deref(), Some(param), "{lora}");
            assert!(error.message.contains(message), "{}", error.message);
        }
        let error = Facts::for_tests().lora_scales(&json!({"lora": [{"id": 0, "scale": 1}]}));
        assert!(error.expect_err("there is none").message.contains("the model has no LoRAs"));
    }

    #[test]
    fn scales_in_force_change_for_requests_that_say_nothing() {
        let facts = facts();
        facts.loras.set(&json!([{"id": 1, "scale": 0.25}])).expect("scales");
        assert_eq!(facts.lora_scales(&json!({})).expect("scales"), Some(vec![0.0, 0.25]));
        assert!(facts.loras.set(&json!([{"id": 7, "scale": 1}])).is_err());
        let list = facts.loras.list();
        assert_eq!((&list[0]["path"], &list[0]["scale"]), (&json!("a/first.gguf"), &json!(0.0)));
        assert_eq!((&list[1]["id"], &list[1]["scale"]), (&json!(1), &json!(0.25)));
    }

    #[test]
    fn the_use_of_loras_is_counted() {
        let loras = facts().loras;
        let in_use = || loras.in_use();
        let mut using = Using::new(loras.clone(), &[0.0, 1.0]);
        assert_eq!(in_use(), [vec![], vec!["second"]]);
        using.started();
        let other = Using::new(loras.clone(), &[1.0, 1.0]);
        assert_eq!(in_use(), [vec!["second"], vec!["first", "second"]]);
        drop((using, other));
        assert_eq!(in_use(), [vec![], Vec::<&str>::new()]);
        assert!(Facts::for_tests().loras.in_use().iter().all(Vec::is_empty));
    }
}
