//! The rules that split text into words, as data: regular expressions by name.

use super::Cut;

/// One rule with the names that models use for it.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) names: &'static [&'static str],
    /// Applied in turn: each splits every piece left by its predecessor into matches and the text between
    /// them.
    pub(super) patterns: &'static [Pattern],
    /// A word that is itself a token is not merged from its bytes.
    pub(super) ignore_merges: bool,
    /// True if a text begins with BOS unless the file says otherwise.
    pub(super) add_bos: bool,
    /// True if there is a BOS unless the file says otherwise.
    pub(super) has_bos: bool,
}

const PLAIN: Rule = Rule { names: &[], patterns: &[], ignore_merges: false, add_bos: false, has_bos: true };

/// A regular expression, and the further splitting of its matches.
///
/// The original expressions end in `\s+(?!\S)|\s+`: the last character of white space before a word is left
/// to the word. Here they end in `\s+` and [`Cut`] does the rest, so that expressions need no look-ahead, and
/// the time and memory of a match stay linear in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    pub(super) regex: &'static str,
    pub(super) cut: Cut,
}

const fn plain(regex: &'static str) -> Pattern {
    Pattern { regex, cut: Cut::Whole }
}

const fn words(regex: &'static str) -> Pattern {
    Pattern { regex, cut: Cut::LastSpaceInLine }
}

/// English contractions, case-insensitive.
macro_rules! contractions {
    () => {
        "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
    };
}

/// White space, preferably up to the end of a line.
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

/// Words by case: capitals followed by small letters. Caseless letters and marks count as both.
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
/// The word pattern of Kimi: that of gpt-4o, with Han characters separate.
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
/// Cased letters, as listed by the authors of DeepSeek-LLM.
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
/// CJK ideographs, and the two other ranges in the same class of DeepSeek's first tokenizers.
const DEEPSEEK_CJK: Pattern = plain(r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+");

/// All rules. The first one is the default.
pub(super) static RULES: &[Rule] = &[
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
    Rule {
        names: &["jais-2"],
        patterns: &[Pattern { regex: LLAMA3.regex, cut: Cut::PowersOfSpaces }],
        ..PLAIN
    },
    Rule { names: &["dbrx", "smaug-bpe"], patterns: &[LLAMA3], ..PLAIN },
    Rule { names: &["chatglm-bpe", "glm4", "glm5"], patterns: &[LLAMA3], has_bos: false, ..PLAIN },
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
                r"|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+",
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
