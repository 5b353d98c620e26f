//! Ends of answers in browsers: those of the model. The others would only take room in their module.

use std::time::Duration;

use chaski_text::Tokenizer;

use crate::error::ModelError;

/// Ends of an answer besides those of the model; there are none here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {}

#[allow(clippy::unused_self, reason = "there is more to say natively")]
impl Ends {
    pub(crate) fn check(&self, _: usize) -> Result<(), ModelError> {
        Ok(())
    }

    pub(crate) fn stops_at(&self, _: u32) -> bool {
        false
    }
}

/// There is nothing to keep.
pub(crate) struct Ending;

#[allow(clippy::unused_self, reason = "there is more to say natively")]
impl Ending {
    pub(crate) fn new(_: &Tokenizer, _: &Ends, _: bool) -> Ending {
        Ending
    }

    pub(crate) fn is_early(&self, _: usize) -> bool {
        false
    }

    pub(crate) fn masks(&self, _: usize) -> bool {
        false
    }

    pub(crate) fn opens(&self, _: usize) -> bool {
        false
    }

    pub(crate) fn mask(&self, _: usize, _: &mut [u32]) {}

    pub(crate) fn mask_logits(&self, _: usize, _: &mut [f32]) {}

    pub(crate) fn wrote(&mut self, _: &str, _: Duration) {}

    pub(crate) fn is_due(&self) -> bool {
        false
    }
}
