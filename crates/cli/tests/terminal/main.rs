//! The command on a terminal: the chat as a person types into it.
//!
//! Each test has a pseudo-terminal and a home folder of its own; the built-in model answers on the CPU.
#![cfg(unix)]

mod answers;
mod commands;
mod input;
mod progress;
mod pty;

pub(crate) use pty::Home;
