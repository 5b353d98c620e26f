//! Lists the templates in `src`, so that adding a weight format takes one file. Builds that only run models get the
//! templates without comments, which are a fifth of the text; builds for the web without indentation, too.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/shorter.rs"]
mod shorter;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/shorter.rs");
    println!("cargo::rustc-check-cfg=cfg(for_pages)");
    let src = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src");
    let whole = env::var_os("CARGO_FEATURE_CASES").is_some();
    let writes = env::var_os("CARGO_FEATURE_ENCODE").is_some();
    let is_web = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32");
    let for_pages = is_web && !whole;
    if for_pages {
        println!("cargo::rustc-cfg=for_pages");
    }
    let mut folders = vec!["encode".to_owned(), "quant".to_owned(), "shared".to_owned()];
    folders.extend(files(&src.join("ops")).iter().filter(|p| p.is_dir()).map(|p| format!("ops/{}", name(p))));
    let (mut texts, mut off_web, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
    let (mut formats, mut written) = (String::new(), String::new());
    for folder in folders {
        for file in files(&src.join(&folder)) {
            let Some(stem) = name(&file).strip_suffix(".wgsl.jinja").map(str::to_owned) else { continue };
            println!("cargo::rerun-if-changed={}", file.display());
            let text = fs::read_to_string(&file).expect("a template in UTF-8");
            match folder.as_str() {
                // KV caches need the encoders of some formats; everything else here serves operations that write
                // blocks.
                "encode" => {
                    let layout = layout(&text);
                    if !writes && !layout.contains(&"cache") {
                        continue;
                    }
                    if writes && !layout.is_empty() {
                        let group = number(&stem, fact(&stem, &layout, "group"));
                        let _ = writeln!(written, "    ({stem:?}, {group}),");
                    }
                }
                "quant" => formats.push_str(&format(&stem, &text)),
                _ => {}
            }
            let path = format!("{}/{}", folder.trim_start_matches("ops/"), name(&file));
            let is_replaced = says_of_web(&text, "instead:");
            if is_replaced {
                replaced.push(format!("b{path:?}"));
            }
            if is_replaced || says_of_web(&text, "no:") {
                off_web.push(format!("b{path:?}"));
                if for_pages {
                    continue;
                }
            }
            let text = match (whole, for_pages) {
                (true, _) => text,
                (false, false) => without_comments(&text),
                (false, true) => shorter::shorter(&without_comments(&without_native(&text))),
            };
            texts.push((path, text));
        }
    }
    let formats = format!(
        "static ROWS: &[Format] = &[\n{formats}];\n\n\
         /// Block formats that operations write, by name, with the number of values per thread.\n\
         pub(crate) static WRITTEN: &[(&str, u32)] = &[\n{written}];\n"
    );
    put("formats.rs", formats.as_bytes());
    let list = |what: &str, name: &str, paths: &[String]| {
        format!(
            "/// Whether the head of a template says that {what}.\n\
             pub(crate) const fn {name}(path: &str) -> bool {{\n    is_one_of(path, &[{}])\n}}\n",
            paths.join(", "),
        )
    };
    let off_web = list("no page has it", "is_off_web", &off_web)
        + &list("pages have another operation in its place", "is_replaced_on_web", &replaced);
    let mut code = "static TEMPLATES: &[(&str, &str)] = &[\n".to_owned();
    for (path, text) in texts {
        let _ = writeln!(code, "    ({path:?}, include_str!({:?})),", put(&path, text.as_bytes()));
    }
    put("templates.rs", (code + "];\n" + &off_web).as_bytes());
}

/// Files in a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("a folder of templates");
    let mut all: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    all.sort();
    all
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).expect("a name in UTF-8")
}

/// Writes a file for the crate and returns its path.
fn put(path: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the output folder can be written");
    fs::write(&path, bytes).expect("the output folder can be written");
    path
}

/// True if the header has a line of browser builds that begins with a word: `web no:` excludes the template from them,
/// `web instead:` as well, for an operation that does its work there.
fn says_of_web(text: &str, word: &str) -> bool {
    let head = text.split("#}").next().unwrap_or_default();
    head.lines().any(|l| l.split_whitespace().take(2).eq(["web", word]))
}

/// The text without what pages do not need of a kernel that they have: from `{# native #}` to `{# end #}`.
fn without_native(text: &str) -> String {
    let mut parts = text.split("{# native #}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.split_once("{# end #}").expect("a part that ends").1);
    }
    out
}

/// The text without `{# ... #}` and the line feed behind each, as the template engine strips them.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("{#");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once("#}").expect("a comment that ends");
        out.push_str(rest.strip_prefix('\n').unwrap_or(rest));
    }
    out
}

/// Words of the `layout` lines in the header of a template.
fn layout(template: &str) -> Vec<&str> {
    let head = template.split("#}").next().unwrap_or_default();
    let lines = head.lines().map(str::trim_start).filter_map(|l| l.strip_prefix("layout "));
    lines.flat_map(str::split_whitespace).collect()
}

/// Value of `key` in a layout.
fn find<'a>(layout: &[&'a str], key: &str) -> Option<&'a str> {
    layout.iter().find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
}

fn fact<'a>(name: &str, layout: &[&'a str], key: &str) -> &'a str {
    find(layout, key).unwrap_or_else(|| panic!("{name}: no `{key}=` in a line `layout` of its head"))
}

fn number(name: &str, text: &str) -> usize {
    text.parse().unwrap_or_else(|_| panic!("{name}: `{text}` in its layout is no number"))
}

/// Table row of a format, from the `layout` lines in the header of its template: `layout block=32 planes=16@2,2@0
/// unit=32 run=4 offsets=0,4,8`, `table=NAME` for a codebook, `nibble_planes=0`, `bits_to_bytes=0`, `grid9_signs7=0`
/// ... for a bit transposition of plane 0, `wide=3x6` for larger units: three per block, six runs each.
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
    let transposes = [
        ("nibble_planes", "NibblePlanes"),
        ("bits_to_bytes", "BitsToBytes"),
        ("pairs_to_bytes", "PairsToBytes"),
        ("signs7", "Signs7"),
        ("signs7_odd", "Signs7Odd"),
        ("grid9_signs7", "Grid9Signs7"),
    ];
    let transpose = |plane: usize| {
        transposes
            .iter()
            .find(|(key, _)| find(&layout, key).map(number) == Some(plane))
            .map_or("Identity", |(_, name)| name)
    };
    let planes: String = planes
        .iter()
        .enumerate()
        .map(|(i, (n, at))| {
            format!("Plane {{ offset: {at}, n_byte: {n}, transpose: BitTranspose::{} }}, ", transpose(i))
        })
        .collect();
    let table = find(&layout, "table")
        .map_or("None".to_owned(), |t| format!("Some(&crate::codebook::{})", t.to_uppercase()));
    let wide = find(&layout, "wide").map_or("None".to_owned(), |w| {
        let (units, runs) = w.split_once('x').unwrap_or_else(|| panic!("{name}: `{w}` is not UNITSxRUNS"));
        format!("Some(Wide {{ per_block: {}, runs: {} }})", number(units), number(runs))
    });
    format!(
        "    Format {{ ty: GgmlType::{}, name: {name:?}, block: {}, block_bytes: {bytes}, planes: &[{planes}], \
         table: {table}, unit: {}, run: {}, offsets: &{offsets:?}, \
         wide: {wide} }},\n",
        name.to_uppercase(),
        number(fact("block")),
        number(fact("unit")),
        number(fact("run")),
    )
}
