//! Options of speculative decoding, named as in llama.cpp.

use chaski::options::Speculation;

/// Lengths of drafts.
#[derive(Clone, Debug, Default, clap::Args, serde::Serialize)]
pub(crate) struct DraftArgs {
    /// Speculative decoding: draft up to N tokens (at most 7), with the draft model or by lookup of the last tokens in
    /// the text, and verify them in one batch; the answer stays the same [default: 0, with a draft model 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=Speculation::MAX as i64))]
    draft_max: Option<u32>,
    /// Do not verify drafts of fewer tokens [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=Speculation::MAX as i64))]
    draft_min: Option<u32>,
    /// End a draft before a token that the draft model gives a lower probability, from 0 to 1 [default: 0]
    #[arg(long, value_name = "P", value_parser = probability)]
    draft_p_min: Option<f32>,
}

fn probability(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("expected a number from 0 to 1".into()),
    }
}

impl DraftArgs {
    /// The draft method, if any.
    pub(crate) fn speculation(&self, has_draft: bool) -> Option<Speculation> {
        let by_default = if has_draft { Speculation::default().n_max } else { 0 };
        let n_max = self.draft_max.map_or(by_default, |n| n as usize);
        let n_min = self.draft_min.unwrap_or(0) as usize;
        let p_min = self.draft_p_min.unwrap_or(0.0);
        (n_max > 0).then(|| Speculation { n_max, n_min, p_min, ..Speculation::default() })
    }
}
