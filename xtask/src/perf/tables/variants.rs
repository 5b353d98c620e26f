//! Variations of the first model.

use crate::perf::markdown::{percent, rate, table};
use crate::perf::results::{Results, number, test_name};

const HEAD: [&str; 5] = ["run", "test", "tokens/s", "of the plain run", "CPU, µs a token"];

/// Rows of variations per test: prefixes of their names, and what they are called.
fn variations(results: &Results<'_>, what: &[(String, String)]) -> Vec<Vec<String>> {
    let Ok(first) = results.first() else { return Vec::new() };
    // Older measurements compare with those of the models, of the same call.
    let plain = [results.of("plain.", first), results.of("speed.", first)].concat();
    let mut rows = Vec::new();
    for (prefix, name) in what {
        for r in results.of(prefix, first) {
            let same = plain.iter().find(|b| test_name(b) == test_name(r));
            let change = same.map_or(f64::NAN, |b| number(&r["avg_ts"]) / number(&b["avg_ts"]));
            let host = number(&r["host_us_per_token"]);
            rows.push(vec![
                name.clone(),
                test_name(r),
                rate(r),
                percent(change, 1.0),
                if host.is_finite() { format!("{host:.0}") } else { String::new() },
            ]);
        }
    }
    rows
}

pub(crate) fn ablation(results: &Results<'_>) -> String {
    let mut what = vec![
        ("ablate-bind-groups.".to_owned(), "`--ablate bind-groups`".to_owned()),
        ("ablate-all.".to_owned(), "`--ablate bind-groups,parameters`".to_owned()),
    ];
    what.extend([1, 2, 4, 8, 16, 32].map(|k| (format!("interval-{k}."), format!("`--interval {k}`"))));
    table("variants", &HEAD, 1, &variations(results, &what))
}

pub(crate) fn features(results: &Results<'_>) -> String {
    let what = [
        ("features-coop.", "`--features coop`"),
        ("features-sg.", "`--features sg`"),
        ("features-base.", "`--features base`"),
        ("bytes-sg.", "`--features sg --inputs i8`"),
        ("bytes-base.", "`--features base --inputs i8`"),
        ("checked.", "`--checked`"),
    ];
    let what = what.map(|(prefix, name)| (prefix.to_owned(), name.to_owned()));
    table("variants", &HEAD, 1, &variations(results, &what))
}
