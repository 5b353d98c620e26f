//! One mixture of experts over many machines, as state machines without I/O.
mod estimate;
mod health;
mod hedge;
mod hub;
mod place;
mod random;
mod timers;
mod unit;
mod verify;
mod worker;

pub use hedge::Hedging;
pub use hub::{
    Action, Bounds, Call, CallError, CallPair, CloseReason, Event, Hub, HubConfig, Joined, Stats, Status,
    UnitStatus, WorkerStatus,
};
pub use place::{Assignment, BOUND, Place, UnitLoad, place};
pub use random::Random;
pub use unit::{CallId, Class, HostId, LayerShape, ModelShape, PeerId, Unit, WorkerId};
pub use worker::{Worker, WorkerAction, WorkerConfig, WorkerEvent};
