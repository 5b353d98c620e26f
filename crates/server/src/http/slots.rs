//! The states of slots in files.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use chaski::serve::SlotState;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::body;
use super::extract::{InPath, InQuery};
use super::respond::json as respond;
use super::status::Which;
use crate::app::App;
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::ids;
use crate::model::Served;

/// Bytes of the digest that ends a file.
const N_DIGEST: usize = 32;

/// The action of a request for a slot.
#[derive(serde::Deserialize)]
pub(super) struct Action {
    action: Option<String>,
}

/// Saves, restores or erases a slot.
pub(super) async fn act(
    State(app): State<Arc<App>>,
    InQuery(which): InQuery<Which>,
    InQuery(action): InQuery<Action>,
    InPath(slot): InPath,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let Some(folder) = &app.config.slot_save_path else {
        let message = "this server does not support slots action; start it with `--slot-save-path DIR`";
        return Err(ApiError::new(Kind::Unsupported, message));
    };
    let body = match body::bytes(request.into_body(), app.bounds().max_body).await? {
        bytes if bytes.is_empty() => json!({}),
        bytes => body::parse(&bytes)?,
    };
    let served = which.served(&app).await?;
    served.handle()?;
    let slot = slot_of(&slot, served.facts.n_seq)?;
    let answer = match action.action.as_deref() {
        Some("save") => save(&served, slot, folder, &named(&body)?).await?,
        Some("restore") => {
            let lora = served.facts.lora_scales(&body)?;
            restore(&served, slot, lora, folder, &named(&body)?).await?
        }
        Some("erase") => json!({"id_slot": slot, "n_erased": served.handle()?.erase_slot(slot).await?}),
        _ => return Err(ApiError::field("action", "`action` must be save, restore or erase")),
    };
    Ok(respond(&answer))
}

fn slot_of(text: &str, n_seq: u32) -> Result<u32, ApiError> {
    let wrong = || ApiError::field("id", format!("the slot must be a number below {n_seq}"));
    text.parse().ok().filter(|slot| *slot < n_seq).ok_or_else(wrong)
}

/// The name of the file, which must be plain.
pub(crate) fn named(body: &Value) -> Result<String, ApiError> {
    let fields = Fields::of(body, "")?;
    let name = fields.need("filename", fields.text("filename")?)?;
    if is_plain(name) {
        return Ok(name.to_owned());
    }
    Err(fields.wrong("filename", "a plain file name"))
}

/// True for names that mean a file of a folder on all systems. Names that begin with a dot are for files in the making.
fn is_plain(name: &str) -> bool {
    let is_char = |c: char| !c.is_control() && !"/\\:*?\"<>|".contains(c);
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    // Devices of Windows.
    let is_port =
        ["COM", "LPT"].iter().any(|port| stem.strip_prefix(port).is_some_and(|n| n.chars().count() == 1));
    let is_device = is_port || ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&stem.as_str());
    let is_long = name.len() > 200;
    let has_odd_end = name.starts_with(['.', ' ']) || name.ends_with(['.', ' ']);
    !name.is_empty() && !is_long && !has_odd_end && !is_device && name.chars().all(is_char)
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

async fn save(served: &Served, slot: u32, folder: &Path, name: &str) -> Result<Value, ApiError> {
    let start = Instant::now();
    let SlotState { n_token, bytes } = served.handle()?.save_slot(slot).await?;
    let (folder, file) = (folder.to_owned(), name.to_owned());
    let n_written = body::read(move || {
        let failed =
            |error| ApiError::new(Kind::Internal, format!("the file `{file}` cannot be written: {error}"));
        write(&folder, &file, &bytes).map_err(failed)
    })
    .await?;
    let timings = json!({"save_ms": ms(start)});
    Ok(
        json!({"id_slot": slot, "filename": name, "n_saved": n_token, "n_written": n_written, "timings": timings}),
    )
}

/// Writes a file beside its place and moves it there; returns its size.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<u64> {
    let making = Making(folder.join(ids::new(".making-")));
    let mut file = File::create_new(&making.0)?;
    file.write_all(bytes)?;
    file.write_all(&Sha256::digest(bytes))?;
    file.sync_all()?;
    drop(file);
    fs::rename(&making.0, folder.join(name))?;
    Ok((bytes.len() + N_DIGEST) as u64)
}

/// A file in the making, which is gone afterwards.
struct Making(PathBuf);

impl Drop for Making {
    fn drop(&mut self) {
        // It has another name by now, unless something failed.
        let _ = fs::remove_file(&self.0);
    }
}

async fn restore(
    served: &Served,
    slot: u32,
    lora: Option<Vec<f32>>,
    folder: &Path,
    name: &str,
) -> Result<Value, ApiError> {
    let start = Instant::now();
    let (folder, file, most) = (folder.to_owned(), name.to_owned(), served.handle()?.max_slot_bytes());
    let bytes = body::read(move || read(&folder, &file, most)).await?;
    let n_read = bytes.len() + N_DIGEST;
    let n_token = served.handle()?.restore_slot(slot, lora, bytes).await?;
    let timings = json!({"restore_ms": ms(start)});
    Ok(
        json!({"id_slot": slot, "filename": name, "n_restored": n_token, "n_read": n_read, "timings": timings}),
    )
}

/// The state in a file, which is not larger than any state can be.
fn read(folder: &Path, name: &str, most: u64) -> Result<Vec<u8>, ApiError> {
    let wrong = |what: &str| ApiError::field("filename", format!("the file `{name}` {what}"));
    let unread = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => wrong("does not exist"),
        _ => wrong(&format!("cannot be read: {error}")),
    };
    let path = folder.join(name);
    // Neither a link out of the folder, nor a pipe that waits.
    let found = fs::symlink_metadata(&path).map_err(unread)?;
    if !found.is_file() {
        return Err(wrong("is no file of this folder"));
    }
    let most = most.saturating_add(N_DIGEST as u64);
    if found.len() > most {
        return Err(wrong(&format!("has {} bytes, more than the {most} of a full context", found.len())));
    }
    let mut bytes = Vec::with_capacity(found.len() as usize);
    File::open(&path).map_err(unread)?.take(found.len()).read_to_end(&mut bytes).map_err(unread)?;
    let digest = bytes.len().checked_sub(N_DIGEST).map(|n| bytes.split_off(n));
    match digest {
        Some(digest) if digest[..] == Sha256::digest(&bytes)[..] => Ok(bytes),
        _ => Err(wrong("is damaged, or not the state of a slot")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_those_of_files_in_a_folder_on_all_systems() {
        for name in
            ["a", "slot1.bin", "a b.c", "..a".trim_start_matches('.'), "Größe", "console", "com10", "a..b"]
        {
            assert!(is_plain(name), "{name:?}");
        }
        let long = "x".repeat(201);
        for name in [
            "", ".", "..", ".hidden", "a/b", "/a", "../a", "a\\b", "C:a", "a\0", "a\n", "a*", "nul",
            "Con.txt", "COM1", "lpt9.bin", "a.", "a ", " a", "a|b", &long,
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn files_are_whole_or_refused_and_nothing_is_left_of_the_making() {
        let folder = std::env::temp_dir().join(ids::new("chaski-slots-"));
        fs::create_dir(&folder).unwrap();
        assert_eq!(write(&folder, "a", b"state").unwrap(), 37);
        assert_eq!(read(&folder, "a", 5).unwrap(), b"state");
        let refused = |name: &str, most| read(&folder, name, most).unwrap_err().message;
        assert_eq!(refused("a", 4), "the file `a` has 37 bytes, more than the 36 of a full context");
        assert_eq!(refused("b", 9), "the file `b` does not exist");
        fs::create_dir(folder.join("d")).unwrap();
        assert_eq!(refused("d", 9), "the file `d` is no file of this folder");
        assert!(write(&folder, "d", b"state").is_err(), "a folder is in the way");
        for bytes in [&b"state"[..], b"", &[0; 37], &[&b"stat3"[..], &Sha256::digest(b"state")[..]].concat()]
        {
            fs::write(folder.join("b"), bytes).unwrap();
            assert_eq!(refused("b", 999), "the file `b` is damaged, or not the state of a slot");
        }
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "d"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
