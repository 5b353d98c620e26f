//! The `chaski` command.
fn main() {}
