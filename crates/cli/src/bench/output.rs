//! Results as a Markdown table, JSON, JSON lines, CSV or SQL, in the columns of llama-bench.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::measure::Test;
use super::sql;
use crate::ui::{self, Side};

/// Output format.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A table
    Md,
    /// One array
    Json,
    /// One object a line
    Jsonl,
    /// One line a test
    Csv,
    /// Statements that fill a table
    Sql,
    /// Nothing
    None,
}

/// One result.
pub(super) struct Record {
    /// Every field, in order.
    pub(super) fields: Map<String, Value>,
    pub(super) test: Test,
    /// Columns of the table between the backend and the test: title, value and width.
    pub(super) columns: Vec<(&'static str, String, usize)>,
}

/// Writes results as they arrive.
pub(super) struct Writer<W> {
    out: W,
    format: Format,
    n: usize,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W, format: Format) -> Self {
        Writer { out, format, n: 0 }
    }

    pub(super) fn add(&mut self, r: &Record) -> io::Result<()> {
        match self.format {
            Format::Md => self.row(r)?,
            Format::Json => write!(
                self.out,
                "{}{:#}",
                if self.n == 0 { "[\n" } else { ",\n" },
                Value::Object(r.fields.clone())
            )?,
            Format::Jsonl => writeln!(self.out, "{}", Value::Object(r.fields.clone()))?,
            Format::Csv => self.line(r)?,
            Format::Sql => {
                if self.n == 0 {
                    sql::head(&mut self.out)?;
                }
                sql::row(&mut self.out, &r.fields)?;
            }
            Format::None => {}
        }
        self.n += 1;
        self.out.flush()
    }

    /// Adds an object of one field, in formats that have objects.
    pub(super) fn add_alone(&mut self, key: &str, value: Value) -> io::Result<()> {
        if !matches!(self.format, Format::Json | Format::Jsonl) {
            return Ok(());
        }
        let test = Test { n_prompt: 0, n_gen: 0, n_depth: 0 };
        let fields = [(key.to_owned(), value)].into_iter().collect();
        self.add(&Record { fields, test, columns: Vec::new() })
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        match self.format {
            Format::Json => writeln!(self.out, "{}", if self.n == 0 { "[]" } else { "\n]" })?,
            Format::Md if self.n > 0 => {
                let (commit, number) = (env!("CHASKI_COMMIT"), env!("CHASKI_BUILD_NUMBER"));
                writeln!(self.out, "\nbuild: {commit} ({number})")?;
            }
            _ => {}
        }
        self.out.flush()
    }

    fn row(&mut self, r: &Record) -> io::Result<()> {
        let number = |key: &str| r.fields[key].as_f64().unwrap_or(0.0);
        let text = |key: &str| r.fields[key].as_str().unwrap_or("").to_owned();
        let mut cells = vec![
            ("model", text("model_type"), 30, Side::Left),
            ("size", size(number("model_size")), 10, Side::Right),
            ("params", params(number("model_n_params")), 10, Side::Right),
            ("backend", text("backends"), 10, Side::Left),
        ];
        let more = r.columns.iter();
        cells.extend(
            more.map(|(title, value, width)| (*title, value.clone(), title.len().max(*width), Side::Right)),
        );
        cells.push(("test", r.test.name(), 15, Side::Right));
        cells.push(("t/s", format!("{:.2} ± {:.2}", number("avg_ts"), number("stddev_ts")), 20, Side::Right));
        if self.n == 0 {
            writeln!(
                self.out,
                "{}",
                ui::row(cells.iter().map(|(title, _, width, side)| (*title, *width, *side)))
            )?;
            writeln!(self.out, "{}", ui::rule(cells.iter().map(|(_, _, width, side)| (*width, *side))))?;
        }
        let values = cells.iter().map(|(_, value, width, side)| (value.as_str(), *width, *side));
        writeln!(self.out, "{}", ui::row(values))
    }

    fn line(&mut self, r: &Record) -> io::Result<()> {
        let scalar = |(_, v): &(&String, &Value)| !v.is_array() && !v.is_object();
        let fields: Vec<_> = r.fields.iter().filter(scalar).collect();
        if self.n == 0 {
            let names: Vec<&str> = fields.iter().map(|(k, _)| k.as_str()).collect();
            writeln!(self.out, "{}", names.join(","))?;
        }
        let values: Vec<String> = fields.iter().map(|(_, v)| quoted(v)).collect();
        writeln!(self.out, "{}", values.join(","))
    }
}

fn quoted(v: &Value) -> String {
    let text = match v {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        v => v.to_string(),
    };
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn size(n: f64) -> String {
    match n {
        n if n >= 1024f64.powi(3) => format!("{:.2} GiB", n / 1024f64.powi(3)),
        n => format!("{:.2} MiB", n / 1024f64.powi(2)),
    }
}

fn params(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.2} B", n / 1e9),
        n => format!("{:.2} M", n / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> Record {
        let fields = json!({
            "backends": "Vulkan", "model_type": "llama 1.00B \"x\"", "model_size": 1 << 30, "model_n_params": 1_000_000_000,
            "n_gpu_layers": 99, "avg_ts": 12.345, "stddev_ts": 0.5, "ttft_ms": null, "samples_ts": [1.0],
        });
        let Value::Object(fields) = fields else { unreachable!("it is written as an object") };
        let columns = vec![("ngl", "99".into(), 3), ("n_ubatch", "64".into(), 8)];
        Record { fields, test: Test { n_prompt: 8, n_gen: 0, n_depth: 0 }, columns }
    }

    fn written(format: Format, n: usize) -> String {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out, format);
        (0..n).for_each(|_| w.add(&record()).unwrap());
        w.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn table_has_a_head_and_cells_of_mean_and_deviation() {
        let text = written(Format::Md, 2);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6);
        assert!(lines[4].is_empty() && lines[5].starts_with("build: ") && lines[5].ends_with(')'), "{text}");
        let lines = &lines[..4];
        let cells: Vec<&str> = lines[0].split('|').map(str::trim).collect();
        assert_eq!(cells, ["", "model", "size", "params", "backend", "ngl", "n_ubatch", "test", "t/s", ""]);
        assert!(lines[2].contains("| 1.00 GiB |") || lines[2].contains(" 1.00 GiB |"), "{text}");
        assert!(lines[2].contains("12.35 ± 0.50") || lines[2].contains("12.34 ± 0.50"), "{text}");
        let width = |l: &str| l.chars().count();
        assert!(lines.iter().all(|l| width(l) == width(lines[0])), "{text}");
    }

    #[test]
    fn json_is_an_array_and_lines_are_objects() {
        assert_eq!(serde_json::from_str::<Vec<Value>>(&written(Format::Json, 2)).unwrap().len(), 2);
        assert_eq!(serde_json::from_str::<Vec<Value>>(&written(Format::Json, 0)).unwrap().len(), 0);
        assert!(written(Format::Jsonl, 2).lines().all(|l| serde_json::from_str::<Value>(l).is_ok()));
    }

    #[test]
    fn sql_makes_the_table_once() {
        let text = written(Format::Sql, 2);
        assert_eq!(text.matches("CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,").count(), 1);
        assert_eq!(text.matches("\nINSERT INTO llama_bench (").count(), 2, "{text}");
        assert_eq!(written(Format::None, 2), "");
    }

    #[test]
    fn csv_quotes_and_leaves_lists_out() {
        let text = written(Format::Csv, 1);
        assert!(!text.contains("samples_ts") && text.contains("\"llama 1.00B \"\"x\"\"\""), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
