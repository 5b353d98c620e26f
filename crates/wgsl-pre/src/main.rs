//! The command `wgsl-pre`.

#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use wgsl_pre::{Dirs, LoadError, Loader, Macros, Options, Preprocessor, Renderer, Source};

const EXAMPLES: &str = "\
Examples:
  wgsl-pre -D WG_SIZE=64 -I shaders/lib shaders/softmax.wgsl
      carry out #include, #define and #if, with WG_SIZE defined
  wgsl-pre --jinja --vars q4.json -o q4.wgsl matmul.wgsl.jinja
      render a Jinja template with the variables of a JSON file
  cat a.wgsl | wgsl-pre -
      read from standard input

Exit codes:
  0  success
  1  the text has an error
  2  wrong usage, or a file that cannot be read or written";

/// Preprocesses WGSL: #include, #define and #if, and Jinja templates.
#[derive(Debug, Parser)]
#[command(name = "wgsl-pre", version, after_help = EXAMPLES)]
struct Args {
    /// Render FILE as a Jinja template first, then execute the directives in the result
    #[arg(long)]
    jinja: bool,

    /// Define a macro; FILE can neither redefine nor undefine it
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,

    /// Search this directory for included files and templates, after that of the including file
    #[arg(short = 'I', long = "include-dir", value_name = "DIR")]
    include_dir: Vec<String>,

    /// Template variables, a JSON object
    #[arg(long, value_name = "FILE.json", requires = "jinja")]
    vars: Option<PathBuf>,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Input file; - for standard input
    file: String,
}

/// A message and its exit code.
struct Failure(u8, String);

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(code, message)) => {
            // If even this cannot be written, only the exit code remains.
            let _ = writeln!(std::io::stderr(), "error: {message}");
            ExitCode::from(code)
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let usage = |e: &dyn std::fmt::Display| Failure(2, e.to_string());
    let in_text = |e: wgsl_pre::Error| Failure(1, e.to_string());

    let macros = Macros::parse(&args.define).map_err(|e| usage(&e))?;
    let dirs = Dirs::new(&args.include_dir);
    let (name, mut text) = read(&args.file)?;
    if args.jinja {
        text = render(args, &name, text, dirs.clone())?;
    }
    // For a rendered template, line numbers refer to the result.
    let text_name = if args.jinja { format!("{name} (rendered)") } else { name };
    let output = Preprocessor::new(Options::default().macros(macros).loader(dirs))
        .process(&text_name, &text, &Macros::new())
        .map_err(in_text)?;

    match &args.output {
        Some(path) => std::fs::write(path, &output.text).map_err(|e| usage(&at_path(path, &e))),
        None => {
            let mut stdout = std::io::stdout().lock();
            match stdout.write_all(output.text.as_bytes()).and_then(|()| stdout.flush()) {
                // A reader that closes the pipe early has read enough.
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(|e| usage(&format!("standard output: {e}"))),
            }
        }
    }
}

fn render(args: &Args, name: &str, text: String, dirs: Dirs) -> Result<String, Failure> {
    let vars = match &args.vars {
        None => serde_json::Value::Object(serde_json::Map::new()),
        Some(path) => {
            let json = std::fs::read_to_string(path).map_err(|e| Failure(2, at_path(path, &e)))?;
            serde_json::from_str(&json).map_err(|e| Failure(2, at_path(path, &e)))?
        }
    };
    if !vars.is_object() {
        return Err(Failure(2, "the variables must be a JSON object".to_owned()));
    }
    let in_text = |e: wgsl_pre::Error| Failure(1, e.to_string());
    let mut renderer = Renderer::new();
    renderer.set_loader(Beside { dirs, file: name.to_owned() });
    renderer.add_template(name.to_owned(), text).map_err(in_text)?;
    renderer.render(name, &vars).map_err(in_text)
}

/// Loads templates as if `file` included them, so that its directory is searched first.
struct Beside {
    dirs: Dirs,
    file: String,
}

impl Loader for Beside {
    fn load(&self, path: &str, _: Option<&str>) -> Result<Source, LoadError> {
        self.dirs.load(path, Some(&self.file))
    }
}

fn read(file: &str) -> Result<(String, String), Failure> {
    if file == "-" {
        let mut text = String::new();
        let result = std::io::stdin().read_to_string(&mut text);
        return match result {
            Ok(_) => Ok(("<stdin>".to_owned(), text)),
            Err(e) => Err(Failure(2, format!("standard input: {e}"))),
        };
    }
    match std::fs::read_to_string(file) {
        Ok(text) => Ok((file.to_owned(), text)),
        Err(e) => Err(Failure(2, at_path(Path::new(file), &e))),
    }
}

fn at_path(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
