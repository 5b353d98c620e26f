//! Limits of grammars, checked before they are compiled: the compiler recurses along the references between
//! rules, and takes time and memory for each part.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{ConstraintError, Grammar};

/// Maximum length of a grammar, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Maximum number of rules and terminals of a grammar, and of values in a schema.
const MAX_PARTS: usize = 20_000;
/// Maximum number of alternatives, in all rules or in an expression.
const MAX_ALTERNATIVES: usize = 5_000;
/// Maximum length of a chain of rules of which each refers to the next.
const MAX_CHAIN: usize = 200;
/// Maximum nesting of JSON in a schema, with that of the definitions that it refers to.
const MAX_LEVELS: usize = 100;
/// Maximum number of properties of an object in a schema.
const MAX_PROPERTIES: usize = 1000;
/// Maximum number of references in a schema that are not followed here; they may form a chain.
const MAX_ANCHORS: usize = 30;
/// Maximum of the least common multiple of all `multipleOf` in a schema, as an integer: the compiler has a state for
/// each remainder.
const MAX_MULTIPLE: u64 = 100_000;
/// Maximum of the same if it is a power of ten, for which few remainders matter; they are computed in 32 bits.
const MAX_POWER: u64 = 100_000_000;
/// Maximum number of decimals of `multipleOf`.
const MAX_DECIMALS: usize = 8;
/// Maximum nesting of groups in an expression.
const MAX_GROUPS: usize = 100;

/// Fails for a grammar beyond the limits.
pub(super) fn check(grammar: &Grammar) -> Result<(), ConstraintError> {
    let limits = Limits { kind: grammar.kind() };
    match grammar {
        Grammar::JsonSchema(schema) => limits.schema(schema),
        Grammar::Regex(regex) => limits.regex(regex),
        Grammar::Lark(text) => limits.lark(text),
        // It is checked again as the grammar that it is translated to.
        Grammar::Gbnf(text) => limits.at_most("bytes", MAX_BYTES, text.len()),
        Grammar::Own(_) => Ok(()),
    }
}

/// Fails for a translated grammar beyond the limits.
pub(super) fn check_translated(lark: &str) -> Result<(), ConstraintError> {
    // The translation is longer than its source by a factor.
    Limits { kind: "grammar" }.rules(lark)
}

/// The part of a schema that a path such as `#/$defs/a` leads to.
fn definition<'s>(schema: &'s Value, path: &str) -> Option<&'s Value> {
    schema.pointer(path.strip_prefix('#')?)
}

struct Limits {
    kind: &'static str,
}

impl Limits {
    fn at_most(&self, what: &'static str, limit: usize, n: usize) -> Result<(), ConstraintError> {
        if n > limit {
            return Err(ConstraintError::Limit { kind: self.kind, what, limit });
        }
        Ok(())
    }

    fn schema(&self, schema: &Value) -> Result<(), ConstraintError> {
        // Definitions are compiled where they are first referred to, in an order that is the compiler's own.
        self.schema_from(schema, false)?;
        self.schema_from(schema, true)
    }

    /// Goes through a schema depth first, in order or in reverse, and through definitions at their first use.
    fn schema_from(&self, schema: &Value, is_reversed: bool) -> Result<(), ConstraintError> {
        let (mut n_value, mut n_byte, mut n_anchor) = (0, 0, 0);
        let (mut is_seen, mut multiples) = (HashSet::new(), Vec::new());
        let mut stack = vec![(schema, 1)];
        while let Some((value, depth)) = stack.pop() {
            self.at_most("levels", MAX_LEVELS, depth)?;
            n_value += 1;
            let first = stack.len();
            match value {
                Value::String(text) => n_byte += text.len(),
                Value::Array(items) => stack.extend(items.iter().map(|item| (item, depth + 1))),
                Value::Object(entries) => {
                    self.at_most("properties of an object", MAX_PROPERTIES, entries.len())?;
                    for (key, value) in entries {
                        n_byte += key.len();
                        match (key.as_str(), value) {
                            ("$ref" | "$dynamicRef", Value::String(to)) => match definition(schema, to) {
                                Some(definition) if is_seen.insert(to) => stack.push((definition, depth + 1)),
                                Some(_) => {}
                                None => n_anchor += 1,
                            },
                            ("pattern", Value::String(pattern)) => self.regex(pattern)?,
                            ("multipleOf", Value::Number(n)) => multiples.extend(n.as_f64()),
                            ("$defs" | "definitions", _) => {}
                            _ => stack.push((value, depth + 1)),
                        }
                    }
                }
                _ => {}
            }
            if !is_reversed {
                stack[first..].reverse();
            }
            self.at_most("values", MAX_PARTS, n_value)?;
        }
        self.multiples(&multiples)?;
        self.at_most("bytes", MAX_BYTES, n_byte)?;
        self.at_most("references by other names than paths", MAX_ANCHORS, n_anchor)
    }

    /// Numbers that values are multiples of; a value may have to be a multiple of several.
    fn multiples(&self, all: &[f64]) -> Result<(), ConstraintError> {
        // 0.07 times 100 is not quite 7.
        let is_whole = |n: f64| (n - n.round()).abs() <= 1e-9 * n.abs();
        let n_decimal = |n: f64| (0..=MAX_DECIMALS).find(|k| is_whole(n * 10f64.powi(*k as i32)));
        let mut decimals = 0;
        for n in all {
            let n = n_decimal(*n).unwrap_or(MAX_DECIMALS + 1);
            self.at_most("decimals of `multipleOf`", MAX_DECIMALS, n)?;
            decimals = decimals.max(n);
        }
        let mut multiple = 1;
        for n in all {
            let n = (n.abs() * 10f64.powi(decimals as i32)).round();
            // The compiler reports those that are not positive.
            if n >= 1.0 {
                multiple = lcm(multiple, n as u64);
            }
        }
        let mut digits = multiple;
        while digits.is_multiple_of(10) {
            digits /= 10;
        }
        let limit = if digits == 1 { MAX_POWER } else { MAX_MULTIPLE };
        let what = "for the least common multiple of all `multipleOf`, as an integer";
        self.at_most(what, limit as usize, usize::try_from(multiple).unwrap_or(usize::MAX))
    }

    fn regex(&self, regex: &str) -> Result<(), ConstraintError> {
        self.at_most("bytes", MAX_BYTES, regex.len())?;
        let (mut depth, mut n_alternative, mut is_escaped) = (0usize, 1, false);
        for c in regex.chars() {
            match c {
                _ if is_escaped => {
                    is_escaped = false;
                    continue;
                }
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                '|' => n_alternative += 1,
                _ => {}
            }
            is_escaped = c == '\\';
            self.at_most("nested groups", MAX_GROUPS, depth)?;
        }
        self.at_most("alternatives", MAX_ALTERNATIVES, n_alternative)
    }

    fn lark(&self, text: &str) -> Result<(), ConstraintError> {
        self.at_most("bytes", MAX_BYTES, text.len())?;
        for (_, json) in text.match_indices("%json").map(|(at, found)| text.split_at(at + found.len())) {
            let schema = serde_json::Deserializer::from_str(json).into_iter::<Value>().next();
            // The compiler reports the error of JSON that is none.
            schema.and_then(Result::ok).map_or(Ok(()), |schema| self.schema(&schema))?;
        }
        self.rules(text)
    }

    fn rules(&self, text: &str) -> Result<(), ConstraintError> {
        let rules = Rules::scan(text);
        self.at_most("rules and terminals", MAX_PARTS, rules.n_part)?;
        self.at_most("alternatives", MAX_ALTERNATIVES, rules.n_alternative)?;
        self.at_most("rules in a chain", MAX_CHAIN, rules.longest_chain())
    }
}

/// The least common multiple, at most `u64::MAX`.
fn lcm(a: u64, b: u64) -> u64 {
    let (mut gcd, mut rest) = (a, b);
    while rest > 0 {
        (gcd, rest) = (rest, gcd % rest);
    }
    (a / gcd).saturating_mul(b)
}

/// The rules of a grammar and what they refer to, in order.
#[derive(Default)]
struct Rules<'t> {
    numbers: HashMap<&'t str, usize>,
    /// For each name its references.
    references: Vec<Vec<usize>>,
    n_part: usize,
    n_alternative: usize,
}

impl<'t> Rules<'t> {
    fn scan(text: &'t str) -> Rules<'t> {
        let mut rules = Rules::default();
        let mut current = rules.number("start");
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let token = token(rest);
            rest = &rest[token.len()..];
            match c {
                '|' => rules.n_alternative += 1,
                '"' | '/' if !token.starts_with("//") => rules.n_part += 1,
                // The parameter of a rule.
                '_' if token == "_" => {}
                _ if is_name(c) => {
                    let name = token.trim_start_matches(['!', '?']);
                    let number = rules.number(name);
                    rules.n_part += 1;
                    match is_defined(rest) {
                        true => current = number,
                        false => rules.references[current].push(number),
                    }
                }
                _ => {}
            }
        }
        rules
    }

    fn number(&mut self, name: &'t str) -> usize {
        let next = self.references.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.references.push(Vec::new());
        }
        number
    }

    /// The deepest recursion of a compiler that goes from `start` to each rule at its first use.
    fn longest_chain(&self) -> usize {
        let mut is_seen = vec![false; self.references.len()];
        let mut longest = 0;
        for first in 0..self.references.len() {
            let mut path = vec![(first, 0)];
            while let Some((rule, at)) = path.last_mut() {
                is_seen[*rule] = true;
                let next = self.references[*rule].get(*at).copied();
                *at += 1;
                match next {
                    Some(next) if !is_seen[next] => path.push((next, 0)),
                    Some(_) => {}
                    None => drop(path.pop()),
                }
                longest = longest.max(path.len());
            }
        }
        longest
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '!' | '?')
}

/// The token, comment or single character at the start of `text`.
fn token(text: &str) -> &str {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let end = match text.as_bytes()[0] {
        b'"' => quoted(text, '"'),
        b'#' => text.find('\n').unwrap_or(text.len()),
        b'/' if text.starts_with("//") => text.find('\n').unwrap_or(text.len()),
        b'/' => quoted(text, '/'),
        byte if is_name(byte.into()) => text[1..]
            .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))
            .map_or(text.len(), |at| 1 + at),
        _ => first,
    };
    &text[..end]
}

/// The end of a text in quotes, or of its first line if it is not closed.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// True if what follows a name makes it that of a definition: parameters, a priority or attributes, and a colon.
fn is_defined(rest: &str) -> bool {
    let mut rest = rest;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let skipped = match rest.as_bytes().first() {
            Some(b':') if rest.starts_with("::") => {
                let behind = rest[2..].trim_start_matches([' ', '\t']);
                // An argument of a rule with parameters is no definition.
                match behind.strip_prefix('_') {
                    Some(behind) if !behind.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
                        rest.len() - behind.len()
                    }
                    _ => return false,
                }
            }
            Some(b':') => return true,
            Some(b'{') => rest.find('}').map_or(rest.len(), |at| at + 1),
            Some(b'.') => {
                let behind = rest[1..]
                    .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ' '));
                rest.len() - behind.len()
            }
            Some(b'[') => {
                let mut at = 1;
                while at < rest.len() && !rest[at..].starts_with(']') {
                    at += token(&rest[at..]).len();
                }
                (at + 1).min(rest.len())
            }
            _ => return false,
        };
        rest = &rest[skipped..];
        if rest.is_empty() {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn chain(text: &str) -> usize {
        Rules::scan(text).longest_chain()
    }

    #[test]
    fn chains_are_those_of_the_compiler() {
        assert_eq!(chain("start: a\na: b\nb: \"c\"\n"), 3);
        assert_eq!(chain("start: a | b\na: \"b\"\nb: \"a: b\" // a: b\n"), 2);
        assert_eq!(chain("start: start a\na: start\n"), 2);
        assert_eq!(chain("start: A\nA: B /:b/\nB.2: C\n!c[capture=\"]:\", lazy]: d{1,2}\nC: \"x\""), 4);
        assert_eq!(chain("start: r::0\nr::_: s::incr(0)\ns::_: \"a\"\n"), 3);
    }

    #[test]
    fn grammars_beyond_a_limit_are_errors_that_name_it() {
        let long: String = (0..300).map(|i| format!("r{i}: r{}\n", i + 1)).collect();
        let error = check(&Grammar::Lark(format!("start: r0\n{long}r300: \"a\"\n"))).unwrap_err();
        assert_eq!(error.to_string(), "the grammar exceeds the limit of 200 rules in a chain");
        let error = check(&Grammar::Regex("a|".repeat(6000))).unwrap_err();
        assert_eq!(error.to_string(), "the regular expression exceeds the limit of 5000 alternatives");
        let references: Map<String, Value> = (0..90)
            .map(|i| (format!("d{i}"), json!({"items": {"$ref": format!("#/$defs/d{}", i + 1)}})))
            .collect();
        let error =
            check(&Grammar::JsonSchema(json!({"$defs": references, "$ref": "#/$defs/d0"}))).unwrap_err();
        assert_eq!(error.to_string(), "the JSON schema exceeds the limit of 100 levels");
        let schema = |multiples: &[f64]| {
            let all: Vec<Value> = multiples.iter().map(|n| json!({ "multipleOf": n })).collect();
            check(&Grammar::JsonSchema(json!({ "allOf": all }))).err().map(|e| e.to_string())
        };
        let digits = "the JSON schema exceeds the limit of 100000 for the least common multiple of all `multipleOf`, as an \
                      integer";
        for refused in
            [&[1_999_999.0][..], &[-1_999_999.0], &[1009.0, 1013.0], &[f64::MAX], &[0.01, 100_000.07]]
        {
            assert_eq!(schema(refused).as_deref(), Some(digits), "{refused:?}");
        }
        let decimals = "the JSON schema exceeds the limit of 8 decimals of `multipleOf`";
        assert_eq!(schema(&[1e-300]).as_deref(), Some(decimals));
        let zeros = "the JSON schema exceeds the limit of 100000000 for the least common multiple of all `multipleOf`, as an \
                     integer";
        assert_eq!(schema(&[1e10]).as_deref(), Some(zeros));
        assert_eq!(schema(&[1_000_000.0]), None);
        assert_eq!(schema(&[0.01, 0.1, 0.07, 60.0, 0.0]), None);
        let deep = (0..120).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let error = check(&Grammar::JsonSchema(deep)).unwrap_err();
        assert_eq!(error.to_string(), "the JSON schema exceeds the limit of 100 levels");
    }
}
