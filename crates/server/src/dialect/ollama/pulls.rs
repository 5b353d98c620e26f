//! `/api/pull`, `/api/copy` and `/api/delete`.

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::pulls::{File, Progress};

/// Longest name that a model can get.
const LONGEST: usize = 300;

/// The name of the model that a body of `/api/pull` asks for, and whether its progress is wanted.
///
/// # Errors
/// Fields that are missing or wrong.
pub(crate) fn pulled(body: &Value) -> Result<(&str, bool), ApiError> {
    let streams = Fields::of(body, "")?.flag("stream")?.unwrap_or(true);
    let name = super::models::shown(body)?;
    check_name("model", name)?;
    Ok((name, streams))
}

/// The model that a body of `/api/copy` names, and its further name.
///
/// # Errors
/// As [`pulled`].
pub(crate) fn copied(body: &Value) -> Result<(&str, &str), ApiError> {
    let fields = Fields::of(body, "")?;
    let (source, name) = (fields.text("source")?, fields.text("destination")?);
    let (source, name) = (fields.need("source", source)?, fields.need("destination", name)?);
    check_name("destination", name)?;
    Ok((source, name))
}

fn check_name(field: &str, name: &str) -> Result<(), ApiError> {
    let is_plain = !name.is_empty() && name.len() <= LONGEST && !name.chars().any(char::is_control);
    let message =
        || format!("`{field}` must be a name of at most {LONGEST} bytes, without control characters");
    if is_plain { Ok(()) } else { Err(ApiError::field(field, message())) }
}

/// The line at the end of a download that succeeded.
pub(crate) fn success() -> Value {
    json!({"status": "success"})
}

/// The progress of a download as lines.
#[derive(Default)]
pub(crate) struct Lines {
    /// Files as they were told last.
    told: Vec<File>,
    has_begun: bool,
    is_verifying: bool,
    is_whole: bool,
}

impl Lines {
    /// The lines that are new.
    pub(crate) fn next(&mut self, now: &Progress) -> Vec<Value> {
        let mut lines = Vec::new();
        let once = |told: &mut bool, is_so: bool, status: &str, lines: &mut Vec<Value>| {
            if is_so && !std::mem::replace(told, true) {
                lines.push(json!({"status": status}));
            }
        };
        once(&mut self.has_begun, true, "pulling manifest", &mut lines);
        for (i, file) in now.files.iter().enumerate() {
            if self.told.get(i) != Some(file) {
                lines.push(line(file));
            }
        }
        self.told.clone_from(&now.files);
        // A line of a file after it would tell clients that the file is not verified.
        once(&mut self.is_verifying, now.is_verifying && now.is_whole, "verifying sha256 digest", &mut lines);
        once(&mut self.is_whole, now.is_whole, "writing manifest", &mut lines);
        match &now.ended {
            Some(Ok(())) => lines.push(success()),
            Some(Err(error)) => lines.push(error.ollama()),
            None => {}
        }
        lines
    }
}

/// The line of a file.
fn line(file: &File) -> Value {
    let digits = file.digest.split_once(':').map_or(&*file.digest, |(_, digits)| digits);
    let short = digits.get(..12).unwrap_or(digits);
    let mut line =
        json!({"status": format!("pulling {short}"), "digest": file.digest, "completed": file.n_present});
    if let Some(size) = file.size {
        line["total"] = size.into();
    }
    line
}
