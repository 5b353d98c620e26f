//! Weights by their names in transformers, whichever files have them.

use std::error::Error;

use super::part::Part;

/// Gives the weights of a checkpoint, and remembers which were taken.
pub(crate) trait WeightSource {
    /// Takes a weight by its name in transformers; `None` if there is none.
    fn part(&mut self, name: &str) -> Result<Option<Part>, Box<dyn Error + Send + Sync>>;

    /// Names of tensors in the files that were not taken.
    fn left(&self) -> Vec<&str>;
}
