//! Numbers, tables and paragraphs of the page.

use std::fmt::Write as _;

use serde_json::Value;

use super::results::number;

/// Integers with thousands separators, small numbers with one more digit.
pub(super) fn count(x: f64) -> String {
    if !x.is_finite() {
        return "-".into();
    }
    if x < 100.0 {
        return format!("{x:.1}");
    }
    let digits = format!("{x:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

pub(super) fn percent(part: f64, whole: f64) -> String {
    let p = 100.0 * part / whole;
    if p.is_finite() { format!("{p:.1} %") } else { "-".into() }
}

/// `1.23 x`, or `-` where one of both is missing.
pub(super) fn ratio(ours: f64, theirs: f64) -> String {
    let r = ours / theirs;
    if r.is_finite() { format!("{r:.2}") } else { "-".into() }
}

pub(super) fn gigabytes(v: &Value) -> String {
    let b = number(v);
    if !b.is_finite() {
        return "-".into();
    }
    if b >= 1e9 { format!("{:.2} GB", b / 1e9) } else { format!("{:.0} MB", b / 1e6) }
}

pub(super) fn milliseconds(x: f64) -> String {
    if x.is_finite() { format!("{} ms", count(x)) } else { "-".into() }
}

/// Mean and standard deviation of a record's tokens per second.
pub(super) fn rate(r: &Value) -> String {
    let (mean, deviation) = (number(&r["avg_ts"]), number(&r["stddev_ts"]));
    format!(
        "{} ± {}",
        count(mean),
        if deviation < 10.0 { format!("{deviation:.1}") } else { count(deviation) }
    )
}

/// A Markdown table; the first column and `left` more are left-aligned. Without rows it is a line that says which
/// command of `part` makes it.
pub(super) fn table(part: &str, head: &[&str], left: usize, rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return missing(part);
    }
    let mut out = format!("| {} |\n|", head.join(" | "));
    for i in 0..head.len() {
        out.push_str(if i <= left { " --- |" } else { " ---: |" });
    }
    for row in rows {
        let _ = write!(out, "\n| {} |", row.join(" | "));
    }
    out
}

/// The line in place of a table that nothing measured.
pub(super) fn missing(part: &str) -> String {
    format!("Not measured yet: `PARTS={part} xtask/perf.sh CHASKI OUT` makes this table.")
}

/// The line for rows that nothing measured.
pub(super) fn missing_of(what: &str, parts: &str) -> String {
    format!("Not measured yet: `PARTS={parts} xtask/perf.sh CHASKI OUT` adds {what}.")
}

/// Rewraps paragraphs to the width of the other documents; tables, plots and commands are unchanged.
pub(super) fn filled(text: &str) -> String {
    const WIDTH: usize = 120;
    let mut out = String::new();
    let (mut code, mut used) = (false, 0);
    for line in text.lines() {
        let fence = line.starts_with("```");
        if fence || code || line.is_empty() || line.starts_with(['|', '#', '<', '!']) {
            code ^= fence;
            out += if used > 0 { "\n" } else { "" };
            out += line;
            out.push('\n');
            used = 0;
            continue;
        }
        for word in line.split_whitespace() {
            let n = word.chars().count();
            if used > 0 && used + 1 + n > WIDTH {
                out.push('\n');
                used = 0;
            }
            if used > 0 {
                out.push(' ');
                used += 1;
            }
            out += word;
            used += n;
        }
    }
    out + if used > 0 { "\n" } else { "" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paragraphs_are_filled_and_tables_are_not() {
        let word = "word ".repeat(30);
        let text = format!("# Title\n\na\n{word}\nb\n\n| a |\n![a](b.svg)\n```sh\n# b\nc\n```\nd\n");
        let lines: Vec<String> = filled(&text).lines().map(str::to_owned).collect();
        assert_eq!((lines[0].as_str(), lines[1].as_str()), ("# Title", ""));
        assert!(lines[2].starts_with("a word") && lines[2].len() <= 120, "{lines:?}");
        assert!(lines[3].ends_with("word b"), "{lines:?}");
        assert_eq!(lines[4..], ["", "| a |", "![a](b.svg)", "```sh", "# b", "c", "```", "d"]);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [count(5.25), count(123.4), count(42888.0), count(1e6)],
            ["5.2", "123", "42,888", "1,000,000"]
        );
        assert_eq!(count(f64::NAN), "-");
        assert_eq!(percent(1.0, 8.0), "12.5 %");
        assert_eq!((ratio(3.0, 2.0), ratio(3.0, f64::NAN)), ("1.50".into(), "-".into()));
        assert_eq!(gigabytes(&json!(807_000_000u64)), "807 MB");
    }
}
