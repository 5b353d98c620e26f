//! Builds the crate `chaski-web` into the folder that npm packs and pages load.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use wasm_bindgen_cli_support::Bindgen;

use super::{MODULES, notices, panics};

/// The npm package in the repository.
pub(crate) fn package() -> PathBuf {
    crate::root().join("crates/web/npm")
}

/// Builds the modules, their JavaScript and the optimised wasm into `crates/web/npm/wasm`.
///
/// # Errors
/// If a step fails.
pub(super) fn release() -> anyhow::Result<()> {
    assemble("web")?.iter().try_for_each(|module| optimize(module, false))?;
    threads()
}

/// Builds the same for tests in a quarter of the time: several times as large, and slower.
///
/// # Errors
/// If a step fails.
pub(super) fn quick() -> anyhow::Result<()> {
    assemble(TESTS).map(drop)
}

/// Builds the modules and their JavaScript into the package, and copies the licences; returns the modules.
fn assemble(profile: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for (name, folder) in MODULES {
        compile(name, profile)?;
        let (file, folder) = (name.replace('-', "_"), package().join(folder));
        bind(&built(profile, &file), &folder, &file)?;
        out.push(folder.join(format!("{file}_bg.wasm")));
    }
    modules()?;
    notices::write(&package())?;
    Ok(out)
}

/// Builds the engine's module for memory that threads share, its JavaScript and the optimised wasm into the package.
/// The standard library is compiled for it, too: the one of the toolchain knows no threads on this target.
///
/// # Errors
/// If a step fails.
pub(crate) fn threads() -> anyhow::Result<()> {
    const PROFILE: &str = "web";
    const FLAGS: [&str; 9] = [
        "-Ctarget-feature=+atomics",
        "-Clink-arg=--shared-memory",
        "-Clink-arg=--import-memory",
        "-Clink-arg=--max-memory=4294967296",
        "-Clink-arg=--export=__heap_base",
        "-Clink-arg=--export=__wasm_init_tls",
        "-Clink-arg=--export=__tls_size",
        "-Clink-arg=--export=__tls_align",
        "-Clink-arg=--export=__tls_base",
    ];
    crate::tools::std_sources()?;
    let target = crate::root().join("target/web-threads");
    let status = cargo("chaski-web", PROFILE, &["build"])?
        .args(["--config", &format!("target.wasm32-unknown-unknown.rustflags={FLAGS:?}")])
        .args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features="])
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .context("could not run cargo")?;
    ensure!(status.success(), "building chaski-web with threads: {status}");
    let out = package().join("wasm/threads");
    let module = target.join("wasm32-unknown-unknown").join(PROFILE).join("chaski_web.wasm");
    bind(&module, &out, "chaski_threads")?;
    optimize(&out.join("chaski_threads_bg.wasm"), true)
}

/// Profile of modules for tests.
pub(super) const TESTS: &str = "web-tests";

/// Path of a crate's module in a profile.
pub(super) fn built(profile: &str, name: &str) -> PathBuf {
    crate::root().join("target/wasm32-unknown-unknown").join(profile).join(name).with_extension("wasm")
}

/// Builds the module with the test cases of operations, and its JavaScript, into `target/web-cases`; returns the
/// folder.
///
/// # Errors
/// If a step fails.
pub(crate) fn cases() -> anyhow::Result<PathBuf> {
    compile("chaski-cases", TESTS)?;
    let out = crate::root().join("target/web-cases");
    bind(&built(TESTS, "chaski_cases"), &out, "chaski_cases")?;
    println!("the test cases are in {}", out.display());
    Ok(out)
}

/// Builds the module with the hostile inputs, whose memory is limited, and its JavaScript, into `target/web-hostile`;
/// returns the folder.
///
/// # Errors
/// If a step fails.
pub(crate) fn hostile() -> anyhow::Result<PathBuf> {
    let limit = "-Clink-arg=--max-memory=536870912";
    build_wasm("chaski-text", TESTS, &["rustc", "--example", "hostile"], &[limit])?;
    let out = crate::root().join("target/web-hostile");
    bind(&built(TESTS, "examples/hostile"), &out, "hostile")?;
    Ok(out)
}

/// Builds a crate for wasm32.
fn compile(package: &str, profile: &str) -> anyhow::Result<()> {
    build_wasm(package, profile, &["build"], &[])
}

/// Runs a command of cargo that builds a crate for wasm32; `flags` are those of the last target alone.
pub(super) fn build_wasm(
    package: &str,
    profile: &str,
    command: &[&str],
    flags: &[&str],
) -> anyhow::Result<()> {
    let status = cargo(package, profile, command)?
        .args(if flags.is_empty() { &[][..] } else { &["--"] })
        .args(flags)
        .status()
        .context("could not run cargo")?;
    ensure!(status.success(), "building {package}: {status}");
    Ok(())
}

/// A command of cargo that builds a crate for wasm32.
fn cargo(package: &str, profile: &str, command: &[&str]) -> anyhow::Result<Command> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(command)
        .args(["-p", package, "--profile", profile, "--target", "wasm32-unknown-unknown"])
        .args(["--config", &short_paths()?])
        .current_dir(crate::root());
    Ok(cargo)
}

/// Compiler flags that shorten the paths in panic messages of dependencies to the crate's name. The module then reveals
/// no build paths, is reproducible in size, and 3,600 bytes smaller.
fn short_paths() -> anyhow::Result<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("no folder of cargo")?;
    let sources = home.join("registry/src");
    let mut flags = Vec::new();
    if !sources.is_dir() {
        return Ok("target.wasm32-unknown-unknown.rustflags=[]".to_owned());
    }
    for entry in fs::read_dir(&sources).with_context(|| format!("could not list {}", sources.display()))? {
        flags.push(format!("--remap-path-prefix={}/=", entry?.path().display()));
    }
    flags.sort();
    Ok(format!("target.wasm32-unknown-unknown.rustflags={flags:?}"))
}

/// The JavaScript bindings, and the module adapted to them, as files of this name.
pub(super) fn bind(input: &Path, out: &Path, name: &str) -> anyhow::Result<()> {
    if out.is_dir() {
        fs::remove_dir_all(out).with_context(|| format!("could not empty {}", out.display()))?;
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_path(input).out_name(name).web(true)?.typescript(false).omit_default_module_path(false);
    bindgen.generate(out).context("wasm-bindgen")?;
    let js = out.join(name).with_extension("js");
    let text = fs::read_to_string(&js).with_context(|| format!("could not read {}", js.display()))?;
    let module = out.join(format!("{name}_bg.wasm"));
    let wasm = fs::read(&module).with_context(|| format!("could not read {}", module.display()))?;
    let (text, wasm) = counted(&shorter(&text), wasm)?;
    fs::write(&module, wasm).with_context(|| format!("could not write {}", module.display()))?;
    fs::write(&js, text).with_context(|| format!("could not write {}", js.display()))
}

/// Characters of the hash at the end of a generated import's name.
const HASH: usize = 16;

/// Bindings and their module with numbers of the same length in the place of the hashes in names of imports: hashes
/// cannot be
/// compressed, and each is in both files.
fn counted(text: &str, mut wasm: Vec<u8>) -> anyhow::Result<(String, Vec<u8>)> {
    let is_hashed = |word: &&str| {
        let hash = word.rsplit('_').next().unwrap_or_default();
        word.starts_with("__wb") && hash.len() == HASH && hash.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names: BTreeSet<&str> = words.filter(is_hashed).collect();
    let mut out = text.to_owned();
    for (i, name) in names.iter().enumerate() {
        let other = format!("{}{i:0HASH$x}", &name[..name.len() - HASH]);
        // The section of names, which Binaryen removes, has it again.
        let found: Vec<usize> = memmem(&wasm, name.as_bytes()).collect();
        ensure!(!found.is_empty(), "the module has no import `{name}`");
        for at in found {
            wasm[at..at + name.len()].copy_from_slice(other.as_bytes());
        }
        out = out.replace(name, &other);
    }
    Ok((out, wasm))
}

/// Places where `what` is in `bytes`.
fn memmem(bytes: &[u8], what: &[u8]) -> impl Iterator<Item = usize> {
    bytes.windows(what.len()).enumerate().filter(move |(_, w)| *w == what).map(|(i, _)| i)
}

#[test]
fn names_of_imports_keep_their_length_and_lose_their_hash() {
    let (a, b) = ("__wbg_new_0123456789abcdef", "__wbindgen_is_fedcba9876543210");
    let text = format!("{a}: 1, {b}() {{ {b} }}, __wbg_ptr, x_0123456789abcdef");
    let wasm = format!("..{a}..{b}..{a}..").into_bytes();
    let (text, wasm) = counted(&text, wasm).expect("each name is there");
    let (a, b) = ("__wbg_new_0000000000000000", "__wbindgen_is_0000000000000001");
    assert_eq!(text, format!("{a}: 1, {b}() {{ {b} }}, __wbg_ptr, x_0123456789abcdef"));
    assert_eq!(wasm, format!("..{a}..{b}..{a}..").into_bytes());
    assert!(counted(&text, Vec::new()).is_err());
}

/// Beginnings of blocks of generated JavaScript, and what takes their place: descriptions of values for messages of
/// panics, whose texts suffice, and what browsers without modules of WebAssembly lack.
const CUTS: [(&str, &str); 2] = [
    ("function debugString(val) {\n", "function debugString(val) {\nreturn String(val);\n}\n"),
    ("if (!('encodeInto' in cachedTextEncoder)) {\n", ""),
];

/// Beginnings of lines that nobody here needs: comments, which repeat those of the crate, `using`, and warnings of old
/// ways to call it.
const UNUSED: [&str; 5] =
    ["/*", "*", "//", "if (Symbol.dispose)", "console.warn('using deprecated parameters"];

/// Generated JavaScript without indentation, comments, and what is not used here.
fn shorter(text: &str) -> String {
    let mut short = text.to_owned();
    for (begin, by) in CUTS {
        let parts =
            short.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once("\n}\n")?.1)));
        if let Some((before, after)) = parts {
            short = format!("{before}{by}{after}");
        }
    }
    let lines = short.lines().map(str::trim_start);
    let used = lines.filter(|line| !line.is_empty() && !UNUSED.iter().any(|unused| line.starts_with(unused)));
    used.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn bindings_lose_what_is_not_used() {
    let text = "/**\n * A.\n */\nexport class A {\n    free() {\n    }\n}\nif (Symbol.dispose) A.x = 1;\n\n\
                function debugString(val) {\n    if (val) {\n    }\n    return 1;\n}\nlet a = 1;\n\
                if (!('encodeInto' in cachedTextEncoder)) {\n    f = function () {\n    };\n}\nlet b;\n";
    let expected = "export class A {\nfree() {\n}\n}\nfunction debugString(val) {\nreturn String(val);\n}\nlet a = 1;\nlet b;\n";
    assert_eq!(shorter(text), expected);
}

/// npm tools, in the versions of the lock file.
pub(crate) fn modules() -> anyhow::Result<()> {
    let (lock, stamp) =
        (package().join("package-lock.json"), package().join("node_modules/.package-lock.json"));
    let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
    if time(&stamp).is_some_and(|s| time(&lock).is_some_and(|l| s >= l)) {
        return Ok(());
    }
    run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(package()))
}

/// Copies a file, or a folder recursively.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || format!("could not copy {} to {}", from.display(), to.display());
    if from.is_dir() {
        fs::create_dir_all(to).with_context(failed)?;
        for entry in fs::read_dir(from).with_context(failed)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().expect("a file lies in a folder")).with_context(failed)?;
    fs::copy(from, to).map(drop).with_context(failed)
}

/// Shrinks the module: without columns of panics, then with Binaryen. Data of memory that is shared has no addresses
/// yet, so places of panics are not found there.
pub(super) fn optimize(wasm: &Path, has_threads: bool) -> anyhow::Result<()> {
    if !has_threads {
        let mut bytes = fs::read(wasm).with_context(|| format!("could not read {}", wasm.display()))?;
        ensure!(panics::without_columns(&mut bytes)? > 0, "{}: no places of panics", wasm.display());
        fs::write(wasm, bytes).with_context(|| format!("could not write {}", wasm.display()))?;
    }
    let tool = package().join("node_modules/binaryen/bin/wasm-opt");
    let features = [
        "--enable-bulk-memory",
        "--enable-nontrapping-float-to-int",
        "--enable-sign-ext",
        "--enable-mutable-globals",
        "--enable-reference-types",
        "--enable-multivalue",
        "--enable-simd",
    ];
    // The first KiB is the end of the stack, reached only by an overflow. A second round saves 2,000 bytes more, and
    // 5,000 compressed; a third only after folding, 600 compressed by brotli, and a fourth 60.
    let passes = [
        "-Oz",
        "-Oz",
        "--code-folding",
        "-Oz",
        "--code-folding",
        "-Oz",
        "--strip-producers",
        "--strip-target-features",
        "--low-memory-unused",
    ];
    let threads = has_threads.then_some("--enable-threads");
    run(Command::new("node")
        .arg(tool)
        .args(passes)
        .args(features)
        .args(threads)
        .arg(wasm)
        .arg("-o")
        .arg(wasm))
}

/// Runs a command, which reports its own errors.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status =
        command.status().with_context(|| format!("could not run {name}: install Node.js 20 or later"))?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}
