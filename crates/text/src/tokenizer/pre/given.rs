//! Expressions of pre-tokenizers as model authors write them (Hugging Face's `tokenizer.json`), in the form of the
//! table.

use super::Cut;
use super::rules::{Pattern, RULES};

/// An expression of a model in a canonical spelling, comparable with those of the table.
///
/// Oniguruma, the engine of Hugging Face's tokenizers, has look-ahead and possessive repetition. The few forms in use
/// are rewritten; see [`Cut`] for white space and digits.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Given {
    text: String,
    pub(super) cut: Cut,
    /// True if it repeats something possessively, which only known expressions may.
    is_possessive: bool,
}

/// Stands for English contractions of any case in a canonical text.
const CONTRACTIONS: &str = "\u{1}";
/// The expression of the contractions.
const CONTRACTIONS_REGEX: &str = "(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))";

/// Stand for `\w` and `\W`, in which the two engines differ: here they have joiners of characters, too.
const WORD: (&str, &str) = ("\u{2}", r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]");
const NO_WORD: (&str, &str) = ("\u{3}", r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]");

/// Spellings of the contractions, the longer ones first.
const CONTRACTION_SPELLINGS: &[&str] = &[
    "(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))",
    "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])",
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
    "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    "(?i:'(?:s|t|re|ve|m|ll|d))",
    "'(?i:s|t|re|ve|m|ll|d)",
    "'(?i:[sdmt]|ll|ve|re)",
    "(?i:'[sdmt]|'ll|'ve|'re)",
];

/// Groups of three digits from the right, as look-ahead says it.
const DIGIT_SPELLINGS: &[(&str, &str, Cut)] = &[
    (r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", r"\p{N}+", Cut::Thousands),
    (r"\p{N}{1,3}(?=(\p{N}{3})*(?!\p{N}))", r"\p{N}+", Cut::Thousands),
    (r"\d{1,3}(?=(?:\d{3})*\b)", r"\d+", Cut::ThousandsOfNumbers),
];

/// Endings that leave the last white space to the next word.
const TAILS: &[&str] = &[r"|\s+(?!\S)|\s+", r"|\s+(?!\S)|\s", r"|\s+(?!\S)"];

impl Given {
    /// The canonical form of an expression in Oniguruma's syntax.
    pub(in super::super) fn new(expression: &str) -> Given {
        let (mut text, is_possessive) = spelled(expression);
        if let Some((_, regex, cut)) = DIGIT_SPELLINGS.iter().find(|row| row.0 == text) {
            return Given { text: (*regex).to_owned(), cut: *cut, is_possessive };
        }
        let mut cut = Cut::Whole;
        if let Some(before) = TAILS.iter().find_map(|tail| text.strip_suffix(tail)) {
            // A match that ends a line then comes from the alternative before.
            let ends_lines = [r"|\s*[\r\n]+", r"|\s*[\r\n]"].iter().any(|line| before.ends_with(line));
            cut = if ends_lines { Cut::LastSpaceInLine } else { Cut::LastSpace };
            text = format!(r"{before}|\s+");
        }
        Given { text, cut, is_possessive }
    }

    /// The same of a row of the table, whose expressions have no look-ahead.
    fn of_table(pattern: &Pattern) -> Given {
        Given { text: spelled(pattern.regex).0, cut: pattern.cut, is_possessive: false }
    }

    fn is_same(&self, other: &Given) -> bool {
        (&self.text, self.cut) == (&other.text, other.cut)
    }

    /// The expression in the syntax of the crate `regex`.
    ///
    /// # Errors
    ///
    /// The construct that it does not have.
    pub(in super::super) fn regex(&self) -> Result<String, String> {
        if self.is_possessive {
            return Err("possessive repetition is not supported".to_owned());
        }
        if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| self.text.contains(look)) {
            return Err("look-around is not supported".to_owned());
        }
        let marks = [(CONTRACTIONS, CONTRACTIONS_REGEX), WORD, NO_WORD];
        Ok(marks.iter().fold(self.text.clone(), |text, (mark, regex)| text.replace(mark, regex)))
    }
}

/// The expression with one spelling for each character, for contractions and for counts of one; and true if something
/// was possessive, which is left out.
fn spelled(expression: &str) -> (String, bool) {
    let (mut out, mut is_possessive) = (String::with_capacity(expression.len()), false);
    // Depth of nested classes, and true after something that repeats.
    let (mut depth, mut repeats) = (0_usize, false);
    let mut rest = expression.chars();
    while let Some(c) = rest.next() {
        let was_repeated = std::mem::replace(&mut repeats, false);
        match c {
            '\\' => push_escaped(&mut rest, depth > 0, &mut out),
            '\r' => out.push_str(r"\r"),
            '\n' => out.push_str(r"\n"),
            '\t' => out.push_str(r"\t"),
            '+' if was_repeated && depth == 0 => is_possessive = true,
            _ => {
                match c {
                    '[' => depth += 1,
                    ']' => depth = depth.saturating_sub(1),
                    _ => repeats = depth == 0 && matches!(c, '+' | '*' | '?' | '}') && !out.ends_with('('),
                }
                out.push(c);
            }
        }
    }
    for spelling in CONTRACTION_SPELLINGS {
        out = out.replace(spelling, CONTRACTIONS);
    }
    (out.replace(r"\p{N}{1}|", r"\p{N}|"), is_possessive)
}

/// Appends what follows a backslash: a number as its character, a sign without the backslash where it needs none.
fn push_escaped(rest: &mut std::str::Chars<'_>, is_class: bool, out: &mut String) {
    let text = rest.as_str();
    let numbered = [(r"x{", "}"), ("u{", "}")].iter().find_map(|(open, close)| {
        let (digits, behind) = text.strip_prefix(open)?.split_once(close)?;
        Some((digits, behind))
    });
    let fixed = text.strip_prefix('u').and_then(|hex| Some((hex.get(..4)?, hex.get(4..)?)));
    let number = |(digits, behind): (&str, _)| {
        let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
        Some((c, behind))
    };
    match numbered.and_then(number).or_else(|| fixed.and_then(number)) {
        Some((c, behind)) if !c.is_ascii() => {
            *rest = behind.chars();
            out.push(c);
        }
        _ => match rest.next() {
            Some(c)
                if c.is_ascii_punctuation()
                    && (is_class || c == '\'' || c == '"')
                    && !r"\[]^-&~".contains(c) =>
            {
                out.push(c);
            }
            // The brace of a property repeats nothing.
            Some(c @ ('p' | 'P')) => {
                out.extend(['\\', c]);
                let property = rest.as_str();
                let n = property.find('}').filter(|_| property.starts_with('{')).map_or(0, |end| end + 1);
                out.push_str(&property[..n]);
                *rest = property[n..].chars();
            }
            Some('w') => out.push_str(WORD.0),
            Some('W') => out.push_str(NO_WORD.0),
            Some(c) => out.extend(['\\', c]),
            None => out.push('\\'),
        },
    }
}

/// True if there is a built-in rule with this name, a value of `tokenizer.ggml.pre`.
pub fn is_pre_tokenizer(name: &str) -> bool {
    RULES.iter().any(|rule| rule.names.contains(&name))
}

/// The name of the built-in rule that splits texts as `expressions` do, one after the other: a value of
/// `tokenizer.ggml.pre`. Among rules with the same expressions, one that treats whole words alike is preferred.
///
/// `expressions` are in the syntax of Hugging Face's `tokenizer.json`.
///
/// # Examples
///
/// ```
/// let gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// assert_eq!(chaski_text::pre_tokenizer_name(&[gpt2], false).unwrap().0, "gpt-2");
/// assert!(chaski_text::pre_tokenizer_name(&["[a-z]+"], false).is_none());
/// ```
///
/// Returns the name, and true if the rule's `ignore_merges` is as requested.
pub fn pre_tokenizer_name(expressions: &[&str], ignore_merges: bool) -> Option<(&'static str, bool)> {
    let given: Vec<Given> = expressions.iter().map(|text| Given::new(text)).collect();
    let fits = RULES.iter().filter(|rule| {
        rule.patterns.len() == given.len()
            && rule
                .patterns
                .iter()
                .zip(&given)
                .all(|(pattern, given)| Given::of_table(pattern).is_same(given))
    });
    let rule = fits.min_by_key(|rule| rule.ignore_merges != ignore_merges)?;
    Some((rule.names[0], rule.ignore_merges == ignore_merges))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

    /// Expressions as their authors write them, and the rule that they are.
    fn known() -> Vec<(Vec<String>, bool, &'static str)> {
        let words = r"[^\r\n\p{L}\p{N}]?\p{L}+";
        let any_case = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
        let cased = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+";
        let capitals = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*";
        let slashes = LINES.replace(r"[\r\n]*", r"[\r\n/]*");
        let deepseek = concat!(
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"##,
            "\r\n",
            r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[",
            "\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
        );
        let one = |text: String, ignore, name| (vec![text], ignore, name);
        vec![
            one(format!(r"{any_case}|{words}|\p{{N}}{{1,3}}{LINES}"), true, "llama-bpe"),
            one(format!(r"{any_case}|{words}|\p{{N}}{{1,3}}{LINES}"), false, "dbrx"),
            one(format!(r"{any_case}|{words}|\p{{N}}{LINES}"), false, "qwen2"),
            one(
                r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
                    .to_owned(),
                false,
                "bailingmoe",
            ),
            one(format!(r"{cased}{any_case}?|{capitals}{any_case}?|\p{{N}}{{1,3}}{slashes}"), false, "gpt-4o"),
            one(format!(r"{cased}|{capitals}|\p{{N}}{slashes}"), true, "tekken"),
            (
                vec![
                    r"\p{N}{1,3}".to_owned(),
                    "[一-龥\u{3040}-ゟ゠-ヿ]+".to_owned(),
                    deepseek.to_owned(),
                ],
                false,
                "deepseek-v3",
            ),
            one(r" ?[^(\s|.,!?…。，、।۔،)]+".to_owned(), false, "poro-chat"),
            (
                vec![
                    r"\d{1,3}(?=(?:\d{3})*\b)".to_owned(),
                    format!(r"{cased}{any_case}?|{capitals}{any_case}?|\p{{N}}{{1,3}}{slashes}"),
                ],
                false,
                "tiny_aya",
            ),
        ]
    }

    #[test]
    fn expressions_of_authors_are_rules_of_the_table() {
        for (expressions, ignore_merges, name) in known() {
            let texts: Vec<&str> = expressions.iter().map(String::as_str).collect();
            assert_eq!(pre_tokenizer_name(&texts, ignore_merges), Some((name, true)), "{texts:?}");
        }
    }

    #[test]
    fn every_rule_without_look_ahead_is_found_by_its_own_expressions() {
        for rule in RULES {
            let plain = |pattern: &Pattern| matches!(pattern.cut, Cut::Whole);
            if rule.patterns.iter().all(plain) {
                let texts: Vec<&str> = rule.patterns.iter().map(|pattern| pattern.regex).collect();
                let (name, is_same) = pre_tokenizer_name(&texts, rule.ignore_merges).unwrap();
                assert!(is_same && rule.names.contains(&name), "{:?}", rule.names);
            }
        }
    }

    #[test]
    fn the_other_kind_of_whole_words_is_told() {
        let gpt_4o = known().swap_remove(4).0;
        assert_eq!(pre_tokenizer_name(&[&gpt_4o[0]], true), Some(("gpt-4o", false)));
        assert_eq!(pre_tokenizer_name(&[r"\p{L}+|\p{N}"], false), None);
    }

    #[test]
    fn escapes_have_one_spelling() {
        assert_eq!(spelled(r#"[\"\/\.\x{4E00}\u9fa5]\.\'"#).0, "[\"/.一龥]\\.'");
        assert_eq!(spelled(r"[a\-z\]\\]\x{41}").0, r"[a\-z\]\\]\x{41}");
        assert_eq!(spelled("a?+b++[+?+]+"), ("a?b+[+?+]+".to_owned(), true));
        assert_eq!(spelled("ab\\").0, "ab\\");
        assert_eq!(spelled(r"\p{L}+\pL+\p{N}{1,3}"), (r"\p{L}+\pL+\p{N}{1,3}".to_owned(), false));
        assert_eq!(spelled(r"\p{L}++\p{N}{2}+"), (r"\p{L}+\p{N}{2}".to_owned(), true));
        assert_eq!(spelled(r"\p{").0, r"\p{");
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        for text in ["(?=a)b", "a(?!b)c", "(?<=a)b", "a++", "a*", "(a", r"\p{Nothing}", "(?:a{1000}){1000}"] {
            let found = Given::new(text).regex().and_then(|regex| super::super::Expression::given(&regex));
            assert!(found.is_err(), "{text}");
        }
    }
}
