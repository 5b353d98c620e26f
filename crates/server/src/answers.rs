//! Several answers as one stream of events.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use chaski::serve::{Answer, Event};
use chaski::text::{Answer as Text, AnswerEvent, Logprobs};
use chaski::{Chat, ChatEvent, Finish, Stats};
use futures_util::stream::{SelectAll, Stream, StreamExt as _};

use crate::controls::Control;
use crate::parts::Parts;

/// Events with the index of their answer, each in order. Dropping it ends all answers within a step.
#[derive(Default)]
pub(crate) struct Answers {
    streams: SelectAll<One>,
    n: usize,
    control: Arc<Control>,
}

/// The events of an answer.
struct One {
    index: usize,
    kind: Events,
    /// Wishes of the client, until they are fulfilled.
    control: Option<Arc<Control>>,
}

enum Events {
    /// An answer in a conversation. Where it `has_to_call`, all content is notation of calls that were cut before
    /// their names.
    Chat { chat: Box<Chat>, has_to_call: bool },
    /// An answer without parts: all of it is content. The content of the last piece.
    Text { answer: Box<Answer>, part: Option<String> },
}

impl Answers {
    /// None so far; the client of all that come may wish for something.
    pub(crate) fn new(control: Arc<Control>) -> Answers {
        Answers { control, ..Answers::default() }
    }

    pub(crate) fn push_chat(&mut self, chat: Chat, has_to_call: bool) {
        self.push(Events::Chat { chat: Box::new(chat), has_to_call });
    }

    pub(crate) fn push_text(&mut self, answer: Answer) {
        self.push(Events::Text { answer: Box::new(answer), part: None });
    }

    fn push(&mut self, kind: Events) {
        let control = Some(self.control.clone());
        self.streams.push(One { index: self.n, kind, control });
        self.n += 1;
    }

    /// The next event; `None` after the last of all.
    pub(crate) async fn next(&mut self) -> Option<(usize, ChatEvent)> {
        self.streams.next().await
    }
}

impl Stream for One {
    type Item = (usize, ChatEvent);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let index = self.index;
        let event = match &mut self.kind {
            Events::Chat { chat, has_to_call } => poll_chat(chat, *has_to_call, cx),
            Events::Text { answer, part } => poll_text(answer, part, cx),
        };
        // Before the first token there is nothing to end.
        if matches!(event, Poll::Ready(Some(ChatEvent::Piece(_)))) {
            self.obey();
        }
        event.map(|event| event.map(|event| (index, event)))
    }
}

impl One {
    /// Fulfils the wishes of the client.
    fn obey(&mut self) {
        if let Some(_control) = self.control.take_if(|control| control.ends_reasoning())
            && let Events::Chat { chat, .. } = &self.kind
        {
            // An answer that has no reasoning, or whose reasoning has ended, stays as it is.
            chat.end_reasoning();
        }
    }
}

/// The next event of a conversation's answer.
fn poll_chat(chat: &mut Chat, has_to_call: bool, cx: &mut Context<'_>) -> Poll<Option<ChatEvent>> {
    loop {
        let event = Pin::new(&mut *chat).poll_next(cx);
        let is_content = matches!(event, Poll::Ready(Some(ChatEvent::Part(AnswerEvent::Content(_)))));
        if !(is_content && has_to_call) {
            return event;
        }
    }
}

/// The next event of a text.
fn poll_text(
    answer: &mut Answer,
    part: &mut Option<String>,
    cx: &mut Context<'_>,
) -> Poll<Option<ChatEvent>> {
    if let Some(part) = part.take() {
        return Poll::Ready(Some(ChatEvent::Part(AnswerEvent::Content(part))));
    }
    loop {
        let event = match Pin::new(&mut *answer).poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(event)) => event,
        };
        let event = match event {
            Event::Started { n_prompt, n_cached, on_cpu } => {
                ChatEvent::Started { n_prompt, n_cached, on_cpu }
            }
            Event::Prompt { n_sent } => ChatEvent::Prompt { n_sent },
            Event::Piece(piece) => {
                *part = Some(piece.text.clone()).filter(|text| !text.is_empty());
                ChatEvent::Piece(piece)
            }
            Event::Finished { finish, stats } => {
                ChatEvent::Finished { answer: Text::default(), finish, stats }
            }
            Event::Failed { error } => ChatEvent::Failed { error },
            // No other events exist here.
            _ => continue,
        };
        return Poll::Ready(Some(event));
    }
}

/// A token of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) id: u32,
    pub(crate) logprobs: Option<Logprobs>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) parts: Parts,
    /// Its tokens, without the one that ended it.
    pub(crate) tokens: Vec<Token>,
    /// How many of them are reasoning.
    pub(crate) n_reasoning: usize,
    pub(crate) finish: Finish,
    pub(crate) stats: Stats,
}

/// An answer as far as it is known.
#[derive(Clone, Default)]
pub(crate) struct Gathered {
    /// Tokens that nobody has taken yet.
    tokens: Vec<Token>,
    pub(crate) n_reasoning: usize,
    in_reasoning: bool,
    parts: Parts,
    /// Statistics so far. Times are those of the events here, until the end has those of the engine.
    pub(crate) stats: Stats,
    /// When the prompt began to run, and when its first token came.
    began: Option<Instant>,
    answered: Option<Instant>,
    pub(crate) outcome: Option<Outcome>,
}

impl Gathered {
    /// Takes note of an event.
    pub(crate) fn take(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::Started { n_prompt, n_cached, .. } => {
                (self.stats.n_prompt, self.stats.n_cached) = (*n_prompt, *n_cached);
                self.began = Some(Instant::now());
            }
            ChatEvent::Piece(piece) => {
                if let Some(id) = piece.token {
                    self.stats.n_token += 1;
                    self.time_token();
                    self.n_reasoning += usize::from(self.in_reasoning);
                    self.tokens.push(Token { id, logprobs: piece.logprobs.clone() });
                }
            }
            ChatEvent::Part(part) => {
                self.in_reasoning = matches!(part, AnswerEvent::Reasoning(_));
                self.parts.take(part);
            }
            ChatEvent::Finished { finish, stats, .. } => {
                self.stats = stats.clone();
                self.outcome = Some(Outcome {
                    parts: std::mem::take(&mut self.parts),
                    tokens: std::mem::take(&mut self.tokens),
                    n_reasoning: self.n_reasoning,
                    finish: *finish,
                    stats: stats.clone(),
                });
            }
            _ => {}
        }
    }

    /// Takes note of the time of a token.
    fn time_token(&mut self) {
        let now = Instant::now();
        match self.answered {
            Some(first) => self.stats.decode = now - first,
            None => {
                self.stats.ttft = self.began.map_or(Duration::ZERO, |began| now - began);
                self.answered = Some(now);
            }
        }
    }

    /// The tokens since the last call, for the chunks of a stream: they are not part of the outcome then.
    pub(crate) fn untold(&mut self) -> Vec<Token> {
        std::mem::take(self.outcome.as_mut().map_or(&mut self.tokens, |outcome| &mut outcome.tokens))
    }
}
