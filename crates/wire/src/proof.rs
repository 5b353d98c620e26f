//! Proofs that both sides have the same token, which never crosses the wire.
//!
//! HMAC-SHA256 with the token as its key, over the role, both nonces, and the sha256 of the HELLO message. The nonces
//! keep a proof from being used again, the role from being sent back, and the digest ties it to what the worker said of
//! itself.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::ProofError;
use crate::hex::{Digest, Hex, Nonce};

/// A proof.
pub type Mac = Hex<32>;

/// Bytes of a token.
const N: usize = 16;

/// The secret of a swarm: 128 bits, in text as 32 hexadecimal digits.
///
/// Neither printed by `Debug` nor compared but through proofs.
#[derive(Clone)]
pub struct Token([u8; N]);

impl Token {
    /// A token of random bytes.
    pub fn new(bytes: [u8; N]) -> Token {
        Token(bytes)
    }

    /// The text that [`Token::from_str`] reads, for the file or link that hands it on.
    pub fn reveal(&self) -> String {
        Hex(self.0).to_string()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl FromStr for Token {
    type Err = ProofError;

    fn from_str(text: &str) -> Result<Token, ProofError> {
        let text = text.trim();
        let bytes: Hex<N> = text.parse().map_err(|_| ProofError::Token { found: text.chars().count() })?;
        Ok(Token(bytes.0))
    }
}

/// Side of a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The machine with the model.
    Hub,
    /// A machine that computes.
    Worker,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Hub => "hub",
            Role::Worker => "worker",
        }
    }
}

/// The values that a proof covers, equal on both sides.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Nonce of CHALLENGE.
    pub hub: Nonce,
    /// Nonce of HELLO.
    pub worker: Nonce,
    /// Digest of the payload of HELLO.
    pub hello: Digest,
}

impl Handshake {
    /// The values of a connection.
    ///
    /// # Shapes
    /// `hello` has the bytes of HELLO's payload as they were sent.
    pub fn new(hub: Nonce, worker: Nonce, hello: &[u8]) -> Handshake {
        Handshake { hub, worker, hello: Hex(Sha256::digest(hello).into()) }
    }

    /// The proof of a side.
    pub fn prove(&self, token: &Token, role: Role) -> Mac {
        let mut mac = Hmac::<Sha256>::new_from_slice(&token.0).expect("HMAC takes keys of any length");
        // Fixed lengths behind the only name, so no two handshakes have the same bytes.
        for part in [role.name().as_bytes(), &[0], &self.hub.0, &self.worker.0, &self.hello.0] {
            mac.update(part);
        }
        Hex(mac.finalize().into_bytes().into())
    }

    /// Compares a proof of the other side in constant time. Without a token nothing is asked, and no proof is needed.
    ///
    /// # Errors
    /// The proof is missing or another one.
    pub fn verify(&self, token: Option<&Token>, role: Role, proof: Option<&Mac>) -> Result<(), ProofError> {
        let Some(token) = token else { return Ok(()) };
        // A missing proof is compared, too, so that it takes as long.
        let found = proof.copied().unwrap_or(Hex([0; 32]));
        let is_right = found.0.ct_eq(&self.prove(token, role).0).into();
        if is_right { Ok(()) } else { Err(ProofError::Wrong { role: role.name() }) }
    }
}
