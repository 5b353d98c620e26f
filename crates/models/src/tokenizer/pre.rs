//! Pre-tokenizers: how text is cut into words before byte-pair merges, by name in `tokenizer.ggml.pre`.

use regex::Regex;

use super::TokenizerError;

/// One rule and the models' names for it.
#[derive(Debug)]
struct Rule {
    names: &'static [&'static str],
    /// Applied one after the other: each cuts every piece left by the former into matches and what lies between.
    patterns: &'static [Pattern],
    /// A word that is a token as it stands is not merged from its bytes.
    ignore_merges: bool,
    /// Whether a text begins with BOS if the file does not say.
    add_bos: bool,
    /// Whether there is a BOS if the file does not say.
    has_bos: bool,
}

const PLAIN: Rule = Rule { names: &[], patterns: &[], ignore_merges: false, add_bos: false, has_bos: true };

/// A regular expression, and how its matches are cut further.
///
/// The original expressions end in `\s+(?!\S)|\s+`: of white space before a word, the last character is left to
/// the word. Here they end in `\s+` and [`Cut`] does the rest, so that expressions need no look-ahead, and the time
/// and memory of a match stay linear in the text.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    regex: &'static str,
    cut: Cut,
}

/// What is done to a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Nothing.
    Whole,
    /// Of white space before a word, the last character joins the word.
    LastSpace,
    /// Likewise, unless it ends a line.
    LastSpaceInLine,
    /// Digits are grouped in threes, from the right.
    Thousands,
    /// Likewise, unless they are the beginning of a word such as `12th`.
    ThousandsOfNumbers,
}

const fn plain(regex: &'static str) -> Pattern {
    Pattern { regex, cut: Cut::Whole }
}

const fn words(regex: &'static str) -> Pattern {
    Pattern { regex, cut: Cut::LastSpaceInLine }
}

/// English contractions in any case.
macro_rules! contractions {
    () => {
        "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
    };
}

/// White space, best up to the end of a line.
macro_rules! tail {
    () => {
        r"\s*[\r\n]+|\s+"
    };
}

macro_rules! llama3 {
    ($digits:literal) => {
        concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|",
            $digits,
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|",
            tail!()
        )
    };
}

/// Words by case: capitals then small letters. Letters without case and marks count as both.
macro_rules! by_case {
    ($digits:literal, $suffix:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
            $suffix,
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
            $suffix,
            "|",
            $digits,
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|",
            tail!()
        )
    };
}

const GPT2: Pattern = Pattern {
    regex: r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+",
    cut: Cut::LastSpace,
};
const LLAMA3: Pattern = words(llama3!(r"\p{N}{1,3}"));
const QWEN2: Pattern = words(llama3!(r"\p{N}"));
const QWEN35: Pattern = words(concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|",
    tail!()
));
const TEKKEN: Pattern = words(by_case!(r"\p{N}", ""));
const GPT_4O: Pattern = words(by_case!(r"\p{N}{1,3}", concat!("(?:", contractions!(), ")?")));
const THOUSANDS: Pattern = Pattern { regex: r"\p{N}+", cut: Cut::Thousands };
/// The word pattern of Kimi: as gpt-4o, with Han characters apart.
const KIMI_K2: Pattern = words(concat!(
    r"\p{Han}+|",
    r"[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+(?:",
    contractions!(),
    r")?|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*(?:",
    contractions!(),
    r")?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
    tail!()
));
const BLOOM: Pattern = plain(r" ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+");
const DEEPSEEK_V3_CJK: Pattern = plain(r"[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+");
const DEEPSEEK_V3: Pattern = words(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|",
    tail!()
));
/// Letters with case, as the authors of DeepSeek-LLM list them.
const DEEPSEEK_LLM_LETTERS: Pattern = plain(concat!(
    r"\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}",
    r"\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}",
    r"\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}",
    r"\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}",
    r"\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}",
    r"\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}",
    r"\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}",
    r"\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}",
    r"\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}",
    r"\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}",
    r"\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}",
    r"\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}",
    r"\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}",
    r"\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}",
    r"\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}",
    r"\x{1E900}-\x{1E943}]+",
));
const DEEPSEEK_LLM_MARKS: Pattern =
    plain(r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+");
/// CJK ideographs, and the two other ranges that DeepSeek's first tokenizers have there.
const DEEPSEEK_CJK: Pattern = plain(r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+");

/// All rules. The first is for files that name none.
static RULES: &[Rule] = &[
    Rule {
        names: &["default"],
        patterns: &[plain(r"[\p{P}\$\+<=>\^~\|]+"), GPT2, plain(r"\p{N}+"), plain("[0-9][0-9][0-9]")],
        ..PLAIN
    },
    Rule {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        patterns: &[LLAMA3],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    Rule { names: &["dbrx", "smaug-bpe"], patterns: &[LLAMA3], ..PLAIN },
    Rule { names: &["chatglm-bpe", "glm4"], patterns: &[LLAMA3], has_bos: false, ..PLAIN },
    Rule {
        names: &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "stablelm2",
            "megrez",
            "hunyuan",
            "f2llmv2",
            "solar-open",
            "grok-2",
        ],
        patterns: &[QWEN2],
        ..PLAIN
    },
    Rule { names: &["qwen35"], patterns: &[QWEN35], ..PLAIN },
    Rule {
        names: &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v1-en",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
            "mpt",
            "olmo",
            "modern-bert",
            "granite-docling",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "exaone4",
            "jais",
            "trillion",
        ],
        patterns: &[GPT2],
        ..PLAIN
    },
    Rule {
        names: &[
            "starcoder",
            "refact",
            "command-r",
            "smollm",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        patterns: &[plain(r"\p{N}"), GPT2],
        ..PLAIN
    },
    Rule {
        names: &["falcon"],
        patterns: &[plain(r"[\p{P}\$\+<=>\^~\|`]+"), GPT2, plain("[0-9][0-9][0-9]")],
        ..PLAIN
    },
    Rule { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, add_bos: true, ..PLAIN },
    Rule { names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], patterns: &[GPT_4O], ..PLAIN },
    Rule {
        names: &["deepseek-llm"],
        patterns: &[
            plain(r"[\r\n]"),
            DEEPSEEK_LLM_LETTERS,
            DEEPSEEK_LLM_MARKS,
            plain(r"\s+$"),
            DEEPSEEK_CJK,
            plain(r"\p{N}+"),
        ],
        ..PLAIN
    },
    Rule {
        names: &["deepseek-coder"],
        patterns: &[
            plain(r"[\r\n]"),
            plain(r"\s?\p{L}+"),
            plain(r"\s?\p{P}+"),
            DEEPSEEK_CJK,
            plain(r"\p{N}"),
        ],
        ..PLAIN
    },
    Rule {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        patterns: &[plain(r"\p{N}{1,3}"), DEEPSEEK_V3_CJK, DEEPSEEK_V3],
        ..PLAIN
    },
    Rule {
        names: &["spark2_5"],
        patterns: &[
            plain(r"\p{N}{1,3}"),
            DEEPSEEK_V3_CJK,
            Pattern {
                regex: concat!(
                    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
                    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+"
                ),
                cut: Cut::LastSpace,
            },
            plain(r"\p{N}"),
        ],
        ..PLAIN
    },
    Rule {
        names: &["youtu"],
        patterns: &[
            plain(concat!(
                r"[\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+",
                r"|[!\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+",
                r"|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+"
            )),
            words(by_case!(r"\p{N}", concat!("(?:", contractions!(), ")?"))),
        ],
        ignore_merges: true,
        ..PLAIN
    },
    Rule {
        names: &["minicpm5"],
        patterns: &[plain(r"\p{N}{1,3}"), words(llama3!(r"\p{N}+"))],
        ignore_merges: true,
        ..PLAIN
    },
    Rule {
        names: &["tiny_aya", "cohere2moe"],
        patterns: &[Pattern { regex: r"\d+", cut: Cut::ThousandsOfNumbers }, GPT_4O],
        ..PLAIN
    },
    Rule { names: &["superbpe"], patterns: &[THOUSANDS], ..PLAIN },
    Rule {
        names: &["afmoe"],
        patterns: &[
            THOUSANDS,
            plain(concat!(
                r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}",
                r"\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}",
                r"\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+"
            )),
            DEEPSEEK_V3,
        ],
        ..PLAIN
    },
    Rule { names: &["kimi-k2"], patterns: &[KIMI_K2], ..PLAIN },
    Rule { names: &["poro-chat", "bloom", "gpt3-finnish"], patterns: &[BLOOM], ..PLAIN },
    Rule { names: &["viking"], patterns: &[BLOOM, plain(r"\p{N}")], ..PLAIN },
    Rule {
        names: &["bailingmoe", "bailingmoe2", "llada-moe"],
        patterns: &[words(concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+"
        ))],
        ..PLAIN
    },
    Rule {
        names: &["seed-coder"],
        patterns: &[words(concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|",
            tail!()
        ))],
        ..PLAIN
    },
    Rule {
        names: &["ufakzeka"],
        patterns: &[words(concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|", tail!()))],
        ..PLAIN
    },
    Rule { names: &["laguna"], patterns: &[plain(r"[^\n]+|[\n]+"), QWEN2], ..PLAIN },
    Rule {
        names: &["exaone-moe"],
        patterns: &[words(concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+"
        ))],
        ..PLAIN
    },
];

/// A rule with its patterns compiled.
#[derive(Debug)]
pub(super) struct PreTokenizer {
    rule: &'static Rule,
    patterns: Vec<(Regex, Cut)>,
}

impl PreTokenizer {
    fn rule(name: Option<&str>) -> Option<&'static Rule> {
        let name = name.unwrap_or(RULES[0].names[0]);
        RULES.iter().find(|rule| rule.names.contains(&name))
    }

    /// The rule called `name`, or the one for files that name none.
    pub(super) fn new(name: Option<&str>) -> Result<PreTokenizer, TokenizerError> {
        let unknown = || TokenizerError::UnknownPre { pre: name.unwrap_or_default().to_owned() };
        let rule = PreTokenizer::rule(name).ok_or_else(unknown)?;
        let patterns = rule.patterns.iter().map(|pattern| {
            let regex = Regex::new(pattern.regex).expect("the table's expressions are tested to compile");
            (regex, pattern.cut)
        });
        Ok(PreTokenizer { rule, patterns: patterns.collect() })
    }

    /// Whether a file with the rule called `name` has a BOS if it does not say.
    pub(super) fn has_bos(name: Option<&str>) -> bool {
        PreTokenizer::rule(name).is_none_or(|rule| rule.has_bos)
    }

    pub(super) fn ignore_merges(&self) -> bool {
        self.rule.ignore_merges
    }

    pub(super) fn add_bos(&self) -> bool {
        self.rule.add_bos
    }

    /// Cuts `text` into words; together they are `text`, and none is empty.
    pub(super) fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut words = vec![text];
        for (regex, cut) in &self.patterns {
            let mut pieces = Vec::with_capacity(words.len());
            for word in words {
                let mut from = 0;
                while let Some(found) = regex.find_at(word, from) {
                    let n_byte = cut.n_byte(found.as_str(), &word[found.end()..]);
                    let end = found.start() + n_byte;
                    pieces.push(&word[from..found.start()]);
                    match cut.groups_digits(&word[end..]) {
                        true => pieces.extend(thousands(found.as_str())),
                        false => pieces.push(&word[found.start()..end]),
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
    /// How much of a match is one piece; the search goes on after it. `rest` is what follows the match.
    fn n_byte(self, found: &str, rest: &str) -> usize {
        let all = found.len();
        let Some(last) = found.chars().next_back() else { return all };
        match self {
            Cut::Whole | Cut::Thousands | Cut::ThousandsOfNumbers => all,
            Cut::LastSpaceInLine if matches!(last, '\r' | '\n') => all,
            Cut::LastSpace | Cut::LastSpaceInLine => {
                let joins =
                    !rest.is_empty() && last.len_utf8() < all && found.chars().all(char::is_whitespace);
                if joins { all - last.len_utf8() } else { all }
            }
        }
    }

    /// Whether a match is cut into groups of three digits. `rest` is what follows the match.
    fn groups_digits(self, rest: &str) -> bool {
        match self {
            Cut::Thousands => true,
            Cut::ThousandsOfNumbers => !rest.starts_with(|c: char| c.is_alphabetic() || c == '_'),
            Cut::Whole | Cut::LastSpace | Cut::LastSpaceInLine => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pre: &str, text: &str) -> Vec<String> {
        let pre = PreTokenizer::new(Some(pre)).unwrap();
        pre.split(text).into_iter().map(str::to_owned).collect()
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
    fn unknown_names_are_refused() {
        let error = PreTokenizer::new(Some("no-such-model")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pre-tokenizer `no-such-model` is not known; tokens would come out wrong, so the file is refused"
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
