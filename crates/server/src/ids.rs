//! Names of requests and answers.

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A new name: the prefix and 24 random letters.
pub(crate) fn new(prefix: &str) -> String {
    let mut bytes = [0; 24];
    // Without a source of random numbers the names repeat, and nothing else depends on them.
    if getrandom::fill(&mut bytes).is_err() {
        let time = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        bytes[..16].copy_from_slice(&time.to_le_bytes());
    }
    let letters = bytes.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    prefix.chars().chain(letters).collect()
}
