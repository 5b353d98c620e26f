//! Changes of a file's metadata.

use ggml_format::{GgufError, Metadata, OwnedValue};

type List = Vec<(String, OwnedValue)>;
type Apply = fn(&Metadata, &List) -> Result<Metadata, GgufError>;

/// Other values for keys of a file's metadata, or values for keys that it lacks. `{arch}` in a key stands for the
/// file's architecture, as in `{arch}.rope.freq_base`.
#[derive(Clone, Debug, Default)]
pub struct MetadataChanges {
    list: List,
    /// Applies the list. It is set with the first change, so that a program without changes, such as the module for
    /// browsers, does not contain it.
    apply: Option<Apply>,
}

impl MetadataChanges {
    /// Adds a change; the last one of a key counts.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<OwnedValue>) {
        self.list.push((key.into(), value.into()));
        self.apply = Some(apply);
    }

    /// The changed metadata, if there are changes.
    pub(crate) fn applied(&self, metadata: &Metadata) -> Result<Option<Metadata>, GgufError> {
        self.apply.map(|apply| apply(metadata, &self.list)).transpose()
    }
}

fn apply(metadata: &Metadata, list: &List) -> Result<Metadata, GgufError> {
    let arch = metadata.str("general.architecture")?;
    let keys: Vec<String> = list.iter().map(|(key, _)| key.replace("{arch}", arch)).collect();
    let values = list.iter().map(|(_, value)| value.as_value());
    Ok(metadata.with(keys.iter().map(String::as_str).zip(values)))
}
