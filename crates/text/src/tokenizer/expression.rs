//! Regular expressions that split text into words: from the crate `regex`, or in a browser from the browser,
//! which already has the engine and the Unicode tables.

use std::ops::Range;

/// Upper limit on the expressions that come with a model.
pub const MAX_PRE_EXPRESSIONS: usize = 16;
/// Upper limit on their texts together, in bytes.
pub const MAX_PRE_EXPRESSION_BYTES: usize = 64 << 10;

/// A regular expression in the syntax shared by both engines: no look-around, and `[[A]&&[^B]]` as the only
/// form of nested classes.
#[derive(Debug)]
pub(super) struct Expression(engine::Engine);

impl Expression {
    /// Compiles one of the built-in expressions.
    pub(super) fn new(text: &str) -> Expression {
        Expression(engine::Engine::new(text))
    }

    /// Compiles an expression that comes with a model, from [`Given::regex`](super::pre::Given::regex).
    ///
    /// # Errors
    ///
    /// The reason why it cannot be used: its syntax, its size, or a match that may be empty.
    pub(super) fn given(text: &str) -> Result<Expression, String> {
        engine::Engine::given(text).map(Expression)
    }

    /// A search through `text`, from start to end.
    pub(super) fn search<'r, 't>(&'r self, text: &'t str) -> Search<'r, 't> {
        Search(engine::Search::new(&self.0, text))
    }

    /// All matches; no match may be empty.
    pub(super) fn matches<'r, 't>(
        &'r self,
        text: &'t str,
    ) -> impl Iterator<Item = Range<usize>> + use<'r, 't> {
        let (mut search, mut from) = (self.search(text), 0);
        std::iter::from_fn(move || {
            let found = search.next(from)?;
            from = found.end;
            Some(found)
        })
    }
}

/// A search that continues from a position chosen by its caller.
pub(super) struct Search<'r, 't>(engine::Search<'r, 't>);

impl Search<'_, '_> {
    /// The first match at or after byte `from`, which is a character boundary and never decreases from call
    /// to call.
    pub(super) fn next(&mut self, from: usize) -> Option<Range<usize>> {
        self.0.next(from)
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod engine {
    use std::collections::BTreeMap;
    use std::ops::Range;
    use std::sync::{Arc, Mutex, PoisonError};

    use regex::{Regex, RegexBuilder};

    /// Upper limit on the compiled size of an expression that comes with a model, in bytes. The largest of the table
    /// takes a twentieth.
    const MAX_SIZE: usize = 8 << 20;

    /// The expressions of all tokenizers so far: one takes a millisecond to compile, and there are few.
    static COMPILED: Mutex<BTreeMap<String, Arc<Regex>>> = Mutex::new(BTreeMap::new());

    #[derive(Debug)]
    pub(super) struct Engine(Arc<Regex>);

    impl Engine {
        pub(super) fn new(text: &str) -> Engine {
            let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(regex) = compiled.get(text) {
                return Engine(regex.clone());
            }
            let regex = Arc::new(Regex::new(text).expect("our expressions are tested to compile"));
            compiled.insert(text.to_owned(), regex.clone());
            Engine(regex)
        }

        /// Such expressions are not kept: there is no limit to how many there are.
        pub(super) fn given(text: &str) -> Result<Engine, String> {
            let last_line = |e: String| e.lines().last().unwrap_or_default().to_owned();
            let parsed = regex_syntax::parse(text).map_err(|e| last_line(e.to_string()))?;
            if parsed.properties().minimum_len().unwrap_or(0) == 0 {
                return Err("it may match nothing".to_owned());
            }
            let regex = RegexBuilder::new(text).size_limit(MAX_SIZE).build();
            Ok(Engine(Arc::new(regex.map_err(|e| last_line(e.to_string()))?)))
        }
    }

    pub(super) struct Search<'r, 't>(&'r Regex, &'t str);

    impl<'r, 't> Search<'r, 't> {
        pub(super) fn new(engine: &'r Engine, text: &'t str) -> Self {
            Search(&engine.0, text)
        }

        pub(super) fn next(&mut self, from: usize) -> Option<Range<usize>> {
            self.0.find_at(self.1, from).map(|found| found.range())
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod engine {
    use std::ops::Range;

    use js_sys::{JsString, RegExp};
    use send_wrapper::SendWrapper;
    use wasm_bindgen::prelude::wasm_bindgen;

    #[wasm_bindgen]
    extern "C" {
        type Found;
        // `js_sys::RegExp::exec` would copy the whole text on each call.
        #[wasm_bindgen(method)]
        fn exec(this: &Expression, text: &JsString) -> Option<Found>;
        #[wasm_bindgen(extends = RegExp)]
        type Expression;
        #[wasm_bindgen(method, getter)]
        fn index(this: &Found) -> usize;
    }

    #[derive(Debug)]
    pub(super) struct Engine(SendWrapper<RegExp>);

    impl Engine {
        pub(super) fn new(text: &str) -> Engine {
            Engine(SendWrapper::new(RegExp::new(&super::for_browsers(text), "gu")))
        }

        /// A browser's engine backtracks: a foreign expression could stop the page.
        pub(super) fn given(_: &str) -> Result<Engine, String> {
            Err("expressions that come with a model are not run in browsers".to_owned())
        }
    }

    pub(super) struct Search<'r, 't> {
        engine: &'r RegExp,
        text: &'t str,
        handed: JsString,
        /// The position in the text: in bytes, and in the code units of the browser.
        at: usize,
        at_unit: usize,
    }

    impl<'r, 't> Search<'r, 't> {
        pub(super) fn new(engine: &'r Engine, text: &'t str) -> Self {
            Search { engine: &engine.0, text, handed: text.into(), at: 0, at_unit: 0 }
        }

        pub(super) fn next(&mut self, from: usize) -> Option<Range<usize>> {
            self.advance_while(|at, _| at < from);
            self.engine.set_last_index(self.at_unit as u32);
            let engine: &Expression = wasm_bindgen::JsCast::unchecked_ref(self.engine);
            let start_unit = engine.exec(&self.handed)?.index();
            let end_unit = self.engine.last_index() as usize;
            self.advance_while(|_, unit| unit < start_unit);
            let (start, start_unit) = (self.at, self.at_unit);
            self.advance_while(|_, unit| unit < end_unit);
            let found = start..self.at;
            // The caller may continue from before the end of the match.
            (self.at, self.at_unit) = (start, start_unit);
            Some(found)
        }

        /// Advances by whole characters, while `more` returns true for the bytes and units.
        fn advance_while(&mut self, more: impl Fn(usize, usize) -> bool) {
            let mut chars = self.text[self.at..].chars();
            while more(self.at, self.at_unit) {
                let Some(c) = chars.next() else { break };
                self.at += c.len_utf8();
                self.at_unit += c.len_utf16();
            }
        }
    }
}

/// Translates an expression to JavaScript with the flag `u`, whose `\s` and `\d` cover less of Unicode.
#[cfg(any(test, target_arch = "wasm32"))]
fn for_browsers(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    // Class difference: one class without another.
    while let Some((before, (this, (but, behind)))) = rest.split_once("[[").and_then(|(before, class)| {
        let (this, class) = class.split_once("]&&[^")?;
        Some((before, (this, class.split_once("]]")?)))
    }) {
        out.extend([before, "(?:(?![", but, "])[", this, "])"]);
        rest = behind;
    }
    out.push_str(rest);
    let words =
        [(r"\x{", r"\u{"), (r"\s", r"\p{White_Space}"), (r"\d", r"\p{Nd}"), (r"\p{Han}", r"\p{Script=Han}")];
    words.into_iter().fold(out, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    /// Every kind of character that the expressions distinguish, none of them new in Unicode.
    const TEXT: &str = concat!(
        "It's 12345 o'clock, I'LL we'Ve \u{85}x\u{a0}\u{2003}y\u{feff}z\u{200b}\u{1680}w\u{180e}v\u{3000}\r\n\r\n  x = a+b;\t// done  \n",
        " Ünïcode e\u{301}te\u{301} ǅungla ʰx ªº ßẞ ſ K İi ΑΒΓαβγ АБВабв אבג ابت \u{64b}\u{fb2c} १२३ ١٢٣٤ ௧ ½ Ⅷ ² ① 你好，世界。ㄅㄆ ひらカタｶﾞー 한국어 ㄱ ",
        "ไทย ລາວ ខ្មែរ မြန်မာ \u{2f00}\u{f900} 𠀀𪜀 😀👍🏽 \u{1f1e9}\u{1f1ea} 𝒜𝓫 𐐀𐐨 𞤀 \u{e0001} \u{fffd} \u{1}\u{7f} $+<=>^`|~ «»‹›“”‘’„…—–-_ ",
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ snake_case camelCase HTTPServer 1,000,000.50 12th a.b.c \u{ac00}\u{d7a3} e\u{308}\u{fe0f}   end   ",
    );

    #[test]
    fn browsers_find_the_same() {
        let expressions = super::super::pre::expressions().chain(super::super::word_piece::expressions());
        let mut rows: Vec<serde_json::Value> = Vec::new();
        for text in expressions {
            let found: Vec<&str> = Expression::new(&text).matches(TEXT).map(|range| &TEXT[range]).collect();
            let row = json!({ "expression": for_browsers(&text), "found": found });
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        let made = serde_json::to_string_pretty(&json!({ "text": TEXT, "rows": rows })).unwrap() + "\n";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/expressions.json");
        if std::env::var_os("UPDATE_EXPRESSIONS").is_some() {
            std::fs::write(&file, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        // crates/web/npm/test/node/expressions.test.js compares the matches of a browser.
        assert!(kept == made, "expressions have changed: renew {} with UPDATE_EXPRESSIONS=1", file.display());
    }

    #[test]
    fn a_class_without_another_becomes_a_look_ahead() {
        assert_eq!(
            for_browsers(r"[[\p{Lu}\s]&&[^\p{Han}]]*\x{4E00}"),
            r"(?:(?![\p{Script=Han}])[\p{Lu}\p{White_Space}])*\u{4E00}"
        );
    }
}
