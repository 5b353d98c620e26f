//! Facts about a model that its file tells.

use chaski::embedding::Pooling;
use chaski::gguf::FileType;
use chaski::source::OpenModel;

/// Facts that a model file tells about itself, loaded or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// Its architecture.
    pub(crate) arch: String,
    /// Name of the file's type.
    pub(crate) ftype: String,
    pub(crate) n_ctx_train: u32,
    pub(crate) n_vocab: u32,
    pub(crate) n_embd: u64,
    pub(crate) n_param: u64,
    pub(crate) n_byte: u64,
    /// Pooling of embeddings, if the file has one.
    pub(crate) pooling: Option<Pooling>,
    /// True if it has tokens for the text between two others.
    pub(crate) has_fim: bool,
    /// Source of the chat template.
    pub(crate) template: Option<String>,
    /// True if its template knows tools.
    pub(crate) has_tools: bool,
    /// True if its template knows reasoning.
    pub(crate) has_reasoning: bool,
    /// True if its template has a switch for reasoning.
    pub(crate) has_thinking: bool,
}

impl About {
    /// Facts about an open file.
    ///
    /// # Errors
    /// [`chaski::Error::Model`] for a template that cannot be parsed.
    pub(crate) fn of(model: &OpenModel) -> Result<About, chaski::Error> {
        let metadata = model.metadata();
        let text = |key: &str| metadata.get(key).and_then(|v| v.to::<&str>()).unwrap_or("").to_owned();
        let number = |key: &str| metadata.get(key).and_then(|v| v.to::<u64>());
        let arch = text("general.architecture");
        let template = |has_tools| match model.templates().get(has_tools) {
            Ok(template) => Ok(template.map(|template| template.source().to_owned())),
            Err(error) => Err(chaski::Error::Model(error.into())),
        };
        let (plain, with_tools) = (template(false)?, template(true)?);
        let says = |word: &str| with_tools.as_ref().or(plain.as_ref()).is_some_and(|t| t.contains(word));
        let (has_tools, has_thinking) = (says("tools"), says("enable_thinking"));
        let has_reasoning = ["<think>", "reasoning_content", "<|channel|>"].into_iter().any(says);
        let ftype = number("general.file_type").and_then(|id| FileType::from_id(u32::try_from(id).ok()?));
        let fim = model.tokenizer().fim();
        Ok(About {
            ftype: ftype.map_or("unknown", |ftype| ftype.info().title).to_owned(),
            n_ctx_train: model.config().n_ctx_train,
            n_vocab: model.config().n_vocab,
            n_embd: number(&format!("{arch}.embedding_length")).unwrap_or(0),
            n_param: model.n_param(),
            n_byte: model.n_byte(),
            pooling: Pooling::of(metadata).ok(),
            has_fim: fim.prefix.is_some() && fim.suffix.is_some() && fim.middle.is_some(),
            template: plain,
            has_tools,
            has_reasoning,
            has_thinking,
            arch,
        })
    }
}
