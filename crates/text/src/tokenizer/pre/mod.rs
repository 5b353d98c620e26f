//! Pre-tokenizers, which split text into words before byte-pair merges, by name in `tokenizer.ggml.pre`.

mod given;
#[cfg(test)]
mod published;
mod rules;

use self::given::Given;
pub use self::given::{is_pre_tokenizer, pre_tokenizer_name};
use self::rules::{RULES, Rule};
use super::TokenizerError;
use super::expression::{Expression, MAX_PRE_EXPRESSION_BYTES, MAX_PRE_EXPRESSIONS};

/// A post-processing step for a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Nothing.
    Whole,
    /// The last character of white space before a word joins the word.
    LastSpace,
    /// Likewise, unless that character ends a line.
    LastSpaceInLine,
    /// White space before a word, unless it ends a line, is split into powers of two up to 512, the largest
    /// first, such that some of it is left.
    PowersOfSpaces,
    /// Digits are grouped in threes, from the right.
    Thousands,
    /// Likewise, unless they are the beginning of a word such as `12th`.
    ThousandsOfNumbers,
}

/// A rule with compiled patterns.
#[derive(Debug)]
pub(super) struct PreTokenizer {
    patterns: Vec<(Expression, Cut)>,
    ignore_merges: bool,
    add_bos: bool,
}

impl PreTokenizer {
    fn rule(name: Option<&str>) -> Option<&'static Rule> {
        let name = name.unwrap_or(RULES[0].names[0]);
        RULES.iter().find(|rule| rule.names.contains(&name))
    }

    /// The rule called `name`, or the default rule.
    pub(super) fn new(name: Option<&str>) -> Result<PreTokenizer, TokenizerError> {
        let unknown = || TokenizerError::UnknownPre { pre: name.unwrap_or_default().to_owned() };
        let rule = PreTokenizer::rule(name).ok_or_else(unknown)?;
        let patterns = rule.patterns.iter().map(|pattern| (Expression::new(pattern.regex), pattern.cut));
        let Rule { ignore_merges, add_bos, .. } = *rule;
        Ok(PreTokenizer { patterns: patterns.collect(), ignore_merges, add_bos })
    }

    /// A rule of expressions that come with the model, in Hugging Face's syntax; none is in the table.
    ///
    /// # Errors
    ///
    /// [`TokenizerError::Expression`] if one cannot be searched for in linear time,
    /// [`TokenizerError::TooManyExpressions`].
    pub(super) fn of_expressions(expressions: &[String]) -> Result<PreTokenizer, TokenizerError> {
        let (n, n_byte) = (expressions.len(), expressions.iter().map(String::len).sum());
        if n > MAX_PRE_EXPRESSIONS || n_byte > MAX_PRE_EXPRESSION_BYTES {
            return Err(TokenizerError::TooManyExpressions { n, n_byte });
        }
        let compile = |text: &String| {
            let given = Given::new(text);
            let wrong = |why| TokenizerError::Expression { expression: text.clone(), why };
            Ok((Expression::given(&given.regex().map_err(wrong)?).map_err(wrong)?, given.cut))
        };
        let patterns = expressions.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(PreTokenizer { patterns, ignore_merges: false, add_bos: false })
    }

    /// Overrides the rule: a word that is itself a token is, or is not, merged from its bytes.
    pub(super) fn set_ignore_merges(&mut self, ignore_merges: bool) {
        self.ignore_merges = ignore_merges;
    }

    /// True if a file with the rule called `name` has a BOS unless it says otherwise.
    pub(super) fn has_bos(name: Option<&str>) -> bool {
        PreTokenizer::rule(name).is_none_or(|rule| rule.has_bos)
    }

    pub(super) fn ignore_merges(&self) -> bool {
        self.ignore_merges
    }

    pub(super) fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Splits `text` into words; they concatenate to `text`, and none is empty.
    pub(super) fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut words = vec![text];
        for (expression, cut) in &self.patterns {
            let mut pieces = Vec::with_capacity(words.len());
            for word in words {
                let (mut search, mut from) = (expression.search(word), 0);
                while let Some(range) = search.next(from) {
                    let (start, found) = (range.start, &word[range.clone()]);
                    let end = start + cut.n_byte(found, &word[range.end..]);
                    pieces.push(&word[from..start]);
                    match cut.groups_digits(&word[end..]) {
                        true => pieces.extend(thousands(found)),
                        false => pieces.push(&word[start..end]),
                    }
                    from = end;
                }
                pieces.push(&word[from..]);
            }
            pieces.retain(|piece| !piece.is_empty());
            words = pieces;
        }
        words
    }
}

impl Cut {
    /// The length of the first piece of a match; the search continues after it. `rest` is the text after the
    /// match.
    fn n_byte(self, found: &str, rest: &str) -> usize {
        let all = found.len();
        let Some(last) = found.chars().next_back() else { return all };
        match self {
            Cut::Whole | Cut::Thousands | Cut::ThousandsOfNumbers => all,
            Cut::LastSpaceInLine | Cut::PowersOfSpaces if matches!(last, '\r' | '\n') => all,
            Cut::PowersOfSpaces if found.chars().all(char::is_whitespace) => {
                // One more is allowed if no word follows.
                let most = found.chars().count() - usize::from(!rest.is_empty());
                let n_char = (0..10).map(|k| 1 << k).take_while(|n| *n <= most).last().unwrap_or(1);
                found.char_indices().nth(n_char).map_or(all, |(at, _)| at)
            }
            Cut::PowersOfSpaces => all,
            Cut::LastSpace | Cut::LastSpaceInLine => {
                let joins =
                    !rest.is_empty() && last.len_utf8() < all && found.chars().all(char::is_whitespace);
                if joins { all - last.len_utf8() } else { all }
            }
        }
    }

    /// True if a match is split into groups of three digits. `rest` is the text after the match.
    fn groups_digits(self, rest: &str) -> bool {
        match self {
            Cut::Thousands => true,
            Cut::ThousandsOfNumbers => !rest.starts_with(|c: char| c.is_alphabetic() || c == '_'),
            Cut::Whole | Cut::LastSpace | Cut::LastSpaceInLine | Cut::PowersOfSpaces => false,
        }
    }
}

/// Groups of three digits, from the right; the first may be shorter.
fn thousands(digits: &str) -> impl Iterator<Item = &str> {
    let n_char = digits.chars().count();
    let starts = digits.char_indices().enumerate();
    let starts = starts.filter(move |(i, _)| *i == 0 || (n_char - i) % 3 == 0).map(|(_, (at, _))| at);
    let ends = starts.clone().skip(1).chain([digits.len()]);
    starts.zip(ends).map(|(start, end)| &digits[start..end])
}

/// All expressions of the table, for tests.
#[cfg(test)]
pub(super) fn expressions() -> impl Iterator<Item = String> {
    RULES.iter().flat_map(|rule| rule.patterns).map(|pattern| pattern.regex.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pre: &str, text: &str) -> Vec<String> {
        let pre = PreTokenizer::new(Some(pre)).unwrap();
        pre.split(text).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn spaces_are_cut_into_powers_of_two() {
        assert_eq!(
            words("jais-2", "a       b   c  d e"),
            ["a", "    ", "  ", " b", "  ", " c", " ", " d", " e"]
        );
        assert_eq!(words("jais-2", "a  \n   1  "), ["a", "  \n", "  ", " ", "1", "  "]);
        assert_eq!(words("jais-2", "x    "), ["x", "    "]);
    }

    #[test]
    fn every_rule_compiles_and_keeps_the_text() {
        let text = "It's 12345 o'clock — Ünïcode, 你好 \u{1f600}\r\n\n  x = a+b;\t// done  ";
        let mut seen = std::collections::BTreeSet::new();
        for rule in RULES {
            for name in rule.names {
                assert!(seen.insert(*name), "{name} occurs twice");
            }
            assert_eq!(words(rule.names[0], text).concat(), text, "{}", rule.names[0]);
        }
    }

    #[test]
    fn digits_are_grouped_by_the_rule() {
        assert_eq!(words("llama-bpe", "12345"), ["123", "45"]);
        assert_eq!(words("qwen2", "123"), ["1", "2", "3"]);
        assert_eq!(words("gpt-2", " 12345"), [" 12345"]);
        assert_eq!(words("smollm", " 12"), [" ", "1", "2"]);
    }

    #[test]
    fn last_space_belongs_to_the_next_word() {
        assert_eq!(words("gpt-2", "a   b"), ["a", "  ", " b"]);
        assert_eq!(words("gpt-2", "a \n\nb\n"), ["a", " \n", "\n", "b", "\n"]);
        assert_eq!(words("llama-bpe", "a \n\n b  "), ["a", " \n\n", " b", "  "]);
    }

    #[test]
    fn contractions_match_in_any_case_where_the_model_says_so() {
        assert_eq!(words("llama-bpe", "IT'S"), ["IT", "'S"]);
        assert_eq!(words("gpt-2", "IT'S"), ["IT", "'", "S"]);
        assert_eq!(words("gpt-4o", "it's"), ["it's"]);
    }

    #[test]
    fn case_divides_words_for_tekken_and_gpt_4o() {
        assert_eq!(words("tekken", "HelloWORLDFoo"), ["Hello", "WORLDFoo"]);
        assert_eq!(words("gpt-4o", "camelCase"), ["camel", "Case"]);
        assert_eq!(words("tekken", "été Été"), ["été", " Été"]);
    }

    #[test]
    fn digits_are_grouped_from_the_right_where_the_model_says_so() {
        assert_eq!(words("afmoe", "1234567 123456"), ["1", "234", "567", " ", "123", "456"]);
        assert_eq!(words("cohere2moe", "12345."), ["12", "345", "."]);
        assert_eq!(words("cohere2moe", "12345th"), ["123", "45", "th"]);
        assert_eq!(words("superbpe", "a b 1000"), ["a b ", "1", "000"]);
    }

    #[test]
    fn scripts_are_kept_apart_where_the_model_says_so() {
        assert_eq!(words("kimi-k2", "abc你好Abc"), ["abc", "你好", "Abc"]);
        assert_eq!(words("deepseek-v3", "abc你好"), ["abc", "你好"]);
        assert_eq!(words("viking", "ab 12, c"), ["ab", " ", "1", "2", ",", " c"]);
    }

    #[test]
    fn fullwidth_signs_alone_are_kept_apart_by_youtu() {
        assert_eq!(words("youtu", "a != b"), ["a", " !=", " b"]);
        assert_eq!(words("youtu", "Really?!"), ["Really", "?!"]);
        assert_eq!(words("youtu", "好！a"), ["好", "！", "a"]);
    }

    #[test]
    fn unknown_names_are_refused() {
        let error = PreTokenizer::new(Some("no-such-model")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown pre-tokenizer `no-such-model`; the file is rejected because its tokens would be wrong"
        );
    }

    #[test]
    fn a_megabyte_of_digits_is_cut() {
        for pre in ["superbpe", "afmoe", "cohere2moe"] {
            let found = words(pre, &"7".repeat(1 << 20));
            assert_eq!(found.len(), (1usize << 20).div_ceil(3), "{pre}");
            assert!(found[0] == "7" && found[1..].iter().all(|w| w == "777"), "{pre}");
        }
        // Digits of other scripts take several bytes.
        assert_eq!(words("superbpe", "١٢٣٤"), ["١", "٢٣٤"]);
    }

    #[test]
    fn a_megabyte_of_white_space_is_cut() {
        let text = format!("{}x", " ".repeat(1 << 20));
        assert_eq!(words("llama-bpe", &text).len(), 2);
    }
}
