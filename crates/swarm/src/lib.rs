//! One mixture of experts over many machines, as state machines without I/O.
mod place;
mod random;
mod unit;

pub use place::{Assignment, BOUND, Place, UnitLoad, place};
pub use random::Random;
pub use unit::{CallId, Class, HostId, LayerShape, ModelShape, PeerId, Unit, WorkerId};
