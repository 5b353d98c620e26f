//! Resource limits: a template is a program that comes with a model, and need not terminate.
//!
//! Every text, list and dictionary holds a [`Charge`], without which it cannot be made; so the memory of a
//! rendering is bounded whatever makes it. Time is counted in steps: one for each expression, statement and
//! item, and one for each [`BYTES_PER_STEP`] bytes that are read or written. Texts are counted where they
//! are passed on: to a filter, a method or a comparison, and to a dictionary as keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::fault::{Fault, Result};

/// Maximum number of steps per rendering: enough for a hundred thousand messages, and takes only seconds.
pub(crate) const MAX_STEPS: u64 = 20_000_000;

/// Maximum number of bytes that the values and the text of one rendering occupy at any time: more than fits
/// any context.
pub(crate) const MAX_BYTES: usize = 1 << 26;

/// Maximum nesting of values. Deeper ones cannot be made, so printing, comparing and dropping them may recurse.
pub(super) const MAX_VALUE_DEPTH: u16 = 128;

/// Maximum nesting of expressions, statements and macro calls under evaluation.
pub(super) const MAX_CALL_DEPTH: u32 = 250;

const BYTES_PER_STEP: usize = 32;

/// How many bytes take as long as one that is read closely.
const CLOSELY: usize = 16;

/// The counters of one rendering.
#[derive(Debug)]
pub(super) struct Meter {
    n_live_byte: AtomicUsize,
    n_step: AtomicU64,
    max_byte: usize,
    max_step: u64,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter { max_byte: MAX_BYTES, max_step: MAX_STEPS, ..Meter::unlimited() }
    }
}

impl Meter {
    /// A meter for the program's own templates, which only stops those that never end.
    pub(super) fn generous() -> Meter {
        Meter { max_byte: 1 << 29, max_step: 1 << 32, ..Meter::unlimited() }
    }

    /// A meter for the variables, which are the caller's.
    pub(super) fn unlimited() -> Meter {
        Meter { n_live_byte: 0.into(), n_step: 0.into(), max_byte: usize::MAX, max_step: u64::MAX }
    }

    /// Counts `n` steps. Only one thread renders, so the counters need no atomic additions.
    pub(super) fn step(&self, n: u64) -> Result<()> {
        let n_step = self.n_step.load(Relaxed).saturating_add(n);
        self.n_step.store(n_step, Relaxed);
        if n_step > self.max_step { Err(Fault::limit("steps", self.max_step)) } else { Ok(()) }
    }

    /// Counts the reading of `n_byte` bytes.
    pub(super) fn read(&self, n_byte: usize) -> Result<()> {
        self.step((n_byte / BYTES_PER_STEP) as u64)
    }

    /// Counts the reading of a text whose characters are each looked up in tables, or printed one by one.
    pub(super) fn read_closely(&self, text: &str) -> Result<()> {
        self.read(CLOSELY * text.len())
    }

    /// The right to occupy `n_byte` bytes.
    pub(super) fn charge(self: &Arc<Self>, n_byte: usize) -> Result<Charge> {
        let mut charge = Charge { n_byte: 0, meter: Some(self.clone()) };
        charge.grow(n_byte)?;
        Ok(charge)
    }
}

/// Bytes that a value occupies; they are free again once it is dropped.
#[derive(Debug, Default)]
pub(super) struct Charge {
    n_byte: usize,
    /// `None` for constants of the template, whose size is bounded by its source.
    pub(super) meter: Option<Arc<Meter>>,
}

impl Charge {
    pub(super) fn n_byte(&self) -> usize {
        self.n_byte
    }

    /// Adds `n_byte` bytes.
    pub(super) fn grow(&mut self, n_byte: usize) -> Result<()> {
        let Some(meter) = &self.meter else { return Ok(()) };
        let n_live = meter.n_live_byte.load(Relaxed).saturating_add(n_byte);
        if n_live > meter.max_byte {
            return Err(Fault::limit("bytes of text and values", meter.max_byte as u64));
        }
        meter.read(n_byte)?;
        meter.n_live_byte.store(n_live, Relaxed);
        self.n_byte += n_byte;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter {
            let n_live = meter.n_live_byte.load(Relaxed);
            meter.n_live_byte.store(n_live.saturating_sub(self.n_byte), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{ALONE, Dialect};
    use crate::run::Run;
    use crate::value::Value;
    use crate::{Program, filters, text_methods};

    /// Steps of a template whose variable `s` is a text of `n_byte` bytes. It may fail.
    fn n_step(source: &str, n_byte: usize) -> u64 {
        let text = Value::text(&Arc::new(Meter::unlimited()), "é".repeat(n_byte / 2)).unwrap();
        let meter = Arc::new(Meter::default());
        let run = Run::new(&ALONE, Dialect::Chat, meter.clone(), vec![("s", text)], None).unwrap();
        let _ = run.render(&Program::parse(source).unwrap());
        meter.n_step.load(Relaxed)
    }

    /// Fails for templates that do not take the steps of reading `s` as often as they do.
    fn assert_reads(templates: Vec<(String, u64)>) {
        const N_BYTE: usize = 1 << 16;
        let mut wrong = Vec::new();
        for (source, n) in templates {
            let more = n_step(&source, N_BYTE).saturating_sub(n_step(&source, 2));
            // The short text is read, too.
            if more + 4 < n * (N_BYTE / BYTES_PER_STEP) as u64 {
                wrong.push(format!("{source}: {more} steps"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn filters_and_methods_count_the_texts_that_they_read() {
        let filters = filters::FILTERS.iter().flat_map(|(name, _)| {
            [
                format!("{{% set x = s|{name} %}}"),
                format!("{{% set x = 'a'|{name}(s) %}}"),
                format!("{{% set x = 'a'|{name}(none_such=s) %}}"),
                format!("{{% set x = [s, s, s]|map('{name}')|list %}}"),
            ]
        });
        let methods = text_methods::NAMES.iter().flat_map(|name| {
            [
                format!("{{% set x = s.{name}() %}}"),
                format!("{{% set x = 'a'.{name}(s) %}}"),
                format!("{{% set f = s.{name} %}}{{% set x = f() %}}"),
            ]
        });
        assert_reads(filters.chain(methods).map(|source| (source, 1)).collect());
    }

    #[test]
    fn operators_tests_and_keys_count_the_texts_that_they_read() {
        let t = "{% set t = 'é' * (s|length) %}";
        let expressions = [
            ("s is lower", 1),
            ("s is upper", 1),
            ("s is sameas t", 1),
            ("s is eq t", 1),
            ("s == t", 1),
            ("s < t", 1),
            ("s in [t]", 1),
            ("'a' in s", 1),
            ("s in 'a'", 1),
            ("s ~ 1", 1),
            ("s + t", 2),
            ("s[0]", 1),
            ("s[:1]", 1),
            ("s % 1", 1),
            ("s|length", 1),
            ("s|int", 1),
            ("s|wordcount", 1),
            ("{s: 1}", 1),
            ("{(1, (s, s)): 1}", 2),
            ("{}[s]", 1),
            ("{s: 1}[t]", 2),
            ("{s: 1} == {t: 1}", 3),
            ("s in {}", 1),
            ("(s, s) in {}", 2),
            ("{}.get(s)", 1),
            ("{}.fromkeys([s, s])", 2),
            ("dict([(s, 1)])", 1),
            ("namespace(a=1)[s]", 1),
            ("namespace({s: 1})", 2),
            ("[s, s]|unique|list", 2),
            ("[1, s]|attr(s)", 1),
            ("'a'.startswith((t, t, t))", 3),
            ("[]|tojson(separators=(s, s))", 2),
            ("range(1)[s]", 1),
        ];
        let closely =
            ["s is lower", "s.isalpha()", "s.isprintable()", "s.istitle()", "[s]|string", "s|tojson"];
        // `t` is made of a length that is read, and holds as many bytes.
        let templates = expressions.map(|(expression, n)| (expression, n + 2));
        let templates = templates.into_iter().chain(closely.map(|expression| (expression, 10)));
        let source = |expression| format!("{t}{{% set x = {expression} %}}");
        assert_reads(templates.map(|(expression, n)| (source(expression), n)).collect());
    }

    #[test]
    fn items_that_are_visited_take_steps() {
        for (source, least) in [
            ("{{ (range(9999)|list)|sum }}", 20_000),
            ("{{ {}.fromkeys(range(9999))|xmlattr }}", 40_000),
            ("{{ ('a,' * 9999).replace('a,', '') }}", 10_000),
            ("{{ ('%%' * 9999) % () }}", 10_000),
            ("{% set a, a, a, a, a, a, a, a = [1] * 8 %}", 8),
        ] {
            assert!(n_step(source, 0) >= least, "{source}: {} steps", n_step(source, 0));
        }
        let n = |source: &str| n_step(source, 0);
        assert!(n("{{ ([1] * 9999).count(1, 0, 9) }}") < n("{{ ([1] * 9999).count(1) }}") - 9000);
    }
}
