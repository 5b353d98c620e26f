//! Mesa's software Vulkan driver (lavapipe) in a version that Dawn accepts, beside the system's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::tools::output;

/// Dawn rejects lavapipe of Mesa 22; 25 is tested.
const MIN_MAJOR: u32 = 25;
const PACKAGES: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];
/// Packages that stay the system's: loaded into every process, or not libraries.
const SYSTEM: [&str; 5] = ["libc6_", "libgcc-s1_", "libstdc++6_", "gcc-", "debconf_"];

/// Location of a driver.
pub(crate) struct Driver {
    /// Its manifest.
    icd: PathBuf,
    /// Library folders, unless the system's suffice.
    libraries: Vec<PathBuf>,
}

impl Driver {
    /// Environment in which a process finds this driver and no other.
    pub(crate) fn env(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        let icd = self.icd.as_os_str().to_owned();
        let mut env = vec![
            ("VK_DRIVER_FILES", icd.clone()),
            ("VK_ICD_FILENAMES", icd.clone()),
            ("CHASKI_LAVAPIPE", icd),
        ];
        if !self.libraries.is_empty() {
            let before = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let all = self.libraries.iter().cloned().chain(std::env::split_paths(&before));
            env.push(("LD_LIBRARY_PATH", std::env::join_paths(all).expect("paths of this repository")));
        }
        env
    }
}

/// The driver that `CHASKI_LAVAPIPE` names (its manifest), the system's if it is new enough, or Debian's from its
/// backports, unpacked in `target/mesa`.
///
/// # Errors
/// There is no driver and none can be installed.
pub(crate) fn lavapipe(install: bool) -> anyhow::Result<Driver> {
    if let Some(icd) = std::env::var_os("CHASKI_LAVAPIPE") {
        return Ok(Driver { icd: icd.into(), libraries: Vec::new() });
    }
    ensure!(
        cfg!(target_os = "linux"),
        "they need lavapipe, which only Linux has; CHASKI_LAVAPIPE may name its manifest"
    );
    let version = output("dpkg-query", &["-W", "-f=${Version}", PACKAGES[0]]);
    let major = version.as_ref().and_then(|v| v.split('.').next()?.parse::<u32>().ok());
    if major.is_some_and(|m| m >= MIN_MAJOR)
        && let Some(icd) = manifest(Path::new("/usr/share/vulkan/icd.d"))
    {
        return Ok(Driver { icd, libraries: Vec::new() });
    }
    let folder = crate::root().join("target/mesa");
    let root = folder.join("root");
    if manifest(&root.join("usr/share/vulkan/icd.d")).is_none() {
        let missing = format!("they need lavapipe of Mesa {MIN_MAJOR} or later");
        ensure!(install, "{missing}; without `--no-install` Debian's backports have it");
        bring(&folder, &root).with_context(|| format!("{missing}; installing it failed"))?;
    }
    let icd = manifest(&root.join("usr/share/vulkan/icd.d"))
        .context("no manifest of lavapipe in Debian's packages")?;
    Ok(Driver { icd, libraries: libraries(&root)? })
}

/// The manifest of lavapipe in a folder.
fn manifest(folder: &Path) -> Option<PathBuf> {
    let all = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    all.into_iter().find(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("lvp_icd")))
}

/// The folders `lib/ARCHITECTURE` and `usr/lib/ARCHITECTURE`.
fn libraries(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for lib in ["usr/lib", "lib"] {
        let Ok(entries) = fs::read_dir(root.join(lib)) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() && path.to_string_lossy().ends_with("-linux-gnu") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Archive of the system's own packages of this suite; it has the backports, too.
fn archive(suite: &str) -> anyhow::Result<String> {
    let all = ["indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"];
    let all = output("apt-get", &all).context("could not run `apt-get indextargets`")?;
    let found = all.lines().find_map(|l| l.strip_prefix(&format!("{suite} main ")));
    found.map(str::to_owned).with_context(|| format!("apt has no source of {suite}"))
}

/// Downloads the packages with their dependencies and unpacks them; the system's packages, lists and settings are
/// unchanged.
fn bring(folder: &Path, root: &Path) -> anyhow::Result<()> {
    let os = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let value = |key: &str| os.lines().find_map(|l| Some(l.strip_prefix(key)?.trim_matches('"').to_owned()));
    ensure!(
        value("ID=").as_deref() == Some("debian"),
        "this is not Debian; CHASKI_LAVAPIPE may name a manifest"
    );
    let suite = value("VERSION_CODENAME=").context("/etc/os-release names no VERSION_CODENAME")?;
    println!(
        "lavapipe of Mesa {MIN_MAJOR} or later was not found: unpacking {suite}-backports' in {}",
        folder.display()
    );
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(apt.join(part)).with_context(|| format!("could not make {}", apt.display()))?;
    }
    let archive = archive(&suite)?;
    let key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
    let source = |suite: &str| format!("deb {key} {archive} {suite} main\n");
    let backports = format!("{suite}-backports");
    fs::write(apt.join("sources.list"), source(&suite) + &source(&backports))?;
    // An empty status file: apt then downloads all dependencies.
    fs::write(apt.join("status"), "")?;
    let option = |name: &str, path: &str| format!("-o{name}={}", apt.join(path).display());
    let options = [
        option("Dir::State::lists", "lists"),
        option("Dir::State::status", "status"),
        option("Dir::Cache", "cache"),
        option("Dir::Etc::sourcelist", "sources.list"),
        "-oDir::Etc::sourceparts=/dev/null".to_owned(),
        "-oDebug::NoLocking=1".to_owned(),
    ];
    let install = ["install", "-y", "-qq", "--download-only", "--no-install-recommends", "-t", &backports];
    for args in [&["update", "-qq"][..], &[&install[..], &PACKAGES].concat()] {
        let mut command = Command::new("apt-get");
        command.args(&options).args(args).stdin(Stdio::null());
        let status = command.status().context("could not run apt-get")?;
        ensure!(status.success(), "`apt-get {}`: {status}", args.join(" "));
    }
    // Only complete downloads get this name.
    let part = folder.join("part");
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    for entry in fs::read_dir(apt.join("cache/archives"))? {
        let (path, name) = entry.map(|e| (e.path(), e.file_name().to_string_lossy().into_owned()))?;
        if !name.ends_with(".deb") || SYSTEM.iter().any(|s| name.starts_with(s)) {
            continue;
        }
        if output("dpkg-deb", &["-x", &path.to_string_lossy(), &part.to_string_lossy()]).is_none() {
            bail!("`dpkg-deb -x {}` failed", path.display());
        }
    }
    fs::rename(&part, root).with_context(|| format!("could not make {}", root.display()))?;
    fs::remove_dir_all(&apt).with_context(|| format!("could not remove {}", apt.display()))
}
