//! Writes grammars in llguidance's variant of Lark.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::answer::AnswerSyntax;
use crate::constraint::with_space;
use crate::tokenizer::{TokenKind, Tokenizer};

/// White space around calls, as a regular expression.
const CALL_SPACE: &str = r" |(\r?\n){1,2}[ \t]{0,4}";

/// White space within arguments: less than in other JSON, since nobody reads it, and a small model that has to call
/// goes on with blanks where it can.
const ARGUMENT_SPACE: &str = r" |\r?\n";

/// A grammar under construction: its rules and terminals, each with a name of its own.
pub(super) struct Lark {
    /// Texts and ids of the tokens in markers that grammars name by id, the longest first: control tokens, and
    /// those that end a generation.
    controls: Vec<(String, u32)>,
    /// Those that end a generation.
    ends: Vec<u32>,
    /// All control tokens that do not.
    others: Vec<u32>,
    names: HashMap<String, String>,
    out: String,
}

/// A part of a marker.
pub(super) enum Piece<'m> {
    Text(&'m str),
    Control(u32),
}

impl Lark {
    pub(super) fn new(syntax: &AnswerSyntax, tokenizer: &Tokenizer) -> Lark {
        let text = |id: u32| tokenizer.token_text(id).unwrap_or_default().to_owned();
        let marks = syntax.marks();
        let is_marker = |id: &u32| marks.iter().any(|mark| mark.contains(&text(*id)));
        let ends: Vec<u32> = tokenizer.eog_ids().into_iter().filter(is_marker).collect();
        let ids = syntax.marker_tokens(tokenizer).into_iter().chain(ends.clone());
        let mut controls: Vec<_> = ids.map(|id| (text(id), id)).collect();
        controls.retain(|(text, _)| !text.is_empty());
        controls.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let is_other = |id: &u32| tokenizer.kind(*id) == Some(TokenKind::Control) && !tokenizer.is_eog(*id);
        let others = (0..tokenizer.n_vocab() as u32).filter(is_other).collect();
        Lark { controls, ends, others, names: HashMap::new(), out: String::new() }
    }

    /// The grammar of `start`.
    pub(super) fn finish(self, start: &str) -> String {
        format!("start: {start}\n{}", self.out)
    }

    /// The name of the rule or terminal (upper case) `kind` with this body.
    pub(super) fn define(&mut self, kind: &str, attributes: &str, body: &str) -> String {
        let key = format!("{kind}{attributes}: {body}");
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let name = self.reserve(kind);
        self.names.insert(key, name.clone());
        self.set(&format!("{name}{attributes}"), body);
        name
    }

    /// A name that [`Self::set`] defines later.
    pub(super) fn reserve(&mut self, kind: &str) -> String {
        let name = format!("{kind}{}", self.names.len());
        self.names.insert(format!("{name}:"), name.clone());
        name
    }

    /// Defines a name.
    pub(super) fn set(&mut self, name: &str, body: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{name}: {body}");
    }

    /// A rule.
    pub(super) fn rule(&mut self, body: &str) -> String {
        self.define("r", "", body)
    }

    /// A terminal of this regular expression.
    pub(super) fn regex(&mut self, regex: &str) -> String {
        self.define("T", "", &format!("/{}/", regex.replace('/', "\\/")))
    }

    /// White space, or none.
    pub(super) fn space(&mut self) -> String {
        format!("{}?", self.regex(CALL_SPACE))
    }

    /// JSON that conforms to `schema`.
    pub(super) fn json(&mut self, schema: &Value) -> String {
        let schema = with_space(schema, ARGUMENT_SPACE);
        self.define("j", "", &format!("%json {schema}"))
    }

    /// Any control token but those that end a generation and these; empty if there is none.
    pub(super) fn controls_but(&self, excluded: &[u32]) -> String {
        let ids: Vec<u32> = self.others.iter().copied().filter(|id| !excluded.contains(id)).collect();
        let ranges = ids.chunk_by(|a, b| a + 1 == *b).map(|ids| format!("{}-{}", ids[0], ids[ids.len() - 1]));
        let ranges: Vec<String> = ranges.collect();
        if ranges.is_empty() { String::new() } else { format!("<[{}]>", ranges.join(",")) }
    }

    /// The first control token of a marker, and the parts after it.
    pub(super) fn first_control<'m>(&self, marker: &'m str) -> Option<(u32, Vec<Piece<'m>>)> {
        let mut pieces = self.pieces(marker).into_iter();
        let id = pieces.find_map(|piece| match piece {
            Piece::Control(id) => Some(id),
            Piece::Text(_) => None,
        })?;
        Some((id, pieces.collect()))
    }

    /// A marker of the notation: its control tokens as such, the rest as text.
    pub(super) fn marker(&self, marker: &str) -> String {
        self.pieces(marker).iter().map(written).collect::<Vec<_>>().join(" ")
    }

    /// A marker at the end of the answer, and true if a token in it ends the generation, which stands for the
    /// rest of the marker.
    pub(super) fn last_marker(&self, marker: &str) -> (String, bool) {
        let pieces = self.pieces(marker);
        let is_end = |piece: &Piece<'_>| matches!(piece, Piece::Control(id) if self.ends.contains(id));
        let end = pieces.iter().position(is_end);
        let kept = pieces[..end.unwrap_or(pieces.len())].iter().map(written);
        (kept.collect::<Vec<_>>().join(" "), end.is_some())
    }

    /// Any text up to `close`, and `close`.
    pub(super) fn until(&mut self, close: &str) -> String {
        let pieces = self.pieces(close);
        let Some(first) = pieces.iter().position(|piece| matches!(piece, Piece::Control(_))) else {
            return self.define("r", "[lazy]", &format!("/(?s:.*)/ {}", quoted(close)));
        };
        let rest: Vec<_> = pieces[first..].iter().map(written).collect();
        let before: Vec<_> = pieces[..first].iter().map(written).collect();
        // The text of a control token is no control token, but the parser could not tell.
        let others = format!("~(/(?s:.*)/ {} /(?s:.*)/)", quoted(close));
        let text = match before.is_empty() {
            true => format!("{}?", self.define("T", "", &format!("/(?s:.+)/ & {others}"))),
            false => self.define("T", "", &format!("/(?s:.*)/ {} & {others}", before.join(" "))),
        };
        format!("{text} {}", rest.join(" "))
    }

    fn pieces<'m>(&self, marker: &'m str) -> Vec<Piece<'m>> {
        let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
        while let Some(c) = marker[at..].chars().next() {
            let Some((text, id)) =
                self.controls.iter().find(|(text, _)| marker[at..].starts_with(text.as_str()))
            else {
                at += c.len_utf8();
                continue;
            };
            pieces.extend((start < at).then(|| Piece::Text(&marker[start..at])));
            pieces.push(Piece::Control(*id));
            at += text.len();
            start = at;
        }
        pieces.extend((start < at).then(|| Piece::Text(&marker[start..at])));
        pieces
    }
}

pub(super) fn written(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Text(text) => quoted(text),
        Piece::Control(id) => format!("<[{id}]>"),
    }
}

/// A text as a literal. All but letters, digits and a few signs are escaped, so no text has a meaning.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() || b"_ .:<>[]{}()=|-".contains(&byte) => {
                out.push(byte.into())
            }
            // Writing to a string cannot fail.
            _ => drop(write!(out, "\\u{unit:04X}")),
        }
    }
    out.push('"');
    out
}
