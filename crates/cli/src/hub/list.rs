//! `chaski list`: the models that are here.

use std::io::Write as _;
use std::time::SystemTime;

use chaski_hub::{
    Bytes, CachedFile, CachedModel, CachedRevision, HubName, Place, is_candidate, quote_segment,
};
use chrono::{DateTime, Local};
use serde_json::{Value, json};

use super::args::OutputArgs;
use super::{Models, settings};
use crate::ui::one_line;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also models of ollama and LM Studio, files that are no models, and older commits
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// A row: a model, or a repository that is one as a whole.
struct Row {
    name: String,
    n_byte: u64,
    modified: Option<SystemTime>,
    note: String,
}

pub(crate) fn list(args: &Args, models: &Models) -> anyhow::Result<()> {
    let found = models.hub()?.list(args.all);
    let mut out = std::io::stdout().lock();
    if args.output.is_json() {
        let all: Vec<Value> = found.iter().map(as_json).collect();
        writeln!(out, "{:#}", Value::from(all))?;
        return Ok(());
    }
    let rows: Vec<Row> = found.iter().flat_map(|model| rows(model, args.all)).collect();
    if rows.is_empty() {
        let cache = settings::shown(&models.config()?.cache);
        models.ui().say(&format!("no models in {cache}; `chaski pull hf:ORG/REPO` fetches one"));
        return Ok(());
    }
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(100);
    writeln!(out, "{:<width$}  {:>9}  {:<10}  NOTE", "NAME", "SIZE", "DATE")?;
    for row in &rows {
        let line = format!(
            "{:<width$}  {:>9}  {:<10}  {}",
            row.name,
            Bytes(row.n_byte),
            date(row.modified),
            row.note
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    let total: u64 = found.iter().map(|model| model.n_byte + model.n_part).sum();
    writeln!(out, "{:<width$}  {:>9}", "total", Bytes(total))?;
    Ok(())
}

fn rows(model: &CachedModel, all: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for revision in model.revisions.iter().filter(|r| all || r.commit.is_empty() || !r.refs.is_empty()) {
        rows.extend(rows_of(model, revision, all));
    }
    if rows.is_empty() && model.n_byte > 0 && !all {
        // Commits without a branch: all of them, rather than nothing.
        rows.extend(model.revisions.iter().flat_map(|revision| rows_of(model, revision, all)));
    }
    if model.n_part > 0 {
        rows.push(Row {
            name: model.name.clone(),
            n_byte: model.n_part,
            modified: None,
            note: "incomplete; `chaski pull` goes on".into(),
        });
    }
    rows
}

fn rows_of(model: &CachedModel, revision: &CachedRevision, all: bool) -> Vec<Row> {
    let at = match revision.refs.first() {
        // Quoted where it needs to be, as in a name that is typed.
        Some(name) if name != "main" => match HubName::parse(&format!("x/y@{}", quote_segment(name))) {
            Ok(quoted) => quoted.to_string().replacen("hf:x/y", "", 1),
            Err(_) => format!("@{name}"),
        },
        Some(_) => String::new(),
        None if revision.commit.is_empty() => String::new(),
        None => format!("@{}", revision.commit),
    };
    let row = |name: String, files: &[&CachedFile], note: &str| Row {
        name: one_line(&name),
        n_byte: files.iter().map(|file| file.size).sum(),
        modified: files.iter().filter_map(|file| file.modified).max(),
        note: notes(model, files, note),
    };
    if matches!(model.place, Place::Ollama | Place::Addresses) {
        let files: Vec<&CachedFile> = revision.files.iter().collect();
        return vec![row(model.name.clone(), &files, "")];
    }
    let mut rows = Vec::new();
    let mut taken = vec![false; revision.files.len()];
    for (i, file) in revision.files.iter().enumerate().filter(|(_, file)| is_candidate(&file.path)) {
        let parts: Vec<usize> = match chaski_hub::Split::of(&file.path) {
            Some(split) => {
                let paths: Vec<String> = (1..=split.n_part).map(|part| split.path(part)).collect();
                let is_part = |k: &usize| paths.contains(&revision.files[*k].path);
                (0..revision.files.len()).filter(is_part).collect()
            }
            None => vec![i],
        };
        parts.iter().for_each(|k| taken[*k] = true);
        let files: Vec<&CachedFile> = parts.iter().map(|k| &revision.files[*k]).collect();
        rows.push(row(format!("{}{at}/{}", model.name, file.path), &files, ""));
    }
    let rest: Vec<&CachedFile> =
        revision.files.iter().zip(&taken).filter(|(_, taken)| !**taken).map(|(file, _)| file).collect();
    let is_checkpoint =
        rest.iter().any(|file| file.path.ends_with(".safetensors") || file.path.ends_with(".bin"));
    if is_checkpoint || all && !rest.is_empty() {
        let note = if is_checkpoint { "" } else { "no model" };
        rows.push(row(format!("{}{at}", model.name), &rest, note));
    }
    rows
}

fn notes(model: &CachedModel, files: &[&CachedFile], note: &str) -> String {
    let is_shared = files.iter().any(|file| file.n_user > 1 || !file.real.starts_with(&model.folder));
    let place = match model.place {
        Place::Cache | Place::Addresses => "",
        other => other.word(),
    };
    let shared = if is_shared && model.place == Place::Cache { "shared" } else { "" };
    [place, shared, note].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

fn date(time: Option<SystemTime>) -> String {
    time.map_or(String::new(), |time| DateTime::<Local>::from(time).format("%Y-%m-%d").to_string())
}

fn as_json(model: &CachedModel) -> Value {
    let file = |file: &CachedFile| {
        json!({
            "path": file.path,
            "bytes": file.size,
            "modified": file.modified.map(|time| DateTime::<Local>::from(time).to_rfc3339()),
            "file": file.real,
            "users": file.n_user,
        })
    };
    let revision = |revision: &CachedRevision| {
        json!({
            "commit": Some(&revision.commit).filter(|commit| !commit.is_empty()),
            "refs": revision.refs,
            "files": revision.files.iter().map(file).collect::<Vec<_>>(),
        })
    };
    json!({
        "name": model.name,
        "place": model.place.word(),
        "folder": model.folder,
        "bytes": model.n_byte,
        "incomplete_bytes": model.n_part,
        "revisions": model.revisions.iter().map(revision).collect::<Vec<_>>(),
    })
}
