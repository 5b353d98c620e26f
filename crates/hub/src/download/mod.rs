//! Download of one file into a part, over broken connections, and its verification.

pub(crate) mod hasher;
pub(crate) mod part;

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use part::Part;

use crate::address::Address;
use crate::client::{Answer, Asked, Client, Failure, Tries, broken_body, is_page};
use crate::config::Limits;
use crate::digest::{Digest, strong_etag};
use crate::error::HubError;
use crate::event::Event;
use crate::job::Job;

/// Bytes of one read.
const PIECE: usize = 128 << 10;
/// Time between two events of progress of a file.
const TELL: Duration = Duration::from_millis(50);

/// Most times that a damaged file of several pieces is fetched from its beginning again.
const MOST_REPAIRS: usize = 2;

/// A file to download.
pub(crate) struct Target<'a> {
    pub(crate) asked: Asked<'a>,
    /// Its number in the plan.
    pub(crate) file: usize,
    pub(crate) address: &'a Address,
    /// The part to write.
    pub(crate) part: &'a Path,
    pub(crate) size: Option<u64>,
    pub(crate) digest: Option<&'a Digest>,
}

/// Downloads a file; its part is then whole, verified and on the disk.
///
/// # Errors
/// [`HubError::Size`] and [`HubError::Damaged`] for other contents, of which nothing is kept; others, with the part
/// kept.
pub(crate) fn download(
    client: &Client,
    limits: &Limits,
    job: &Job,
    target: &Target<'_>,
) -> Result<(), HubError> {
    let mut n_repair = 0;
    loop {
        let address = target.address.plain().to_string();
        let mut part = Part::open(target.part, &address, target.size, target.digest, limits.n_flush, job)?;
        job.tell(Event::Started { file: target.file, n_present: part.len() });
        let filled = fill(client, limits, job, target, &mut part);
        if let Err(error) = &filled
            && !matches!(error, HubError::Size { .. } | HubError::NoRoom { .. })
        {
            part.flush()?;
        }
        let is_joined = part.is_joined;
        match filled.and_then(|()| verify(target, part)) {
            Ok(Some(digest)) => {
                job.tell(Event::Verified { file: target.file, digest });
                return Ok(());
            }
            Ok(None) => return Ok(()),
            // Pieces of several answers may belong to different files: once more, in one.
            Err(HubError::Size { .. } | HubError::Damaged { .. }) if is_joined && n_repair < MOST_REPAIRS => {
                n_repair += 1;
                part::remove(target.part);
            }
            Err(error @ (HubError::Size { .. } | HubError::Damaged { .. })) => {
                part::remove(target.part);
                return Err(error);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Compares size and digest of a whole part.
fn verify(target: &Target<'_>, part: Part) -> Result<Option<Digest>, HubError> {
    let found = part.len();
    let size = target.size.or(part.note.size);
    if let Some(expected) = size.filter(|size| *size != found) {
        return Err(HubError::Size { file: target.asked.path.to_owned(), expected, found });
    }
    let found = part.finish()?;
    match (target.digest, found) {
        (Some(expected), Some(found)) if *expected != found => {
            Err(HubError::Damaged { file: target.asked.path.to_owned(), expected: expected.clone(), found })
        }
        (_, found) => Ok(found),
    }
}

/// Fetches what a part lacks.
fn fill(
    client: &Client,
    limits: &Limits,
    job: &Job,
    target: &Target<'_>,
    part: &mut Part,
) -> Result<(), HubError> {
    let mut tries = Tries::new(limits);
    while part.note.size.is_none() || part.note.size != Some(part.len()) {
        let before = part.len();
        match stream(client, job, target, part) {
            Ok(()) => return Ok(()),
            Err(failure) => {
                if part.len() > before {
                    tries.progressed();
                }
                tries.again(job, failure)?;
            }
        }
    }
    Ok(())
}

/// One request, from the end of the part on.
fn stream(client: &Client, job: &Job, target: &Target<'_>, part: &mut Part) -> Result<(), Failure> {
    if part.len() > 0 && target.digest.is_none() && part.note.validator.is_none() {
        // Nothing tells whether the rest is of the same file.
        part.restart()?;
    }
    let at = part.len();
    let mut headers = Vec::new();
    if at > 0 {
        headers.push(("range", format!("bytes={at}-")));
        if let Some(validator) = &part.note.validator {
            headers.push(("if-range", validator.clone()));
        }
    }
    let answer = client.get(&target.asked, target.address, &headers)?;
    if is_page(&answer) && !target.asked.path.to_ascii_lowercase().ends_with(".html") {
        return Err(HubError::Page { address: answer.address.plain().to_string() }.into());
    }
    let total = match answer.status.as_u16() {
        206 => {
            let (start, total) = content_range(&answer)?;
            if start != at {
                return Err(wrong(&answer, "the answer is of another range than the one asked for").into());
            }
            if total.is_some_and(|total| total < at) {
                return Err(wrong(&answer, "the answer is of a range behind the end of the file").into());
            }
            if at > 0 && is_of_another(&answer, total, part, target) {
                // A server that ignores `If-Range`: from the beginning, without a range.
                part.restart()?;
                return stream(client, job, target, part);
            }
            part.is_joined |= at > 0;
            total
        }
        416 => {
            // Either all bytes are there, or the file has changed.
            let known = target.size.or(part.note.size);
            if unsatisfied(&answer) == Some(at) && known.is_none_or(|size| size == at) {
                part.note.size = Some(at);
                return Ok(());
            }
            if at == 0 {
                let error = wrong(&answer, "a range is refused, but none was asked for");
                return Err(Failure::Transient { error, wait: None });
            }
            // At once: the request without a range is another one.
            part.restart()?;
            return stream(client, job, target, part);
        }
        _ => {
            if at > 0 {
                part.restart()?;
            }
            answer.length()
        }
    };
    let expected = target.size.or(total);
    if let (Some(expected), Some(found)) = (expected, total)
        && expected != found
    {
        return Err(HubError::Size { file: target.asked.path.to_owned(), expected, found }.into());
    }
    part.note.size = expected;
    // The rest of a file may come without the date that its beginning had.
    let kept = part.note.validator.take().filter(|_| part.len() > 0);
    part.note.validator = validator(&answer).or(kept);
    receive(job, target, part, answer)
}

/// True if the rest of a file has another mark or size than its beginning, where no digest would tell.
fn is_of_another(answer: &Answer, total: Option<u64>, part: &Part, target: &Target<'_>) -> bool {
    let differs = validator(answer).is_some_and(|found| part.note.validator.as_ref() != Some(&found));
    let sizes = part.note.size.zip(total);
    target.digest.is_none() && (differs || sizes.is_some_and(|(known, found)| known != found))
}

/// Writes a body to the part.
fn receive(job: &Job, target: &Target<'_>, part: &mut Part, answer: Answer) -> Result<(), Failure> {
    let (address, size) = (answer.address.clone(), part.note.size);
    let mut body = answer.into_reader();
    let mut piece = vec![0; PIECE];
    let mut told = Instant::now();
    let tell = |part: &Part| job.tell(Event::Progress { file: target.file, n_present: part.len(), size });
    loop {
        job.check()?;
        let n = body.read(&mut piece).map_err(|e| broken_body(&address, e))?;
        if n == 0 {
            break;
        }
        let most = size.map_or(u64::MAX, |size| size.saturating_sub(part.len()));
        if n as u64 > most {
            let (file, found) = (target.asked.path.to_owned(), part.len().saturating_add(n as u64));
            return Err(HubError::Size { file, expected: size.unwrap_or(0), found }.into());
        }
        part.write(&piece[..n])?;
        if told.elapsed() > TELL {
            told = Instant::now();
            tell(part);
        }
    }
    tell(part);
    match size {
        Some(size) if part.len() < size => {
            let error = HubError::Cut { address: address.plain().to_string(), at: part.len(), size };
            Err(Failure::Transient { error, wait: None })
        }
        _ => {
            part.note.size = Some(part.len());
            Ok(())
        }
    }
}

/// The condition of a later range.
fn validator(answer: &Answer) -> Option<String> {
    let strong = answer.header("etag").and_then(strong_etag);
    strong.or_else(|| answer.header("last-modified")).map(str::to_owned)
}

/// Start and size of the whole in `Content-Range: bytes 5-9/10`.
pub(crate) fn content_range(answer: &Answer) -> Result<(u64, Option<u64>), HubError> {
    let parse = || {
        let (range, total) =
            answer.header("content-range")?.trim().strip_prefix("bytes ")?.split_once('/')?;
        let start = range.split_once('-')?.0.trim().parse().ok()?;
        Some((start, total.trim().parse().ok()))
    };
    parse().ok_or_else(|| wrong(answer, "`Content-Range` cannot be read"))
}

/// The size in `Content-Range: bytes */10` of a refused range.
fn unsatisfied(answer: &Answer) -> Option<u64> {
    answer.header("content-range")?.trim().strip_prefix("bytes */")?.trim().parse().ok()
}

fn wrong(answer: &Answer, what: &'static str) -> HubError {
    HubError::Answer { address: answer.address.plain().to_string(), what }
}

/// Size and digest that a server announces for an address.
pub(crate) struct Announced {
    pub(crate) size: Option<u64>,
    pub(crate) digest: Option<Digest>,
    /// True if the contents are those of the validator that was given.
    pub(crate) is_unchanged: bool,
}

/// Asks for the first byte of an address, to learn about the rest; conditional on another validator than the given one.
///
/// # Errors
/// Those of the server and the connection.
pub(crate) fn probe(
    client: &Client,
    limits: &Limits,
    job: &Job,
    asked: &Asked<'_>,
    address: &Address,
    known: Option<&str>,
) -> Result<Announced, HubError> {
    let mut headers = vec![("range", "bytes=0-0".to_owned())];
    if let Some(known) = known {
        let name = if known.starts_with('"') { "if-none-match" } else { "if-modified-since" };
        headers.push((name, known.to_owned()));
    }
    let mut tries = Tries::of_question(limits);
    let answer = loop {
        match client.get(asked, address, &headers) {
            Ok(answer) => break answer,
            Err(failure) => tries.again(job, failure)?,
        }
    };
    if is_page(&answer) && !address.file_name().ends_with(".html") {
        return Err(HubError::Page { address: answer.address.plain().to_string() });
    }
    let size = match answer.status.as_u16() {
        206 => content_range(&answer)?.1,
        416 => unsatisfied(&answer),
        _ => answer.length(),
    };
    let is_unchanged =
        answer.status.as_u16() == 304 || known.is_some() && validator(&answer).as_deref() == known;
    let digest = answer.linked_etag.as_deref().and_then(Digest::of_etag);
    Ok(Announced { size, digest, is_unchanged })
}
