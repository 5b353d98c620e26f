//! Salts of cached prefixes: clients that must not learn from times what others asked share none.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// Salts that keep their number. Requests choose them, so there may be any number.
const MAX_KNOWN: usize = 4096;

/// The numbers of salts. 0 is that of requests without a salt.
#[derive(Debug, Default)]
pub(crate) struct Salts(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Hashes of salts with their numbers; the last used one is the last.
    numbers: VecDeque<([u8; 32], u32)>,
    n_salt: u32,
}

impl Salts {
    /// The number of the prefixes of a client, if they are its own, with the salt of a request. One that was not used
    /// for long gets another number when it returns: its prefixes are computed again.
    pub(crate) fn number(&self, client: Option<u64>, salt: Option<&str>) -> u32 {
        if client.is_none() && salt.is_none() {
            return 0;
        }
        let mut hash = Sha256::new();
        hash.update([client.is_some().into(), salt.is_some().into()]);
        hash.update(client.unwrap_or_default().to_le_bytes());
        hash.update(salt.unwrap_or_default());
        let hash = hash.finalize().into();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.numbers.iter().position(|(known, _)| *known == hash);
        let number = match at.and_then(|at| known.numbers.remove(at)) {
            Some((_, number)) => number,
            None => {
                // After 2^32 salts the prefixes of the first ones are long gone.
                known.n_salt = known.n_salt.checked_add(1).unwrap_or(1);
                known.n_salt
            }
        };
        if known.numbers.len() == MAX_KNOWN {
            known.numbers.pop_front();
        }
        known.numbers.push_back((hash, number));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salts_have_numbers_of_their_own_and_memory_is_bounded() {
        let salts = Salts::default();
        assert_eq!(salts.number(None, None), 0);
        let all = [
            (None, Some("a")),
            (None, Some("b")),
            (Some(0), None),
            (Some(1), None),
            (Some(0), Some("a")),
            (None, Some("")),
        ];
        let numbers = all.map(|(client, salt)| salts.number(client, salt));
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        for i in 0..2 * MAX_KNOWN {
            salts.number(None, Some(&i.to_string()));
            assert_eq!(salts.number(None, Some("a")), 1, "it stays in use");
        }
        assert_eq!(salts.0.lock().unwrap().numbers.len(), MAX_KNOWN);
        assert!(salts.number(None, Some("b")) > 2, "it was forgotten");
    }
}
