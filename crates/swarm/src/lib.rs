//! An MoE model over many machines, as state machines without I/O.
//!
//! The hub of a swarm runs a model but for the experts of its layers, whose products workers make. [`Hub`] takes calls
//! of the engine: the inputs of a layer, and [`CallPair`]s of a column and an expert. It cuts them by [`Unit`], blocks
//! of experts that [`place`] puts on workers, has each part made by one of its workers, and gives back one row a pair.
//! [`Worker`] holds units and answers tasks, one at a time. Frames between them are those of [`chaski_wire`].
//!
//! Both are functions of events: `on(now, event, &mut actions)`. The caller owns sockets, handshakes, clock, weights
//! and devices, and performs actions in their order. Time is a [`Duration`](std::time::Duration) since any moment,
//! chance comes from a seed, so that a run can be repeated exactly.
//!
//! Exact mode promises equal bits: all rows come from workers of one [`Class`], so they are those of one machine,
//! under any placement, hedge or fault. Without it a worker may weigh and sum the products of a column
//! ([`HubConfig::sums`]), and answers with one row in place of several.

#![forbid(unsafe_code)]

mod cost;
mod estimate;
mod health;
mod hedge;
mod hub;
mod place;
mod random;
mod sum;
mod timers;
mod unit;
mod verify;
mod worker;

pub use cost::{
    Available, Choice, Cost, Drafts, ExpertSplit, Link, ModelSize, Plan, PlanError, Rates, WorkerRates,
    best_fan_out, phase_time, plan,
};
pub use hedge::Hedging;
pub use hub::{
    Action, Bounds, Call, CallError, CloseReason, Event, Hub, HubConfig, Joined, Stats, Status, Times,
    UnitStatus, WorkerStatus,
};
pub use place::{Assignment, BOUND, Place, UnitLoad, place, place_by_layer};
pub use random::Random;
pub use unit::{CallId, CallPair, Class, HostId, LayerShape, ModelShape, PeerId, Unit, WorkerId};
pub use worker::{Worker, WorkerAction, WorkerConfig, WorkerEvent};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
