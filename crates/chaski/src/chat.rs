//! Chats: prompts, and answers as streams of events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use chaski_models::serve::{self, Event, ServeError};
use chaski_models::{Finish, ModelError, Piece, Stats};
use chaski_text::{
    AddSpecial, Answer, AnswerEvent, AnswerParser, ChatTemplate, ChatTemplates, Message, Rendered,
    TemplateError, TemplateOptions, Tokenizer, strip_added_special_traced,
};
use futures_core::Stream;

use crate::error::Error;
use crate::executor::Driver;
use crate::turns::ChatPrompt;

/// Renders messages in one of the ways that templates have.
pub(crate) type Render = fn(&ChatTemplate, &[Message], &TemplateOptions) -> Result<Rendered, TemplateError>;

/// The prompt of a conversation, as text and tokens; uses the tool template if there are tools. A text that certainly
/// has more tokens than `limit` is refused.
pub(crate) fn prompt(
    ModelText { tokenizer, templates }: &ModelText,
    messages: &[Message],
    options: &TemplateOptions,
    limit: usize,
    render: Render,
) -> Result<ChatPrompt, Error> {
    let template = templates.get(!options.tools.is_empty()).map_err(ModelError::from)?;
    let template = template.ok_or(Error::NoTemplate)?;
    let text = |id: Option<u32>| id.and_then(|t| tokenizer.token_text(t)).unwrap_or("").to_owned();
    let mut options = options.clone();
    options.bos_token = text(tokenizer.bos());
    options.eos_token = text(tokenizer.eos());
    let mut rendered = render(template, messages, &options).map_err(ModelError::from)?;
    if options.parse_special {
        rendered.data.clear();
    }
    let rendered = strip_added_special_traced(rendered, tokenizer);
    let tokens =
        tokenizer.within(limit).encode_traced(&rendered, AddSpecial::Yes).map_err(ModelError::from)?;
    Ok(ChatPrompt { text: rendered.text, tokens, n_dropped: 0 })
}

/// An event of an answer in a chat.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChatEvent {
    /// The conversation leaves too little of the context for an answer, so its oldest turns are not part of the prompt
    /// ([`GenerateOptions::drop_turns`](chaski_models::GenerateOptions::drop_turns)). The first event, if it occurs.
    Dropped {
        /// Messages of these turns, the oldest after the system message.
        n_message: usize,
    },
    /// The prompt starts to run.
    Started {
        /// Tokens of the prompt to run.
        n_prompt: usize,
        /// Tokens of the prompt in the KV cache already.
        n_cached: usize,
        /// Reason for sampling on the CPU, with a readback per token; `None` if the device samples.
        on_cpu: Option<&'static str>,
    },
    /// Progress of the prompt: part of it is not submitted yet.
    Prompt {
        /// Submitted tokens, of `n_prompt`.
        n_sent: usize,
    },
    /// The raw text of a token, markup included. The parts that it completes follow.
    Piece(Piece),
    /// Reasoning, content, or part of a tool call.
    Part(AnswerEvent),
    /// The answer has ended. This is the last event.
    Finished {
        /// The whole answer.
        answer: Answer,
        /// Reason for the end.
        finish: Finish,
        /// Statistics.
        stats: Stats,
    },
    /// The answer failed. This is the last event.
    Failed {
        /// The error.
        error: ServeError,
    },
}

/// An answer in a chat: a stream of events that ends with [`ChatEvent::Finished`] or [`ChatEvent::Failed`]. Dropping it
/// ends the request within a step.
#[derive(Debug)]
pub struct Chat {
    events: serve::Answer,
    parser: AnswerParser,
    answer: Answer,
    /// Events not yet delivered.
    ready: VecDeque<ChatEvent>,
    /// The answer ends after its first tool call.
    #[cfg(not(target_arch = "wasm32"))]
    has_one_call: bool,
}

impl Chat {
    pub(crate) fn new(events: serve::Answer, parser: AnswerParser) -> Self {
        Chat {
            events,
            parser,
            answer: Answer::default(),
            ready: VecDeque::new(),
            #[cfg(not(target_arch = "wasm32"))]
            has_one_call: false,
        }
    }

    /// The same, with one tool call at most: after it the answer ends, and further text of the model is dropped.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn with_one_call(mut self) -> Self {
        self.has_one_call = true;
        self
    }

    /// The same, with reasoning as content, its markers included ([`AnswerParser::with_reasoning_in_content`]).
    #[cfg(not(target_arch = "wasm32"))]
    pub fn with_reasoning_in_content(mut self) -> Self {
        self.parser = self.parser.with_reasoning_in_content();
        self
    }

    /// The same, after the event that this many messages are not part of its prompt.
    pub(crate) fn without(mut self, n_message: usize) -> Self {
        if n_message > 0 {
            self.ready.push_front(ChatEvent::Dropped { n_message });
        }
        self
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<ChatEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Statistics of the events received so far.
    pub fn stats(&self) -> &Stats {
        self.events.stats()
    }

    /// The tokenizer of the answer's tokens.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.events.tokenizer()
    }

    /// The complete answer, the reason for its end, and statistics.
    ///
    /// # Errors
    /// [`ServeError`] if the answer failed.
    pub async fn whole(mut self) -> Result<(Answer, Finish, Stats), ServeError> {
        loop {
            match self.next().await {
                Some(ChatEvent::Finished { answer, finish, stats }) => return Ok((answer, finish, stats)),
                Some(ChatEvent::Failed { error }) => return Err(error),
                Some(_) => {}
                None => return Err(ServeError::Stopped),
            }
        }
    }

    /// Ends the reasoning that the answer is in the midst of: the marker that closes it comes next, after at most a
    /// step. False if it is in none.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn end_reasoning(&self) -> bool {
        let Some(marker) = self.parser.reasoning_end() else { return false };
        let tokenizer = self.events.tokenizer();
        // A vocabulary that cannot write the marker has no model that reasons with it.
        let Ok(tokens) = tokenizer.encode(marker, AddSpecial::No, chaski_text::ParseSpecial::Yes) else {
            return false;
        };
        self.events.insert(tokens);
        true
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Started { n_prompt, n_cached, on_cpu } => {
                self.ready.push_back(ChatEvent::Started { n_prompt, n_cached, on_cpu });
            }
            Event::Prompt { n_sent } => self.ready.push_back(ChatEvent::Prompt { n_sent }),
            Event::Piece(piece) => {
                let parts = self.parser.push(&piece.text);
                self.ready.push_back(ChatEvent::Piece(piece));
                #[cfg(not(target_arch = "wasm32"))]
                if let Some(n_part) = self.end_of_one_call(&parts) {
                    self.end_at(parts, n_part);
                    return;
                }
                self.take_parts(parts);
            }
            Event::Finished { finish, stats } => {
                let parts = self.last_parts(finish);
                #[cfg(not(target_arch = "wasm32"))]
                let parts = match self.end_of_one_call(&parts) {
                    Some(n_part) => parts.into_iter().take(n_part).collect(),
                    None => parts,
                };
                self.take_parts(parts);
                let answer = std::mem::take(&mut self.answer);
                self.ready.push_back(ChatEvent::Finished { answer, finish, stats });
            }
            Event::Failed { error } => self.ready.push_back(ChatEvent::Failed { error }),
            // No other events exist here.
            _ => {}
        }
    }

    /// Number of parts up to the end of the first call, if it is the only one to come.
    #[cfg(not(target_arch = "wasm32"))]
    fn end_of_one_call(&self, parts: &[AnswerEvent]) -> Option<usize> {
        let end = |part: &AnswerEvent| matches!(part, AnswerEvent::CallEnd { .. });
        parts.iter().position(end).filter(|_| self.has_one_call).map(|at| at + 1)
    }

    /// Ends the answer after so many of these parts.
    #[cfg(not(target_arch = "wasm32"))]
    fn end_at(&mut self, mut parts: Vec<AnswerEvent>, n_part: usize) {
        parts.truncate(n_part);
        self.take_parts(parts);
        self.events.cancel();
        let (answer, stats) = (std::mem::take(&mut self.answer), self.events.stats().clone());
        self.ready.push_back(ChatEvent::Finished { answer, finish: Finish::Stop, stats });
    }

    /// The parts for the text held back. Notation of a call that was cut before its name is no content.
    #[cfg(not(target_arch = "wasm32"))]
    fn last_parts(&mut self, finish: Finish) -> Vec<AnswerEvent> {
        let is_cut = matches!(finish, Finish::Length | Finish::Context) && self.parser.holds_notation();
        let mut parts = self.parser.finish();
        parts.retain(|part| !(is_cut && matches!(part, AnswerEvent::Content(_))));
        parts
    }

    #[cfg(target_arch = "wasm32")]
    fn last_parts(&mut self, _: Finish) -> Vec<AnswerEvent> {
        self.parser.finish()
    }

    fn take_parts(&mut self, parts: Vec<AnswerEvent>) {
        self.answer.extend(parts.iter().cloned());
        self.ready.extend(parts.into_iter().map(ChatEvent::Part));
    }
}

impl Stream for Chat {
    type Item = ChatEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ChatEvent>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            match Pin::new(&mut self.events).poll_next(cx) {
                Poll::Ready(Some(event)) => self.take(event),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// An answer in a chat with an [`Engine`](crate::Engine), computed while it is polled: natively [`Self::next`] blocks
/// while the device works. Dropping it ends it.
#[derive(Debug)]
pub struct Conversation<'a> {
    driver: &'a mut Driver,
    chat: Chat,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(driver: &'a mut Driver, chat: Chat) -> Self {
        Conversation { driver, chat }
    }

    /// Statistics so far.
    pub fn stats(&self) -> &Stats {
        self.chat.stats()
    }

    /// The tokenizer of the answer's tokens.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.chat.tokenizer()
    }

    /// The next event; `None` after the last.
    ///
    /// # Errors
    /// [`ServeError`] if the answer failed.
    pub async fn next(&mut self) -> Result<Option<ChatEvent>, ServeError> {
        loop {
            match Pin::new(&mut self.chat).poll_next(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(ChatEvent::Failed { error })) => return Err(error),
                Poll::Ready(event) => return Ok(event),
                Poll::Pending => {}
            }
            self.driver.turn().await?;
        }
    }

    /// The complete answer, the reason for its end, and statistics.
    ///
    /// # Errors
    /// [`ServeError`] if the answer failed.
    pub async fn whole(mut self) -> Result<(Answer, Finish, Stats), ServeError> {
        loop {
            match self.next().await? {
                Some(ChatEvent::Finished { answer, finish, stats }) => return Ok((answer, finish, stats)),
                Some(_) => {}
                None => return Err(ServeError::Stopped),
            }
        }
    }
}

/// Tokenizer and templates of a model.
#[derive(Clone)]
pub(crate) struct ModelText {
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) templates: Arc<ChatTemplates>,
}
