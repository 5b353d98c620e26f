//! The places of panics in a module: they keep file and line, and lose their columns, which compress badly.

use std::ops::Range;

use anyhow::{Context as _, ensure};

/// The part of a module's memory that its file has: an address, and where its bytes are in the file.
type Segment = (usize, Range<usize>);

/// Number of the section of data.
const DATA: u8 = 11;

/// Sets the columns of `core::panic::Location`s to 0, and returns how many there are. Each is 16 bytes: the address of
/// the file's name, its length, line and column.
///
/// # Errors
/// Bytes that are no module of WebAssembly.
pub(super) fn without_columns(wasm: &mut [u8]) -> anyhow::Result<usize> {
    let segments = segments(wasm)?;
    let mut columns = Vec::new();
    for (address, bytes) in &segments {
        let aligned = address.next_multiple_of(4) - address;
        for at in (bytes.start + aligned..bytes.end.saturating_sub(15)).step_by(4) {
            let word = |i: usize| {
                let bytes = wasm[at + 4 * i..][..4].try_into().expect("four bytes");
                u32::from_le_bytes(bytes) as usize
            };
            let (line, column) = (word(2), word(3));
            let is_place = (1..100_000).contains(&line) && (1..1000).contains(&column);
            if is_place && text(wasm, &segments, word(0), word(1)).is_some_and(is_source) {
                columns.push(at + 12);
            }
        }
    }
    for &at in &columns {
        wasm[at..at + 4].fill(0);
    }
    Ok(columns.len())
}

/// True for the path of a source file.
fn is_source(name: &[u8]) -> bool {
    name.ends_with(b".rs") && name.iter().all(|b| b.is_ascii_graphic())
}

/// Bytes of the memory, all from one segment.
fn text<'w>(wasm: &'w [u8], segments: &[Segment], address: usize, n_byte: usize) -> Option<&'w [u8]> {
    let (first, bytes) =
        segments.iter().find(|(first, bytes)| (*first..first + bytes.len()).contains(&address))?;
    let start = bytes.start + (address - first);
    (n_byte < 300 && start + n_byte <= bytes.end).then(|| &wasm[start..start + n_byte])
}

/// The active segments of data.
fn segments(wasm: &[u8]) -> anyhow::Result<Vec<Segment>> {
    ensure!(wasm.starts_with(b"\0asm"), "no module of WebAssembly");
    let (mut at, mut out) = (8, Vec::new());
    while at < wasm.len() {
        let section = wasm[at];
        at += 1;
        let n_byte = number(wasm, &mut at)?;
        let end = at + n_byte;
        if section == DATA {
            for _ in 0..number(wasm, &mut at)? {
                let mode = number(wasm, &mut at)?;
                // `i32.const`, a number, `end`; the highest bit of addresses is never set here.
                ensure!(mode == 0 && wasm.get(at) == Some(&0x41), "data that is not at a constant address");
                at += 1;
                let address = number(wasm, &mut at)?;
                at += 1;
                let n_byte = number(wasm, &mut at)?;
                out.push((address, at..at + n_byte));
                at += n_byte;
            }
        }
        at = end;
    }
    ensure!(out.last().is_none_or(|(_, bytes)| bytes.end <= wasm.len()), "data beyond the end of the module");
    Ok(out)
}

/// An unsigned number in LEB128.
fn number(wasm: &[u8], at: &mut usize) -> anyhow::Result<usize> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = *wasm.get(*at).context("the module ends within a number")?;
        *at += 1;
        value |= usize::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(value);
        }
    }
    anyhow::bail!("a number of more than 32 bits")
}

#[test]
fn places_lose_their_columns_and_nothing_else_changes() {
    let word = |n: u32| n.to_le_bytes();
    let place = |name: u32, n: u32, line: u32, column: u32| [name, n, line, column].map(word).concat();
    let mut data = b"src/a.rs".to_vec();
    data.extend(place(64, 8, 7, 5));
    // No name of a source, no line, and a name beyond the end.
    for other in [place(64, 5, 7, 5), place(64, 8, 0, 5), place(200, 8, 7, 5)] {
        data.extend(other);
    }
    let n_byte = u8::try_from(data.len()).expect("short");
    let mut wasm = b"\0asm\x01\0\0\0".to_vec();
    wasm.extend([0, 1, 9, DATA, n_byte + 7, 1, 0, 0x41, 0xc0, 0, 0x0b, n_byte]);
    let start = wasm.len();
    wasm.extend(data);
    let before = wasm.clone();
    assert_eq!(without_columns(&mut wasm).expect("a module"), 1);
    let changed: Vec<_> = (0..wasm.len()).filter(|i| wasm[*i] != before[*i]).collect();
    assert_eq!((changed, wasm[start + 20]), (vec![start + 20], 0));
    assert!(without_columns(&mut b"\0asm\x01\0\0\0\x0b\xff".to_vec()).is_err());
    assert!(without_columns(&mut b"text".to_vec()).is_err());
}
