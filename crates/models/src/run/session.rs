//! Sessions: a sequence as bytes, for another time, another process or after device loss.
//!
//! Little-endian: a magic number, then, each preceded by its length as u64: the identity, the tokens (u32 each), the
//! end of the written positions (u64), and the device's data.

use super::runner::Runner;
use crate::error::{ModelError, SessionError};

const MARK: &[u8; 8] = b"chaski\x01\n";

/// Length-prefixed parts.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn next(&mut self, what: &'static str) -> Result<&'a [u8], SessionError> {
        let damaged = SessionError::Damaged { what };
        let (n, rest) = self.0.split_first_chunk::<8>().ok_or(damaged.clone())?;
        let n = usize::try_from(u64::from_le_bytes(*n)).map_err(|_| damaged.clone())?;
        let (part, rest) = rest.split_at_checked(n).ok_or(damaged)?;
        self.0 = rest;
        Ok(part)
    }
}

/// A session's bytes.
pub(crate) fn pack(name: &str, tokens: &[u32], top: usize, known: &[u8]) -> Vec<u8> {
    let tokens: Vec<u8> = tokens.iter().flat_map(|t| t.to_le_bytes()).collect();
    let top = (top as u64).to_le_bytes();
    let mut out = MARK.to_vec();
    for part in [name.as_bytes(), &tokens, &top, known] {
        out.extend((part.len() as u64).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// Tokens, end of the written positions, and the device's data.
pub(crate) type Unpacked<'a> = (Vec<u32>, usize, &'a [u8]);

/// The parts of a session with the expected identity.
pub(crate) fn unpack<'a>(bytes: &'a [u8], expected: &str) -> Result<Unpacked<'a>, SessionError> {
    let mut parts = Parts(bytes.strip_prefix(MARK).ok_or(SessionError::Mark)?);
    let found = String::from_utf8_lossy(parts.next("its name is cut off")?).into_owned();
    if found != expected {
        return Err(SessionError::Other { found, expected: expected.to_owned() });
    }
    let tokens = parts.next("its tokens are cut off")?;
    let top = parts.next("its position is cut off")?;
    let known = parts.next("its cache is cut off")?;
    let damaged = |what| SessionError::Damaged { what };
    if !parts.0.is_empty() || tokens.len() % 4 != 0 {
        return Err(damaged("it has bytes too many"));
    }
    let top: [u8; 8] = top.try_into().map_err(|_| damaged("its position is no number"))?;
    let top = usize::try_from(u64::from_le_bytes(top)).map_err(|_| damaged("its position is no number"))?;
    let tokens = tokens.chunks_exact(4).map(|t| u32::from_le_bytes([t[0], t[1], t[2], t[3]])).collect();
    Ok((tokens, top, known))
}

impl Runner {
    /// Identity of matching sessions.
    pub(crate) fn session_of(&self, scales: &[f32]) -> String {
        let layout = self.device.session_layout();
        format!("{}, adapters {scales:?}, {layout}", self.name)
    }

    pub(crate) fn session_bytes(&self, n: usize) -> u64 {
        self.device.session_bytes(n)
    }

    /// Pages of the cache, and the other state of a slot, as bytes.
    pub(crate) async fn read_session(
        &mut self,
        seq: u32,
        pages: &[u32],
        n: usize,
    ) -> Result<Vec<u8>, ModelError> {
        self.serve();
        self.device.save(seq, pages, n).await
    }

    /// Writes the result of [`Self::read_session`].
    pub(crate) async fn write_session(
        &mut self,
        seq: u32,
        pages: &[u32],
        n: usize,
        bytes: &[u8],
    ) -> Result<(), ModelError> {
        self.serve();
        self.device.put_back(seq, pages, n, bytes).await
    }

    /// The selected sequence as bytes: tokens, keys, values and recurrent state. About the size of its part of the
    /// cache.
    ///
    /// # Errors
    /// Device errors.
    pub async fn save(&mut self) -> Result<Vec<u8>, ModelError> {
        self.settle().await?;
        let tokens = self.history().to_vec();
        let (seq, pages) = (self.at as u32, self.pages.of(self.at).to_vec());
        let known = self.device.save(seq, &pages, tokens.len()).await?;
        let name = self.session_of(self.lora_scales_of(self.at));
        Ok(pack(&name, &tokens, self.seqs[self.at].top, &known))
    }

    /// Restores the selected sequence to its state at [`Self::save`]; it continues bit for bit.
    ///
    /// # Errors
    /// [`ModelError::Session`] for bytes that are no session of this model and kind of cache, or longer than the
    /// context; the sequence is then unchanged. Device errors.
    pub async fn restore(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let (tokens, top, known) = unpack(bytes, &self.session_of(self.lora_scales_of(self.at)))?;
        let damaged = |what| SessionError::Damaged { what };
        let (n, limit) = (tokens.len(), self.n_ctx as usize);
        // A larger value only causes tokens to run again.
        let top = top.min(u32::MAX as usize);
        if n > limit {
            return Err(SessionError::Long { found: n, limit }.into());
        }
        self.check(&tokens)?;
        if top < n || known.len() as u64 != self.session_bytes(n) {
            return Err(damaged("its cache is not that of its tokens").into());
        }
        self.truncate(0);
        self.own(0, n);
        let pages = self.pages.of(self.at).to_vec();
        self.device.put_back(self.at as u32, &pages, n, known).await?;
        let seq = &mut self.seqs[self.at];
        (seq.history, seq.top) = (tokens, top);
        Ok(())
    }
}
