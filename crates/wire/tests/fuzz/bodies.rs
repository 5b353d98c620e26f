//! Body of the fuzz target: a connection's messages, each behind its length in two bytes.

use chaski_wire::{Assembler, Body, Frame, Limits};

/// Reads messages by [`Frame::decode`] and by an assembler of small limits. A message that is read is written as the
/// same bytes.
pub(crate) fn wire(mut bytes: &[u8]) {
    let limits = Limits { message: 1 << 16, pending: 1 << 16, n_pending: 3, ..Limits::default() };
    let mut assembler = Assembler::new(limits);
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (message, rest) = rest.split_at(length);
        bytes = rest;
        if let Ok(frame) = Frame::decode(message, &limits) {
            check(message, &frame, &limits);
        }
        if let Ok(Some(frame)) = assembler.push(message) {
            let written = frame.encode(&limits, false);
            assert!(written.is_ok(), "a message that was read cannot be written: {written:?}");
        }
        assert!(assembler.n_pending_byte() <= limits.pending as usize);
    }
}

/// A message has one encoding; JSON may have spaces and fields of later versions, so that the second encoding counts.
fn check(message: &[u8], frame: &Frame, limits: &Limits) {
    let has_crc = message[6] & 4 != 0;
    let written = frame.encode(limits, has_crc).expect("a message that was read can be written");
    if matches!(frame.body, Body::Control(_)) {
        let read = Frame::decode(&written[0], limits).expect("a message that was written can be read");
        assert_eq!(read, *frame);
    } else {
        assert_eq!(written.concat(), message);
    }
}
