//! A limit of the reasoning in an answer.

use chaski_text::AnswerParser;

/// The most tokens of reasoning in an answer of a chat. Behind them the model's marker for the end of reasoning
/// follows, and the answer goes on from there. The tokens before it are those of an answer without a limit. A character
/// that is incomplete there is completed first. An answer without reasoning stays as it is.
#[derive(Clone, Debug)]
pub struct ReasoningBudget {
    n_max: usize,
    /// The notation; without one nothing is reasoning.
    parser: Option<AnswerParser>,
}

impl ReasoningBudget {
    /// At most this many tokens.
    pub fn new(n_max: usize) -> Self {
        ReasoningBudget { n_max, parser: None }
    }

    /// The number of tokens.
    pub fn n_max(&self) -> usize {
        self.n_max
    }

    /// The same for an answer that this parser splits.
    pub fn within(self, parser: AnswerParser) -> Self {
        ReasoningBudget { parser: Some(parser), ..self }
    }
}

/// The state of a [`ReasoningBudget`] in an answer.
#[derive(Debug)]
pub(crate) struct Thought {
    n_left: usize,
    parser: AnswerParser,
    /// The reasoning was ended once.
    was_closed: bool,
}

impl Thought {
    pub(crate) fn new(budget: Option<&ReasoningBudget>) -> Option<Thought> {
        let ReasoningBudget { n_max, parser } = budget?.clone();
        Some(Thought { n_left: n_max, parser: parser?, was_closed: false })
    }

    /// Takes note of a token, and of the text that it completes.
    pub(crate) fn wrote(&mut self, text: &str) {
        let was_open = self.is_open();
        self.parser.push(text);
        if was_open && self.is_open() {
            self.n_left = self.n_left.saturating_sub(1);
        }
    }

    fn is_open(&self) -> bool {
        self.parser.reasoning_closing(false).is_some()
    }

    /// The text that has to come next, if no token of reasoning is left.
    pub(crate) fn due(&self) -> Option<&'static str> {
        self.parser.reasoning_closing(self.was_closed).filter(|_| self.n_left == 0)
    }

    /// Records that this text comes next.
    pub(crate) fn close(&mut self) {
        self.was_closed = true;
    }
}

#[cfg(test)]
mod tests {
    use chaski_text::AnswerSyntax;

    use super::*;

    fn thought(n_max: usize, syntax: &str, prompt: &str) -> Thought {
        let parser = AnswerParser::new(AnswerSyntax::by_name(syntax).unwrap(), prompt, &[]);
        Thought::new(Some(&ReasoningBudget::new(n_max).within(parser))).unwrap()
    }

    #[test]
    fn tokens_count_from_the_marker_that_opens_the_reasoning() {
        // Opened by the prompt.
        let mut opened = thought(3, "plain", "Hi<think>\n");
        let due = |thought: &mut Thought, text: &str| {
            thought.wrote(text);
            thought.due()
        };
        assert_eq!(["\n", "So", ""].map(|text| due(&mut opened, text)), [None, None, Some("</think>")]);
        // Opened by the answer, ended by the model, and opened once more.
        let mut own = thought(2, "plain", "Hi");
        let texts = ["<th", "ink>", "a", "</think>", "b", "<think>", "c"];
        assert_eq!(
            texts.map(|text| due(&mut own, text).is_some()),
            [false, false, false, false, false, false, true]
        );
        // Nothing is reasoning.
        let mut none = thought(0, "plain", "Hi");
        assert_eq!(["a", " b"].map(|text| due(&mut none, text)), [None, None]);
        assert_eq!(thought(0, "plain", "<think>").due(), Some("</think>"));
    }

    #[test]
    fn a_message_of_reasoning_ends_with_the_header_of_the_next() {
        let mut thought = thought(1, "harmony", "<|start|>assistant");
        thought.wrote("<|channel|>analysis<|message|>");
        assert_eq!(thought.due(), None);
        thought.wrote("Hm");
        assert_eq!(thought.due(), Some("<|end|><|start|>assistant"));
        thought.close();
        thought.wrote("<|end|><|start|>assistant");
        assert_eq!(thought.due(), None);
        thought.wrote("<|channel|>analysis<|message|>");
        assert_eq!(thought.due(), Some("<|end|><|start|>assistant<|channel|>final<|message|>"));
    }
}
