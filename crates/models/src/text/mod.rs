//! Text as it comes out of a model, token by token: whole characters, and the end at a stop string.

mod stop;
mod stream;

pub use stop::{StopStrings, Stopped};
pub use stream::TextStream;
