//! Frames and control messages between the hub of a swarm and its workers.
//!
//! A swarm runs one model on many machines: the hub keeps embeddings, attention, norms, router, head and KV cache,
//! workers multiply experts of its layers. One binary message of a WebSocket is one frame: a [`Header`] of 32 bytes and
//! a payload, all numbers little-endian. [`Frame`] is a message, [`Frame::encode`] makes frames of it, and an
//! [`Assembler`] reads the frames of a connection.
//!
//! Decoders are strict: a message has one encoding, lengths follow from counts before anything is allocated, and all
//! values are finite. A peer that sends anything else gets a [`Fail`]. Nothing here does I/O or reads a clock.

#![forbid(unsafe_code)]

mod answer;
mod assembler;
mod control;
mod cursor;
mod error;
mod frame;
mod header;
mod hex;
mod kind;
mod limits;
mod notice;
mod proof;
mod rows;
mod span;
mod task;

pub use answer::{Answer, Fail, FailCode};
pub use assembler::Assembler;
pub use control::{
    Assign, Blob, Challenge, Control, Drain, EVEN_LAYERS, Have, Hello, PageCaps, Proof, Refuse, RefuseCode,
    TensorParts, Unit, UnitKind, Welcome,
};
pub use error::{ProofError, RowsError, WireError};
pub use frame::{Body, Frame};
pub use header::{Flags, HEADER, Header, VERSION};
pub use hex::{Digest, Hex, HexError, Nonce};
pub use kind::Kind;
pub use limits::{Limits, MAX_ASSIGN, MAX_CANCEL, MAX_CONTROL, MAX_DEPTH, MAX_TEXT};
pub use notice::State;
pub use proof::{Handshake, Mac, Role, Token};
pub use rows::{Dtype, Rows};
pub use span::{Place, Span, Trim};
pub use task::{Pair, Run, Task};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
