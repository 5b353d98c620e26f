//! Conversations: their prompts, and the parts of their answers as they come.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use chaski_models::serve::{self, Event, ServeError};
use chaski_models::{Finish, ModelError, Piece, Stats};
use chaski_text::{
    Answer, AnswerEvent, AnswerParser, ChatTemplates, Message, TemplateOptions, Tokenizer,
    strip_added_special,
};
use futures_core::Stream;

use crate::error::Error;
use crate::executor::Driver;

/// The prompt of a conversation, by the template for tools if there are any.
pub(crate) fn prompt(
    tokenizer: &Tokenizer,
    templates: &ChatTemplates,
    messages: &[Message],
    options: &TemplateOptions,
) -> Result<String, Error> {
    let template = templates.get(!options.tools.is_empty()).map_err(ModelError::from)?;
    let template = template.ok_or(Error::NoTemplate)?;
    let text = |id: Option<u32>| id.and_then(|t| tokenizer.token_text(t)).unwrap_or("").to_owned();
    let mut options = options.clone();
    options.bos_token = text(tokenizer.bos());
    options.eos_token = text(tokenizer.eos());
    let rendered = template.render(messages, &options).map_err(ModelError::from)?;
    Ok(strip_added_special(&rendered, tokenizer).to_owned())
}

/// A part of an answer in a conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChatEvent {
    /// The prompt begins to run.
    Started {
        /// Tokens of the prompt that have to be run.
        n_prompt: usize,
        /// Tokens of the prompt that are in the KV cache already.
        n_cached: usize,
        /// The reason why the CPU samples, with a readback for each token; `None` if the device does.
        on_cpu: Option<&'static str>,
    },
    /// The prompt goes on: some of it is left to be sent to the device.
    Prompt {
        /// Tokens that were sent, of `n_prompt`.
        n_sent: usize,
    },
    /// The answer goes on: the text of a token as it stands, with the marks of its parts. Those that it completes follow.
    Piece(Piece),
    /// Reasoning, content, or a part of a tool call.
    Part(AnswerEvent),
    /// The answer has ended. Nothing follows.
    Finished {
        /// The whole answer.
        answer: Answer,
        /// The reason.
        finish: Finish,
        /// Counts and times.
        stats: Stats,
    },
    /// The answer could not go on. Nothing follows.
    Failed {
        /// The reason.
        error: ServeError,
    },
}

/// An answer in a conversation: a stream of events, of which the last is [`ChatEvent::Finished`] or [`ChatEvent::Failed`].
/// Dropping it ends the request within a step.
#[derive(Debug)]
pub struct Chat {
    events: serve::Answer,
    parser: AnswerParser,
    answer: Answer,
    /// Events that are certain and were not given.
    ready: VecDeque<ChatEvent>,
}

impl Chat {
    pub(crate) fn new(events: serve::Answer, parser: AnswerParser) -> Self {
        Chat { events, parser, answer: Answer::default(), ready: VecDeque::new() }
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<ChatEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The rest of the answer, all of it: what was said, the reason of its end, counts and times.
    ///
    /// # Errors
    /// [`ServeError`] if the answer could not go on.
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

    fn take(&mut self, event: Event) {
        match event {
            Event::Started { n_prompt, n_cached, on_cpu } => {
                self.ready.push_back(ChatEvent::Started { n_prompt, n_cached, on_cpu });
            }
            Event::Prompt { n_sent } => self.ready.push_back(ChatEvent::Prompt { n_sent }),
            Event::Piece(piece) => {
                let parts = self.parser.push(&piece.text);
                self.ready.push_back(ChatEvent::Piece(piece));
                self.take_parts(parts);
            }
            Event::Finished { finish, stats } => {
                let parts = self.parser.finish();
                self.take_parts(parts);
                let answer = std::mem::take(&mut self.answer);
                self.ready.push_back(ChatEvent::Finished { answer, finish, stats });
            }
            Event::Failed { error } => self.ready.push_back(ChatEvent::Failed { error }),
            // Nothing else is known here.
            _ => {}
        }
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

/// An answer in a conversation with an [`Engine`](crate::Engine), which works while it is asked: natively [`Self::next`]
/// blocks while the device works. Dropping it ends it.
#[derive(Debug)]
pub struct Conversation<'a> {
    driver: &'a mut Driver,
    chat: Chat,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(driver: &'a mut Driver, chat: Chat) -> Self {
        Conversation { driver, chat }
    }

    /// Counts and times so far.
    pub fn stats(&self) -> &Stats {
        self.chat.events.stats()
    }

    /// The tokenizer that spells its text.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.chat.events.tokenizer()
    }

    /// The next event; `None` after the last.
    ///
    /// # Errors
    /// [`ServeError`] if the answer could not go on.
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

    /// The rest of the answer, all of it: its parts, the reason of its end, counts and times.
    ///
    /// # Errors
    /// [`ServeError`] if the answer could not go on.
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
