//! The runs that the tables are of.

use crate::perf::markdown::table;
use crate::perf::results::{PARTS, Results, Run};

/// Each run with the tables that it measured; where a table is of several runs, with its models.
pub(crate) fn runs(results: &Results<'_>) -> String {
    let mut rows: Vec<(Run, Vec<String>)> = Vec::new();
    for (_, prefixes, title) in PARTS {
        let found = results.runs(prefixes);
        for (run, models) in &found {
            let of_program = |run: &Run| run.program.split_whitespace().next().map(str::to_owned);
            let alone = found.iter().filter(|(other, _)| of_program(other) == of_program(run)).count() == 1;
            let part = if alone { title.to_owned() } else { format!("{title} ({})", models.join(", ")) };
            match rows.iter_mut().find(|(known, _)| known.is_like(run)) {
                Some((known, parts)) => {
                    known.learn(run);
                    parts.push(part);
                }
                None => rows.push((run.clone(), vec![part])),
            }
        }
    }
    let cells = |(run, parts): (Run, Vec<String>)| {
        let device =
            if run.driver.is_empty() { run.device } else { format!("{} ({})", run.device, run.driver) };
        vec![parts.join(", "), run.date, run.program, device, run.cpu]
    };
    let rows: Vec<_> = rows.into_iter().map(cells).collect();
    table("peaks", &["tables", "date", "program", "device", "CPU"], 4, &rows)
}
