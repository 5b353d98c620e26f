//! Lists what lies in `src/encode`, `src/quant` and `src/shared`, so that a file there is all that a weight format needs, and
//! takes the comments from all templates for who only runs models: they are a fifth of them, and a page downloads them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let all = env::var_os("CARGO_FEATURE_ENCODE").is_some();
    let (mut templates, mut formats, mut written) = (String::new(), String::new(), String::new());
    for dir in ["encode", "quant", "shared"] {
        let path = Path::new(&root).join("src").join(dir);
        println!("cargo::rerun-if-changed={}", path.display());
        let mut files: Vec<_> = fs::read_dir(&path)
            .expect("a folder of templates")
            .map(|e| e.expect("an entry").path())
            .collect();
        files.sort();
        for file in files {
            println!("cargo::rerun-if-changed={}", file.display());
            let name = file.file_name().and_then(|n| n.to_str()).expect("a name in UTF-8");
            let Some(stem) = name.strip_suffix(".wgsl.jinja") else { continue };
            let text = fs::read_to_string(&file).expect("a template in UTF-8");
            match dir {
                // Caches need the encoders of some formats, all else here is for operations that write blocks.
                "encode" => {
                    let layout = layout(&text);
                    if !all && !layout.contains(&"cache") {
                        continue;
                    }
                    if all && !layout.is_empty() {
                        let group = number(stem, fact(stem, &layout, "group"));
                        let _ = writeln!(written, "    ({stem:?}, {group}),");
                    }
                }
                "quant" => formats.push_str(&format(stem, &text)),
                _ => {}
            }
            let _ = writeln!(templates, "    (\"{dir}/{name}\", include_str!({:?})),", put(dir, &file));
        }
    }
    let ops = Path::new(&root).join("src/ops");
    for folder in fs::read_dir(&ops).expect("a folder of operations") {
        let folder = folder.expect("an entry").path();
        println!("cargo::rerun-if-changed={}", folder.display());
        let name = folder.file_name().and_then(|n| n.to_str()).expect("a name in UTF-8").to_owned();
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let file = file.expect("an entry").path();
            if file.extension().is_some_and(|e| e == "jinja") {
                println!("cargo::rerun-if-changed={}", file.display());
                put(&name, &file);
            }
        }
    }
    let code = format!(
        "/// Templates that others import, by name.\n\
         pub(crate) static IMPORTED: &[(&str, &str)] = &[\n{templates}];\n\n\
         static ROWS: &[Format] = &[\n{formats}];\n\n\
         /// Block formats that operations write, by name, and how many values a thread takes.\n\
         pub(crate) static WRITTEN: &[(&str, u32)] = &[\n{written}];\n"
    );
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("templates.rs");
    fs::write(out, code).expect("the output folder can be written");
}

/// Copies a template to where `template!` finds it, without its comments where nothing reads them; the copy's path.
fn put(folder: &str, file: &Path) -> PathBuf {
    let text = fs::read_to_string(file).expect("a template in UTF-8");
    let text = if env::var_os("CARGO_FEATURE_CASES").is_some() { text } else { without_comments(&text) };
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join(folder);
    fs::create_dir_all(&out).expect("the output folder can be written");
    let out = out.join(file.file_name().expect("a file has a name"));
    fs::write(&out, text).expect("the output folder can be written");
    out
}

/// The text without `{# ... #}`, and without the line feeds behind, as the template engine takes them.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("{#");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once("#}").expect("a comment that ends");
        out.push_str(rest.strip_prefix('\n').unwrap_or(rest));
    }
    out
}

/// The words of the lines `layout` in the head of a template.
fn layout(template: &str) -> Vec<&str> {
    let head = template.split("#}").next().unwrap_or_default();
    let lines = head.lines().map(str::trim_start).filter_map(|l| l.strip_prefix("layout "));
    lines.flat_map(str::split_whitespace).collect()
}

/// What a layout says of `key`.
fn find<'a>(layout: &[&'a str], key: &str) -> Option<&'a str> {
    layout.iter().find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
}

fn fact<'a>(name: &str, layout: &[&'a str], key: &str) -> &'a str {
    find(layout, key).unwrap_or_else(|| panic!("{name}: no `{key}=` in a line `layout` of its head"))
}

fn number(name: &str, text: &str) -> usize {
    text.parse().unwrap_or_else(|_| panic!("{name}: `{text}` in its layout is no number"))
}

/// The row of a format, from the `layout` lines in the head of its template:
/// `layout block=32 planes=16@2,2@0 unit=32 run=4 offsets=0,4,8`, `table=NAME` for one with a codebook, and
/// `exchanged=0`, `spread1=0` or `spread2=0` where bits of plane 0 are moved.
fn format(name: &str, template: &str) -> String {
    let layout = layout(template);
    let fact = |key: &str| fact(name, &layout, key);
    let number = |text: &str| number(name, text);
    let planes: Vec<(usize, usize)> = fact("planes")
        .split(',')
        .map(|p| p.split_once('@').unwrap_or_else(|| panic!("{name}: `{p}` is not BYTES@OFFSET")))
        .map(|(n, at)| (number(n), number(at)))
        .collect();
    let bytes: usize = planes.iter().map(|p| p.0).sum();
    let offsets: Vec<usize> = fact("offsets").split(',').map(number).collect();
    let moves = [("exchanged", "Exchanged"), ("spread1", "Spread1"), ("spread2", "Spread2")];
    let moved = |plane: usize| {
        moves
            .iter()
            .find(|(key, _)| find(&layout, key).map(number) == Some(plane))
            .map_or("Kept", |(_, name)| name)
    };
    let planes: String = planes
        .iter()
        .enumerate()
        .map(|(i, (n, at))| format!("Plane {{ offset: {at}, n_byte: {n}, moved: Moved::{} }}, ", moved(i)))
        .collect();
    let table =
        find(&layout, "table").map_or("[]".to_owned(), |t| format!("crate::codebook::{}", t.to_uppercase()));
    format!(
        "    Format {{ ty: GgmlType::{}, name: {name:?}, block: {}, block_bytes: {bytes}, planes: &[{planes}], \
         table: &{table}, unit: {}, run: {}, offsets: &{offsets:?} }},\n",
        name.to_uppercase(),
        number(fact("block")),
        number(fact("unit")),
        number(fact("run")),
    )
}
