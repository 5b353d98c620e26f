//! `chaski rerank`: documents, sorted by how well they fit a query.

use std::ffi::OsString;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use serde_json::json;

use crate::failure::Usage;
use crate::input::{file_or_stdin, read_text};
use crate::load::{self, Loaded};
use crate::model_names::{Role, Visit, visit_path};
use crate::options::{self, EngineArgs};
use crate::progress::Unit;
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Sorts documents by how well they fit a query, with a reranker: prints a line with score and document for each, the best \
first.

  chaski rerank MODEL QUERY DOC...    the documents DOC...
  chaski rerank MODEL QUERY < FILE    the lines of a file

The scores of most rerankers are any numbers; those that answer with one of two words have probabilities.";

/// Documents that run together.
const TOGETHER: usize = 64;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model, unless -m names it, the query, and documents
    #[arg(value_name = "MODEL QUERY [DOC]")]
    words: Vec<OsString>,
    /// GGUF file or name, instead of MODEL
    #[arg(short, long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// File with more documents, one per line; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the best N only
    #[arg(short = 'n', long, value_name = "N")]
    top_n: Option<usize>,
    /// Print a list of objects with index, score and document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

impl Args {
    /// Visits the name of the model.
    pub(crate) fn models(&mut self, visit: Visit<'_>) -> anyhow::Result<()> {
        match (&mut self.model, self.words.first_mut()) {
            (Some(model), _) => visit(model, Role::Main),
            (None, Some(first)) => visit_path(first, visit),
            (None, None) => Ok(()),
        }
    }

    /// The model, the query, and the documents among the arguments.
    fn split(&self) -> Result<(PathBuf, String, Vec<String>), Usage> {
        let mut words = self.words.iter();
        let first = || Usage("no model: `chaski rerank MODEL QUERY DOC...`".into());
        let model = match &self.model {
            Some(model) => model.clone(),
            None => words.next().map(PathBuf::from).ok_or_else(first)?,
        };
        let text = |word: &OsString| {
            word.to_str().map(str::to_owned).ok_or_else(|| Usage("a text is not valid UTF-8".into()))
        };
        let mut texts = words.map(text).collect::<Result<Vec<_>, _>>()?;
        if texts.is_empty() {
            return Err(Usage("no query: `chaski rerank MODEL QUERY DOC...`".into()));
        }
        let query = texts.remove(0);
        Ok((model, query, texts))
    }
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let (model, query, mut documents) = args.split()?;
    let piped = match &args.file {
        Some(file) => Some(read_text(file)?),
        None if documents.is_empty() => {
            Some(file_or_stdin(None, "no documents: give DOC... or -f, or pipe them")?)
        }
        None => None,
    };
    let lines = piped.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty());
    documents.extend(lines.map(str::to_owned));
    if documents.is_empty() {
        return Err(Usage("no document to rank".into()).into());
    }
    let Loaded { mut engine, .. } = load::load(options::source(Some(&model)), &args.engine, ui)?;
    let progress = ui.progress("rank", Unit::Texts, documents.len() as u64);
    let mut scores = Vec::new();
    for part in documents.chunks(TOGETHER) {
        scores.extend(pollster::block_on(engine.rank(&query, part))?);
        progress.add(part.len() as u64);
    }
    progress.finish();
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order.truncate(args.top_n.unwrap_or(usize::MAX));
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.json {
        let row = |i: &usize| json!({ "index": i, "score": scores[*i], "document": documents[*i] });
        writeln!(out, "{}", json!(order.iter().map(row).collect::<Vec<_>>()))?;
    } else {
        for i in order {
            writeln!(out, "{:.6}\t{}", scores[i], documents[i])?;
        }
    }
    Ok(out.flush()?)
}
