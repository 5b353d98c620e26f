//! The table of classes.

use super::class::HfArch;
use super::classes;

/// All classes, by family.
pub static HF_ARCHS: &[&[HfArch]] = &[
    classes::llama::CLASSES,
    classes::gpt_oss::CLASSES,
    classes::gemma::CLASSES,
    classes::qwen_hybrid::CLASSES,
    classes::deepseek::CLASSES,
    classes::recurrent::CLASSES,
    classes::dense::CLASSES,
];

/// The row of a class.
pub fn class(name: &str) -> Option<&'static HfArch> {
    HF_ARCHS.iter().copied().flatten().find(|arch| arch.class == name)
}
