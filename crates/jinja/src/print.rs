//! Values as text: Python's `str` and `repr`.

use super::decimal::float;
use super::environment::Dialect;
use super::fault::{Fault, Result};
use super::meter::MAX_VALUE_DEPTH;
use super::run::Run;
use super::value::{TextBuilder, Value};

impl Run<'_> {
    /// Python's `str(value)`.
    pub(super) fn str(&self, value: &Value) -> Result<Value> {
        if let Value::Str(_) = value {
            return Ok(value.clone());
        }
        let mut out = self.text()?;
        self.write_str(value, &mut out)?;
        Ok(out.finish())
    }

    pub(super) fn write_str(&self, value: &Value, out: &mut TextBuilder) -> Result<()> {
        match value {
            Value::Str(text) => out.push_text(text),
            _ => self.write(value, 0, out),
        }
    }

    /// Python's `repr(value)`.
    pub(super) fn repr(&self, value: &Value) -> Result<Value> {
        let mut out = self.text()?;
        match value {
            Value::Undefined(_) => out.push("Undefined")?,
            _ => self.write(value, 0, &mut out)?,
        }
        Ok(out.finish())
    }

    /// `repr` at a depth of values; namespaces can contain themselves.
    fn write(&self, value: &Value, depth: u16, out: &mut TextBuilder) -> Result<()> {
        if depth > MAX_VALUE_DEPTH {
            return Err(Fault::limit("levels of nested values", MAX_VALUE_DEPTH.into()));
        }
        self.meter.step(1)?;
        match value {
            Value::Undefined(_) => self.check(value),
            Value::None => out.push(if self.dialect == Dialect::Code { "none" } else { "None" }),
            Value::Bool(b) => out.push(match (self.dialect, b) {
                (Dialect::Chat, true) => "True",
                (Dialect::Chat, false) => "False",
                (Dialect::Code, true) => "true",
                (Dialect::Code, false) => "false",
            }),
            Value::Int(n) => out.push(&n.to_string()),
            Value::Float(x) => out.push(&float(*x)),
            Value::Str(text) => {
                self.meter.read_closely(text)?;
                let start = out.len();
                quote(text, out)?;
                out.mark_since(start, text)
            }
            Value::List(items) => self.write_items(items, ["[", "]"], depth, out),
            Value::Tuple(items) if items.len() == 1 => self.write_items(items, ["(", ",)"], depth, out),
            Value::Tuple(items) => self.write_items(items, ["(", ")"], depth, out),
            Value::View(items, name) => {
                out.push(name)?;
                self.write_items(items, ["([", "])"], depth, out)
            }
            Value::Dict(dict) => self.write_entries(dict.iter(), depth, out),
            Value::Namespace(id) => {
                out.push("<Namespace ")?;
                self.write_entries(self.namespaces[*id].iter(), depth, out)?;
                out.push(">")
            }
            Value::Range(range) if range.step == 1 => {
                out.push(&format!("range({}, {})", range.start, range.stop))
            }
            Value::Range(range) => {
                out.push(&format!("range({}, {}, {})", range.start, range.stop, range.step))
            }
            Value::Loop(id, serial) => match self.loop_state(*id, *serial) {
                Ok(state) => out.push(&format!("<LoopContext {}/{}>", state.index + 1, state.items.len())),
                Err(_) => out.push("<LoopContext>"),
            },
            Value::Macro(id) => out.push(&format!("<Macro '{}'>", self.macros[*id].decl.name)),
            other => out.push(&format!("<{}>", other.type_name())),
        }
    }

    fn write_items(
        &self,
        items: &[Value],
        [open, close]: [&str; 2],
        depth: u16,
        out: &mut TextBuilder,
    ) -> Result<()> {
        out.push(open)?;
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push(", ")?;
            }
            self.write_item(item, depth, out)?;
        }
        out.push(close)
    }

    fn write_entries<'v>(
        &self,
        entries: impl Iterator<Item = (&'v Value, &'v Value)>,
        depth: u16,
        out: &mut TextBuilder,
    ) -> Result<()> {
        out.push("{")?;
        for (i, (key, value)) in entries.enumerate() {
            if i > 0 {
                out.push(", ")?;
            }
            self.write_item(key, depth, out)?;
            out.push(": ")?;
            self.write_item(value, depth, out)?;
        }
        out.push("}")
    }

    fn write_item(&self, item: &Value, depth: u16, out: &mut TextBuilder) -> Result<()> {
        match item {
            Value::Undefined(_) => out.push("Undefined"),
            _ => self.write(item, depth + 1, out),
        }
    }
}

/// A text in quotes, with Python's escapes.
fn quote(text: &str, out: &mut TextBuilder) -> Result<()> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push_char(quote)?;
    for c in text.chars() {
        match c {
            '\n' => out.push("\\n")?,
            '\r' => out.push("\\r")?,
            '\t' => out.push("\\t")?,
            '\\' => out.push("\\\\")?,
            c if c == quote => {
                out.push_char('\\')?;
                out.push_char(c)?;
            }
            c if is_printable(c) => out.push_char(c)?,
            c if (c as u32) < 0x100 => out.push(&format!("\\x{:02x}", c as u32))?,
            c if (c as u32) < 0x10000 => out.push(&format!("\\u{:04x}", c as u32))?,
            c => out.push(&format!("\\U{:08x}", c as u32))?,
        }
    }
    out.push_char(quote)
}

/// Python's `str.isprintable` of a character. The standard library has the same table for its own escapes; it
/// escapes combining characters only at the start of a text.
pub(super) fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut text = [0; 5];
    text[0] = b'x';
    let n = 1 + c.encode_utf8(&mut text[1..]).len();
    let text = std::str::from_utf8(&text[..n]).unwrap_or_default();
    text.escape_debug().eq(text.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_characters_are_python_s() {
        for (c, expected) in [
            ('é', true),
            ('\u{301}', true),
            ('\u{a0}', false),
            ('\u{200b}', false),
            ('\u{7f}', false),
            ('中', true),
            ('\u{e000}', false),
        ] {
            assert_eq!(is_printable(c), expected, "{c:?}");
        }
    }
}
