//! Tools that the tests need, and their installation.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

const WASM_TARGET: &str = "wasm32-unknown-unknown";
const VULKAN_PACKAGES: &[&str] = &["mesa-vulkan-drivers", "libvulkan1"];
const CHROMIUM: &str = "chromium-headless-shell";

/// A toolchain component: its cargo subcommand, and its rustup name.
pub(crate) fn component(subcommand: &str, name: &str, install: bool) -> anyhow::Result<()> {
    if succeeds("cargo", &[subcommand, "--version"]) {
        println!("{name}: found");
        return Ok(());
    }
    rustup(&["component", "add", name], &format!("`cargo {subcommand}` was not found"), install)
}

/// The standard library for the web.
pub(crate) fn wasm_target(install: bool) -> anyhow::Result<()> {
    let sysroot = output("rustc", &["--print", "sysroot"]).context("`rustc --print sysroot` failed")?;
    if Path::new(&sysroot).join("lib/rustlib").join(WASM_TARGET).join("lib").is_dir() {
        println!("{WASM_TARGET}: found");
        return Ok(());
    }
    rustup(&["target", "add", WASM_TARGET], &format!("the target {WASM_TARGET} was not found"), install)
}

/// The sources of the standard library, which is compiled for threads on the web.
pub(crate) fn std_sources() -> anyhow::Result<()> {
    let sysroot = output("rustc", &["--print", "sysroot"]).context("`rustc --print sysroot` failed")?;
    if Path::new(&sysroot).join("lib/rustlib/src/rust/library/std").is_dir() {
        return Ok(());
    }
    rustup(&["component", "add", "rust-src"], "the sources of the standard library were not found", true)
}

fn rustup(args: &[&str], missing: &str, install: bool) -> anyhow::Result<()> {
    let command = format!("rustup {}", args.join(" "));
    if !install {
        bail!("{missing}; install it with `{command}`");
    }
    if output("rustup", &["--version"]).is_none() {
        bail!(
            "{missing}, and neither was rustup (https://rustup.rs), with which `{command}` would install it"
        );
    }
    println!("{missing}: running `{command}`");
    if !succeeds_loudly("rustup", args)? {
        bail!("{missing}, and `{command}` failed");
    }
    Ok(())
}

/// A GPU, or Mesa's software Vulkan driver. `chaski` is the built command, which lists devices.
pub(crate) fn adapter(chaski: &Path, install: bool) -> anyhow::Result<()> {
    if found_adapter(chaski)? {
        return Ok(());
    }
    let packages = VULKAN_PACKAGES.join(" ");
    let by_hand = format!("apt-get update && apt-get install -y {packages}");
    if !cfg!(target_os = "linux") {
        bail!("no GPU was found: install a driver for Vulkan, Metal or Direct3D 12");
    }
    if output("apt-get", &["--version"]).is_none() {
        bail!(
            "no GPU was found: install a Vulkan driver; Mesa has one that needs no GPU (Fedora: `dnf install \
             mesa-vulkan-drivers`, Arch: `pacman -S vulkan-swrast`, Alpine: `apk add mesa-vulkan-swrast`)"
        );
    }
    apt("no GPU was found", "Mesa's software Vulkan", VULKAN_PACKAGES, install)?;
    if !found_adapter(chaski)? {
        bail!("no GPU was found, even after `{by_hand}`");
    }
    Ok(())
}

/// Installs Debian packages and prints them; `what` is missing, and needed for `why`.
fn apt(why: &str, what: &str, packages: &[&str], install: bool) -> anyhow::Result<()> {
    let by_hand = format!("apt-get update && apt-get install -y {}", packages.join(" "));
    if !install {
        bail!("{why}; install {what} with `{by_hand}`");
    }
    let Some(sudo) = sudo() else {
        bail!("{why}; install {what} as root with `{by_hand}`");
    };
    println!("{why}: installing {what} with `{by_hand}`");
    for args in [vec!["update"], [&["install", "-y", "--no-install-recommends"], packages].concat()] {
        let mut all: Vec<&str> = sudo.clone();
        // sudo drops the environment, env sets it again.
        all.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        all.extend(args);
        if !succeeds_loudly(all[0], &all[1..])? {
            bail!("`{}` failed", all.join(" "));
        }
    }
    Ok(())
}

/// Node.js and npm.
pub(crate) fn node() -> anyhow::Result<()> {
    let node = output("node", &["--version"]).and_then(|v| v[1..].split('.').next()?.parse::<u32>().ok());
    if node.is_none_or(|major| major < 20) || output("npm", &["--version"]).is_none() {
        bail!("Node.js 20 or later, with npm, was not found: install it from https://nodejs.org");
    }
    Ok(())
}

/// A headless Chromium, whose path is returned, and Node.js to drive it.
pub(crate) fn browser(install: bool) -> anyhow::Result<PathBuf> {
    node()?;
    if let Some(path) = std::env::var_os("CHASKI_CHROMIUM") {
        return Ok(path.into());
    }
    if let Some(found) = chromium() {
        println!("Chromium: {}", found.display());
        return Ok(found);
    }
    if !cfg!(target_os = "linux") || output("apt-get", &["--version"]).is_none() {
        bail!("no Chromium was found: install Chrome or Chromium, and say where it is with CHASKI_CHROMIUM");
    }
    apt("no Chromium was found", "Debian's chromium-headless-shell", &[CHROMIUM], install)?;
    chromium().context("no Chromium was found, even after its installation")
}

/// The first Chromium on the search path.
fn chromium() -> Option<PathBuf> {
    let names = [CHROMIUM, "chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let all = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    all.into_iter().find(|path| path.is_file())
}

/// Prefix for commands that need root; `None` if there is no way.
fn sudo() -> Option<Vec<&'static str>> {
    if output("id", &["-u"]).as_deref() == Some("0") {
        return Some(vec![]);
    }
    output("sudo", &["--version"])?;
    // Without a terminal, sudo cannot ask for a password.
    Some(if std::io::stdin().is_terminal() { vec!["sudo"] } else { vec!["sudo", "-n"] })
}

fn found_adapter(chaski: &Path) -> anyhow::Result<bool> {
    let program = chaski.display().to_string();
    let list = output(&program, &["devices", "-o", "json"])
        .with_context(|| format!("`{program} devices` failed"))?;
    let mut list: Vec<Value> =
        serde_json::from_str(&list).with_context(|| format!("the answer of `{program}`"))?;
    list.retain(|device| device["device"] != "cpu");
    for a in &list {
        println!(
            "GPU: {}, {}",
            a["name"].as_str().unwrap_or_default(),
            a["driver"].as_str().unwrap_or_default()
        );
    }
    Ok(!list.is_empty())
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    output(program, args).is_some()
}

/// Output of a command, if it exists and succeeds.
pub(crate) fn output(program: &str, args: &[&str]) -> Option<String> {
    let out = Command::new(program).args(args).stdin(Stdio::null()).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn succeeds_loudly(program: &str, args: &[&str]) -> anyhow::Result<bool> {
    let status = Command::new(program).args(args).status();
    Ok(status.with_context(|| format!("could not run `{program}`"))?.success())
}
