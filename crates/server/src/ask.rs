//! The request of all dialects, and its way into the engine.

use std::sync::Arc;
use std::time::Duration;

use chaski::serve::Request;
use chaski::text::{CallChoice, Logprobs, TemplateOptions};
use chaski::{ChatPrompt, GenerateOptions, Message};

use crate::answers::Answers;
use crate::controls::Control;
use crate::error::{ApiError, Kind};
use crate::model::{Facts, Served};

/// A request for answers.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) prompt: Prompt,
    pub(crate) options: GenerateOptions,
    /// Answers to each prompt.
    pub(crate) n: usize,
    /// Send events while the answer is made.
    pub(crate) stream: bool,
    pub(crate) priority: i32,
    /// Only requests with the same salt share cached prefixes.
    pub(crate) salt: Option<String>,
    /// The slot in which the state of the last answer stays.
    pub(crate) slot: Option<u32>,
    /// Calls that an answer in a conversation has to consist of.
    pub(crate) calls: Option<CallChoice>,
    /// Permission of several calls in an answer, if the request says so: with `false` it has one at most.
    pub(crate) parallel: Option<bool>,
    /// Reasoning is content.
    pub(crate) keeps_reasoning: bool,
    /// Cut a prompt that is longer than the context, at turns of the conversation.
    pub(crate) truncate: bool,
    /// Tokens of earlier turns, before those of a conversation.
    pub(crate) before: Vec<u32>,
    /// Log probabilities of the prompts' tokens, with so many of the most probable ones.
    pub(crate) prompt_logprobs: Option<usize>,
    /// Silence of a stream after which it has a sign of life, if not the dialect's.
    pub(crate) silence: Option<Duration>,
}

/// A part of a plain prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Tokens(Vec<u32>),
}

/// The input to be answered.
#[derive(Clone, Debug)]
pub(crate) enum Prompt {
    /// A conversation.
    Chat { messages: Vec<Message>, template: Box<TemplateOptions> },
    /// Texts to continue; each has parts.
    Texts(Vec<Vec<Part>>),
}

/// A prompt as the model gets it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    pub(crate) text: String,
    pub(crate) tokens: Vec<u32>,
    /// Log probabilities of its tokens after the first, if they are wanted.
    pub(crate) logprobs: Vec<Logprobs>,
}

impl Ask {
    /// One answer to a prompt.
    pub(crate) fn new(prompt: Prompt, options: GenerateOptions) -> Ask {
        Ask {
            prompt,
            options,
            n: 1,
            stream: false,
            priority: 0,
            salt: None,
            slot: None,
            calls: None,
            parallel: None,
            keeps_reasoning: false,
            truncate: false,
            before: Vec::new(),
            prompt_logprobs: None,
            silence: None,
        }
    }

    /// The prompts in tokens.
    ///
    /// # Errors
    /// Those of the template and the tokenizer, and prompts longer than the context.
    pub(crate) fn read(&self, served: &Served) -> Result<Vec<Read>, ApiError> {
        let read = self.read_within(served, served.facts.n_ctx)?;
        for prompt in &read {
            check_length(prompt.tokens.len(), served.facts.n_ctx)?;
        }
        Ok(read)
    }

    /// Number of tokens of the prompts, which may be longer than the context.
    ///
    /// # Errors
    /// Those of the template and the tokenizer.
    pub(crate) fn n_prompt(&self, served: &Served) -> Result<usize, ApiError> {
        Ok(self.read_within(served, usize::MAX)?.iter().map(|prompt| prompt.tokens.len()).sum())
    }

    /// The prompts. Texts that certainly have more than `limit` tokens are refused, others may have more.
    fn read_within(&self, served: &Served, limit: usize) -> Result<Vec<Read>, ApiError> {
        let read = match &self.prompt {
            Prompt::Chat { messages, template } => {
                let prompt = if self.truncate {
                    let options = GenerateOptions { drop_turns: true, ..self.options.clone() };
                    served.handle()?.fit_prompt(messages, template, &options)?
                } else {
                    chat_prompt(served, messages, template, limit)?
                };
                vec![self.after(
                    &served.facts,
                    Read { text: prompt.text, tokens: prompt.tokens, logprobs: Vec::new() },
                )?]
            }
            Prompt::Texts(texts) => {
                let read = |parts: &Vec<Part>| read_parts(&served.facts, parts, limit);
                texts.iter().map(read).collect::<Result<_, _>>().map_err(|error| error.of_field("prompt"))?
            }
        };
        Ok(read)
    }

    /// A prompt after the tokens of earlier turns. These have begun the text already.
    fn after(&self, facts: &Facts, prompt: Read) -> Result<Read, ApiError> {
        if self.before.is_empty() {
            return Ok(prompt);
        }
        let bos = facts.with_tokenizer(|tokenizer| tokenizer.bos())?;
        let begins = bos.is_some() && prompt.tokens.first().copied() == bos;
        let mut tokens = self.before.clone();
        tokens.extend(&prompt.tokens[usize::from(begins)..]);
        Ok(Read { text: facts.text_of(&self.before)? + &prompt.text, tokens, logprobs: Vec::new() })
    }

    /// Queues the answers to the prompts, those of each prompt side by side. It compiles grammars, which takes time.
    ///
    /// # Errors
    /// As those of [`chaski::Handle::answer_to`].
    pub(crate) fn submit(
        &self,
        served: &Served,
        prompts: &[Read],
        client: u64,
        control: Arc<Control>,
    ) -> Result<Answers, ApiError> {
        let mut answers = Answers::new(control);
        let salt = served.salt(client, self.salt.as_deref());
        for prompt in prompts {
            for i in 0..self.n {
                let mut options = self.options.clone();
                // Answers to one prompt differ.
                options.sampler.seed = options.sampler.seed.map(|seed| seed.wrapping_add(i as u32));
                // The last token would need no room, but clients add up: prompt and answer are at most the context.
                let room = served.facts.n_ctx - prompt.tokens.len();
                if options.shift.is_none() {
                    options.max_tokens = Some(options.max_tokens.map_or(room, |most| most.min(room)));
                }
                let (priority, tokens) = (self.priority, prompt.tokens.clone());
                let slot = self.slot;
                let request = Request { priority, client, salt, slot, ..Request::new(tokens, options) };
                match &self.prompt {
                    Prompt::Chat { template, .. } => {
                        // A model that reasons does so before its calls.
                        let may_reason =
                            served.facts.about.has_reasoning && template.enable_thinking != Some(false);
                        let calls =
                            self.calls.as_ref().map(|calls| CallChoice { may_reason, ..calls.clone() });
                        let (handle, tools) = (served.handle()?, &template.tools);
                        let chat = handle.answer_to(request, &prompt.text, tools, calls.as_ref())?;
                        let chat = if self.parallel == Some(false) { chat.with_one_call() } else { chat };
                        let chat = if self.keeps_reasoning { chat.with_reasoning_in_content() } else { chat };
                        answers.push_chat(chat, calls.is_some());
                    }
                    Prompt::Texts(_) => answers.push_text(served.handle()?.generate_tokens(request)?),
                }
            }
        }
        Ok(answers)
    }
}

/// The prompt of a conversation, unless it certainly has more than `limit` tokens. Without the beginning of an
/// answer, a last message of the assistant is continued.
///
/// # Errors
/// Those of the template and the tokenizer.
pub(crate) fn chat_prompt(
    served: &Served,
    messages: &[Message],
    template: &TemplateOptions,
    limit: usize,
) -> Result<ChatPrompt, ApiError> {
    Ok(served.handle()?.answer_prompt_within(messages, template, limit)?)
}

/// Refuses a prompt that leaves no room for a token.
fn check_length(found: usize, n_ctx: usize) -> Result<(), ApiError> {
    match found {
        0 => Err(ApiError::new(Kind::Invalid, "the prompt is empty")),
        n if n >= n_ctx => Err(ApiError::context(found, n_ctx)),
        _ => Ok(()),
    }
}

/// The tokens of a text in parts, unless one certainly has more than `limit`. The first part gets the tokens that the
/// tokenizer adds, unless it is made of tokens.
pub(crate) fn read_parts(facts: &Arc<Facts>, parts: &[Part], limit: usize) -> Result<Read, ApiError> {
    let (mut text, mut tokens) = (String::new(), Vec::new());
    for (i, part) in parts.iter().enumerate() {
        match part {
            Part::Text(part) => {
                text.push_str(part);
                tokens.extend(facts.tokens_within(part, i == 0, true, limit)?);
            }
            Part::Tokens(part) => {
                tokens.extend(part);
                text.push_str(&facts.text_of(part)?);
            }
        }
    }
    Ok(Read { text, tokens, logprobs: Vec::new() })
}
