//! Conversations longer than the context: their oldest turns are dropped whole.

use chaski_models::serve::{Refused, ServeError};
use chaski_models::{GenerateOptions, ModelError};
use chaski_text::{Message, TokenizerError};

use crate::error::Error;

/// The prompt of a conversation, as far as the context has room for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatPrompt {
    /// The text, from the chat template.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Messages that are not part of it: the oldest ones after the system message.
    pub n_dropped: usize,
}

/// Tokens kept free for an answer of unknown length, at most.
const ANSWER: usize = 1024;

/// How many tokens a prompt may have, and how many are dropped at once.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Room {
    n_ctx: usize,
    /// Tokens of a prompt that leaves room for the answer.
    n_prompt: usize,
    /// Tokens are dropped in multiples of this, as far as turns allow: the next prompts then begin with the same
    /// tokens, which stay in the KV cache.
    step: usize,
}

impl Room {
    /// Half of the context or less is for the answer.
    pub(crate) fn new(n_ctx: usize, options: &GenerateOptions) -> Room {
        let answer = options.max_tokens.unwrap_or(usize::MAX).min(ANSWER).min(n_ctx / 2);
        Room { n_ctx, n_prompt: n_ctx - answer, step: (n_ctx / 4).max(1) }
    }

    /// Makes the prompt of a conversation with `prompt`, without the oldest turns if it has no room for all.
    ///
    /// The choice depends only on the conversation, so a caller may pass all of it each time.
    ///
    /// # Errors
    /// Those of `prompt`, which may refuse a text as [`TokenizerError::TooLong`]; [`Refused::Context`] if the last
    /// turn alone is longer than the context.
    pub(crate) fn fit(
        self,
        messages: &[Message],
        mut prompt: impl FnMut(&[Message]) -> Result<ChatPrompt, Error>,
    ) -> Result<ChatPrompt, Error> {
        let (n_token, whole) = counted(prompt(messages))?;
        if n_token <= self.n_prompt {
            return whole;
        }
        let excess = (n_token - self.n_prompt).next_multiple_of(self.step);
        let most = n_token.saturating_sub(excess);
        let fitted = Turns::of(messages).drop_until(whole, most, prompt)?;
        let found = fitted.tokens.len();
        if found > self.n_ctx {
            let refused = Refused::Context { found, limit: self.n_ctx };
            return Err(ServeError::from(refused).into());
        }
        Ok(fitted)
    }
}

/// Tokens of a prompt, and the prompt; of a text that is refused before it is tokenized, those that are certain.
type Counted = (usize, Result<ChatPrompt, Error>);

fn counted(prompt: Result<ChatPrompt, Error>) -> Result<Counted, Error> {
    match prompt {
        Err(Error::Model(ModelError::Tokenizer(TokenizerError::TooLong { at_least, limit }))) => {
            Ok((at_least, Err(ModelError::from(TokenizerError::TooLong { at_least, limit }).into())))
        }
        prompt => prompt.map(|prompt| (prompt.tokens.len(), Ok(prompt))),
    }
}

/// The turns of a conversation: a user's message and all that follow it up to the user's next one.
struct Turns<'a> {
    /// System messages at the start, which stay.
    system: &'a [Message],
    /// The other messages.
    rest: &'a [Message],
    /// Where turns after the first begin in `rest`: the places where it can be cut.
    cuts: Vec<usize>,
}

impl<'a> Turns<'a> {
    fn of(messages: &'a [Message]) -> Turns<'a> {
        let is_system = |m: &Message| m.role == "system" || m.role == "developer";
        let n_system = messages.iter().take_while(|m| is_system(m)).count();
        let (system, rest) = messages.split_at(n_system);
        let is_user = |i: &usize| rest[*i].role == "user";
        let first = (0..rest.len()).find(is_user).unwrap_or(rest.len());
        let cuts = (first + 1..rest.len()).filter(is_user).collect();
        Turns { system, rest, cuts }
    }

    /// The prompt with at most `most` tokens that drops the fewest turns; that of the last turn if there is none.
    fn drop_until(
        &self,
        whole: Result<ChatPrompt, Error>,
        most: usize,
        mut prompt: impl FnMut(&[Message]) -> Result<ChatPrompt, Error>,
    ) -> Result<ChatPrompt, Error> {
        let mut cut = |n_dropped: usize| {
            let rest = prompt(&[self.system, &self.rest[n_dropped..]].concat());
            counted(rest.map(|rest| ChatPrompt { n_dropped, ..rest }))
        };
        let Some((last, earlier)) = self.cuts.split_last() else { return whole };
        let mut best = cut(*last)?;
        // Fewer turns make fewer tokens, so this is a binary search.
        let (mut low, mut high) = (0, if best.0 <= most { earlier.len() } else { 0 });
        while low < high {
            let middle = (low + high) / 2;
            let found = cut(earlier[middle])?;
            if found.0 <= most {
                (best, high) = (found, middle);
            } else {
                low = middle + 1;
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation: a letter is a message's role, the number its tokens.
    fn messages(roles: &str) -> Vec<Message> {
        let message = |word: &str| {
            let role = match &word[..1] {
                "s" => "system",
                "u" => "user",
                "t" => "tool",
                _ => "assistant",
            };
            Message::new(role, &word[1..])
        };
        roles.split_whitespace().map(message).collect()
    }

    fn count(messages: &[Message]) -> Result<ChatPrompt, Error> {
        let text: Vec<String> = messages.iter().map(Message::text).collect();
        let n_token: usize = text.iter().map(|t| t.parse::<usize>().unwrap()).sum();
        Ok(ChatPrompt { text: text.join(" "), tokens: vec![0; n_token], n_dropped: 0 })
    }

    fn fit(n_ctx: usize, max_tokens: usize, roles: &str) -> Result<ChatPrompt, Error> {
        let options = GenerateOptions { max_tokens: Some(max_tokens), ..GenerateOptions::default() };
        Room::new(n_ctx, &options).fit(&messages(roles), count)
    }

    #[test]
    fn a_conversation_with_room_is_whole() {
        let whole = fit(100, 20, "s10 u20 a30 u20").unwrap();
        assert_eq!((whole.tokens.len(), whole.n_dropped), (80, 0));
    }

    #[test]
    fn turns_are_dropped_whole_and_the_system_message_stays() {
        let cut = fit(100, 20, "s10 u20 a10 t5 a5 u15 a10 u10").unwrap();
        assert_eq!((cut.text.as_str(), cut.n_dropped), ("10 15 10 10", 4));
        // Tokens are dropped by quarters of the context.
        let more = fit(100, 20, "s10 u10 a10 u10 a10 u15 a10 u10").unwrap();
        assert_eq!((more.text.as_str(), more.n_dropped), ("10 15 10 10", 4));
        // A greeting belongs to the first turn.
        assert_eq!(fit(100, 20, "a20 u20 a30 u20").unwrap().n_dropped, 3);
    }

    #[test]
    fn the_last_turn_stays_as_long_as_the_context_holds_it() {
        let last = fit(100, 50, "s10 u20 a30 u20 a30 t20").unwrap();
        assert_eq!((last.tokens.len(), last.n_dropped), (80, 2));
        assert_eq!(fit(100, 50, "u100").unwrap().tokens.len(), 100);
        for roles in ["u101", "s10 u20 a30 u20 a60 t20"] {
            let e = fit(100, 50, roles).unwrap_err();
            assert_eq!(e.code(), "context_overflow");
            let n = if roles == "u101" { 101 } else { 110 };
            assert_eq!(e.to_string(), format!("the prompt has {n} tokens, but the context has 100"));
        }
    }

    /// As [`count`], but texts with more than 1,000 tokens are refused before they are counted, as twice as short.
    fn count_within(messages: &[Message]) -> Result<ChatPrompt, Error> {
        let whole = count(messages)?;
        let (at_least, limit) = (whole.tokens.len() / 2, 500);
        if at_least > limit {
            return Err(ModelError::from(TokenizerError::TooLong { at_least, limit }).into());
        }
        Ok(whole)
    }

    #[test]
    fn conversations_that_are_not_counted_are_cut_as_others() {
        let options = GenerateOptions { max_tokens: Some(100), ..GenerateOptions::default() };
        let fit = |roles: &str| Room::new(500, &options).fit(&messages(roles), count_within);
        for n_first in [100, 900, 1001, 5000, 1 << 20] {
            let found = fit(&format!("s10 u{n_first} a100 u100 a50 u100")).unwrap();
            assert_eq!((found.tokens.len(), found.n_dropped), (260, 2), "{n_first}");
        }
        // A last turn that is too long, counted or not.
        for (n_last, expected) in [
            (700, "the prompt has 710 tokens, but the context has 500"),
            (5990, "the text has at least 3000 tokens, but the context has 500"),
        ] {
            for before in ["", "u5 a5 ", "u9000 a5 "] {
                let e = fit(&format!("s10 {before}u{n_last}")).unwrap_err();
                assert_eq!((e.code(), e.to_string()), ("context_overflow", expected.into()));
            }
        }
    }

    #[test]
    fn the_cut_moves_rarely_while_a_conversation_grows() {
        let mut roles = String::from("s5");
        let mut cuts = Vec::new();
        for _ in 0..400 {
            roles += " u3";
            let found = fit(512, 64, &roles).unwrap();
            let n_token = found.tokens.len();
            assert!(n_token <= 448 && (found.n_dropped == 0 || n_token > 448 - 128 - 20));
            cuts.push(found.n_dropped);
            roles += " a7";
        }
        let n_moved = cuts.windows(2).filter(|w| w[0] != w[1]).count();
        assert!(cuts.is_sorted() && (20..=4000 / 128).contains(&n_moved), "{n_moved} {cuts:?}");
    }

    #[test]
    fn the_smallest_number_of_turns_is_dropped() {
        for n in 1..60 {
            let roles = "u2 a3 ".repeat(n) + "u2";
            let found = fit(64, 16, &roles).unwrap();
            let needed = (5 * n + 2).saturating_sub(48).next_multiple_of(16);
            assert_eq!(found.n_dropped, needed.div_ceil(5).min(n) * 2, "{n}");
        }
    }

    #[test]
    fn half_of_the_context_or_less_is_for_the_answer() {
        let room = |n_ctx, max_tokens| {
            let options = GenerateOptions { max_tokens, ..GenerateOptions::default() };
            Room::new(n_ctx, &options).n_prompt
        };
        assert_eq!(room(512, None), 256);
        assert_eq!(room(512, Some(20)), 492);
        assert_eq!(room(512, Some(4000)), 256);
        assert_eq!(room(8192, None), 8192 - 1024);
        assert_eq!(room(1, None), 1);
    }
}
