//! The engine's side: streams of tokens whose layers are calls, checked bit by bit when they are answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chaski_swarm::{Call, CallId, CallPair, ModelShape, Random};

use crate::model;

/// A call that is not answered, and the stream that waits for it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) call: Call,
    pub(crate) stream: usize,
    pub(crate) since: Duration,
}

/// A sequence: its tokens go through all layers, one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) token: u64,
    /// Index of the layer.
    pub(crate) layer: usize,
    /// Names and answers, to compare with lies.
    pub(crate) began: Duration,
    pub(crate) is_done: bool,
}

/// Work for a hub.
pub(crate) struct Engine {
    pub(crate) shape: ModelShape,
    pub(crate) streams: Vec<Stream>,
    pub(crate) n_token: u64,
    pub(crate) asked: BTreeMap<CallId, Asked>,
    pub(crate) answered: BTreeSet<CallId>,
    /// Experts of a column, and most columns of a call.
    pub(crate) n_used: u64,
    pub(crate) n_column: u64,
    /// Layers of a token: those of the model, again and again.
    pub(crate) n_layer: usize,
    next: u64,
    seed: u64,
}

/// Verdict about the rows of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The rows of one machine of this class, bit by bit.
    Right(u64),
    Wrong,
}

impl Engine {
    pub(crate) fn new(
        shape: ModelShape,
        n_stream: usize,
        n_token: u64,
        n_used: u64,
        n_column: u64,
        seed: u64,
    ) -> Self {
        let n_layer = shape.layers.len();
        let streams = vec![Stream::default(); n_stream];
        let (asked, answered) = (BTreeMap::new(), BTreeSet::new());
        Self { shape, streams, n_token, asked, answered, n_used, n_column, n_layer, next: 1, seed }
    }

    /// The next call of a stream: a function of stream, token and layer.
    pub(crate) fn ask(&mut self, now: Duration, stream: usize) -> Call {
        let at = &mut self.streams[stream];
        if at.layer == 0 {
            at.began = now;
        }
        let layer = self.shape.layers[at.layer % self.shape.layers.len()];
        let width = self.shape.width as usize;
        let mut random = Random::new(self.seed ^ (stream as u64) << 40 ^ at.token << 8 ^ at.layer as u64);
        let n_column = 1 + random.below(self.n_column);
        let n = n_column as usize * width;
        let x: Vec<f32> = (0..n).map(|_| 2.0 * random.unit() as f32 - 1.0).collect();
        let mut pairs = Vec::new();
        for column in 0..n_column as u16 {
            let mut experts: Vec<u16> = (0..layer.n_expert).collect();
            for slot in 0..self.n_used.min(layer.n_expert.into()) as u16 {
                let expert = experts.swap_remove(random.below(experts.len() as u64) as usize);
                pairs.push(CallPair { expert, column, slot });
            }
        }
        pairs.sort();
        let id = CallId(self.next);
        self.next += 1;
        let step_columns = n_column as u32;
        // Not all of one sign, and now and then none.
        let weight = |_: &CallPair| match random.below(32) {
            0 => 0.0,
            _ => random.unit() as f32 - 0.125,
        };
        let weights = pairs.iter().map(weight).collect();
        let call = Call { id, layer: layer.layer, step_columns, x: Arc::from(x), pairs, weights };
        self.asked.insert(id, Asked { call: call.clone(), stream, since: now });
        call
    }

    /// True for the name of a call that was asked, whatever became of it.
    pub(crate) fn is_named(&self, id: CallId) -> bool {
        (1..self.next).contains(&id.0)
    }

    /// Takes a call out: it is answered or failed, which happens once.
    pub(crate) fn take(&mut self, id: CallId) -> Asked {
        assert!(self.answered.insert(id), "{id:?} is answered twice");
        self.asked.remove(&id).unwrap_or_else(|| panic!("{id:?} was not asked, or was cancelled"))
    }

    /// Compares weighted sums of the rows of columns with those of one machine.
    pub(crate) fn verdict_of_sums(&self, asked: &Asked, rows: &[f32], most: f64) -> Verdict {
        let (width, Call { layer, x, pairs, weights, .. }) = (self.shape.width as usize, &asked.call);
        let right = model::expected(*layer, x, width, pairs, 0);
        let (mut error, mut square) = (0.0, 0.0);
        for column in 0..x.len() / width {
            for i in 0..width {
                let of_column = pairs.iter().enumerate().filter(|(_, p)| usize::from(p.column) == column);
                let (mut found, mut expected) = (0.0, 0.0);
                for (nth, _) in of_column {
                    let weight = f64::from(weights[nth]);
                    found += weight * f64::from(rows[nth * width + i]);
                    expected += weight * f64::from(right[nth * width + i]);
                }
                error += (found - expected).powi(2);
                square += expected.powi(2);
            }
        }
        // Sums of values around 1 may cancel.
        if error <= most * (square + 1e-6) { Verdict::Right(0) } else { Verdict::Wrong }
    }

    /// Compares rows with those of one machine.
    pub(crate) fn verdict(&self, asked: &Asked, rows: &[f32], n_class: u64) -> Verdict {
        let width = self.shape.width as usize;
        let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let found = bits(rows);
        let is_class = |&class: &u64| {
            let right = model::expected(asked.call.layer, &asked.call.x, width, &asked.call.pairs, class);
            bits(&right) == found
        };
        (0..n_class).find(is_class).map_or(Verdict::Wrong, Verdict::Right)
    }

    /// Moves a stream on; true if a token is complete.
    pub(crate) fn advance(&mut self, stream: usize) -> bool {
        let n_layer = self.n_layer;
        let at = &mut self.streams[stream];
        at.layer += 1;
        if at.layer < n_layer {
            return false;
        }
        (at.layer, at.token) = (0, at.token + 1);
        at.is_done = at.token == self.n_token;
        true
    }
}
