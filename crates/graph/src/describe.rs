//! A graph as text, one line per operation: for inspection and snapshot tests.

use std::fmt;

use crate::graph::{Graph, Node};
use crate::id::ValueId;
use crate::weight::Weight;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, rope) in self.ropes.iter().enumerate() {
            writeln!(f, "rope {i}: {}", without_absent(&format!("{rope:?}")))?;
        }
        for (i, layer) in self.kv.iter().enumerate() {
            writeln!(f, "cache {i}: {layer:?}")?;
        }
        for (i, layer) in self.states.iter().enumerate() {
            writeln!(f, "state {i}: {layer:?}")?;
        }
        for weight in &self.weights {
            writeln!(f, "{weight}")?;
        }
        for node in &self.nodes {
            writeln!(f, "{}", self.line(node))?;
        }
        let name = |v: Option<ValueId>| v.map_or("none".to_owned(), |v| format!("%{}", v.0));
        writeln!(f, "logits {}, hidden {}", name(self.logits), name(self.hidden))
    }
}

impl Graph {
    /// `%3 [256] = Add { a: %1, b: %2 }`; with slots `%3 [2 x 256]`.
    fn line(&self, node: &Node) -> String {
        let op = replaced(&format!("{:?}", node.op), "ValueId(", |i| format!("%{i}"));
        let op = replaced(&op, "WeightId(", |i| self.weights[i].name.clone());
        let width = match (self.slots(node.out), self.width(node.out)) {
            (0, width) => format!("{width}"),
            (slots, width) => format!("{slots} x {width}"),
        };
        format!("%{} [{width}] = {}", node.out.0, without_absent(&op))
    }
}

impl fmt::Display for Weight {
    /// Name, type and shape; for a part of a tensor also its first row, run length and stride.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Weight { name, ty, row0, n_row, n_col, n_expert, run, stride, .. } = self;
        write!(f, "{name} {ty} [")?;
        if *n_expert > 1 {
            write!(f, "{n_expert}, ")?;
        }
        write!(f, "{}, {n_col}]", self.expert_rows())?;
        if *row0 > 0 || run != stride {
            write!(f, " from row {row0}, {run} of each {stride} of {n_row}")?;
        }
        Ok(())
    }
}

/// The text with every `PREFIX<number>)` replaced.
fn replaced(text: &str, prefix: &str, by: impl Fn(usize) -> String) -> String {
    let mut parts = text.split(prefix);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once(')').expect("an id ends with a parenthesis");
        out += &by(number.parse().expect("an id is a number"));
        out += rest;
    }
    out
}

/// A derived `Debug` text without its fields that are `None`.
fn without_absent(text: &str) -> String {
    let is_absent = |core: &str| core.strip_suffix(": None").is_some_and(|name| !name.contains(' '));
    let mut out = String::new();
    for (i, field) in text.split(", ").enumerate() {
        let core = field.trim_end_matches([' ', '}', ')', ']']);
        let closing = &field[core.len()..];
        let kept = if is_absent(core) { "" } else { core };
        if i > 0 && !kept.is_empty() {
            out += ", ";
        }
        out += kept;
        out += closing;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_fields_are_left_out() {
        let all = "A { a: 1, b: None, c: B { d: 2, e: None }, f: Some([1, 2]), g: None }";
        assert_eq!(without_absent(all), "A { a: 1, c: B { d: 2 }, f: Some([1, 2]) }");
        assert_eq!(without_absent("A { a: None }"), "A { a: None }");
    }

    #[test]
    fn ids_are_replaced_by_names() {
        let text = "A { x: ValueId(12), y: [ValueId(3), ValueId(0)] }";
        assert_eq!(replaced(text, "ValueId(", |i| format!("%{i}")), "A { x: %12, y: [%3, %0] }");
    }
}
