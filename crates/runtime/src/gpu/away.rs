//! Experts of a model on a device that are computed elsewhere.
//!
//! Their layers are offloaded, so the route is read back before their products. With it comes the input, which is sent;
//! the dispatches run on with the experts that are here, and skip the others, until the slots are summed. There the
//! rows from elsewhere are written into the slots.

use std::collections::BTreeSet;

use half::slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _};

use super::ready::ReadyStage;
use super::running::Run;
use crate::error::RuntimeError;
use crate::experts::{ExpertCall, ExpertError, ExpertFuture, Experts, Home, Pair};
use crate::plan::{ExpertInput, ExpertSlots, OffloadedExperts, WEIGHTS};

/// Rows under way.
pub(super) struct Waiting {
    future: ExpertFuture,
    /// Their rows in the slots, in the order of the pairs.
    at: Vec<u32>,
}

/// The input of a layer of experts, as read back.
pub(super) struct Inputs {
    /// The expert of every pair of a column and a slot.
    pub(super) ids: Vec<u32>,
    /// Bits of the weights of these pairs.
    pub(super) weights: Vec<u32>,
    /// The words of the columns.
    pub(super) x: Vec<u32>,
}

impl Inputs {
    /// Columns in f32.
    fn columns(&self, input: &ExpertInput, columns: &[u16]) -> Vec<f32> {
        let (width, n_word) = (input.width as usize, input.words() as usize);
        let mut x = vec![0.0; columns.len() * width];
        let mut halves = vec![0u16; 2 * n_word];
        for (to, column) in x.chunks_exact_mut(width.max(1)).zip(columns) {
            let words = &self.x[usize::from(*column) * n_word..][..n_word];
            if !input.f16 {
                to.iter_mut().zip(words).for_each(|(to, word)| *to = f32::from_bits(*word));
                continue;
            }
            for (two, word) in halves.as_chunks_mut::<2>().0.iter_mut().zip(words) {
                *two = [*word as u16, (word >> 16) as u16];
            }
            halves[..width].reinterpret_cast::<half::f16>().convert_to_f32_slice(to);
        }
        x
    }
}

/// Asks for the homes of the wanted experts of a layer, and sends the pairs of those that are away. Returns these
/// experts, ascending.
///
/// # Errors
/// [`RuntimeError::WrongResult`] for a route with unknown experts; [`ExpertError::Size`].
pub(super) fn depart(
    experts: &mut dyn Experts,
    (offloaded, input): (&OffloadedExperts, &ExpertInput),
    step_columns: u32,
    wanted: &[u32],
    inputs: &Inputs,
) -> Result<(Vec<u32>, Option<Waiting>), RuntimeError> {
    let route = &offloaded.route;
    if let Some(at) = inputs.ids.iter().position(|e| *e >= route.n_expert) {
        return Err(RuntimeError::WrongResult { what: "the routing of experts", at });
    }
    let asked: Vec<u16> = wanted.iter().map(|e| *e as u16).collect();
    let homes = experts.homes(input.layer, &asked);
    if homes.len() != asked.len() {
        let (found, expected) = (homes.len() as u64, asked.len() as u64);
        return Err(ExpertError::Size { layer: input.layer, what: "homes", found, expected }.into());
    }
    let is_away = |(_, home): &(&u32, &Home)| **home == Home::Away;
    let away: Vec<u32> = wanted.iter().zip(&homes).filter(is_away).map(|(e, _)| *e).collect();
    if away.is_empty() {
        return Ok((away, None));
    }
    // As the device sorts them.
    let mut order: Vec<usize> = (0..inputs.ids.len()).collect();
    if offloaded.many {
        order.sort_by_key(|i| inputs.ids[*i]);
    }
    let mut sent: Vec<(Pair, u32)> = Vec::new();
    for (place, i) in (0u32..).zip(order) {
        let (expert, used) = (inputs.ids[i], route.n_used as usize);
        if away.binary_search(&expert).is_ok() {
            let (column, slot) = ((i / used) as u16, (i % used) as u16);
            sent.push((Pair { expert: expert as u16, column, slot }, place));
        }
    }
    sent.sort_unstable();
    let weight = |p: &Pair| {
        let at = usize::from(p.column) * route.n_used as usize + usize::from(p.slot);
        inputs.weights.get(at).map(|bits| f32::from_bits(*bits))
    };
    let weights = if WEIGHTS > 0 { sent.iter().filter_map(|(p, _)| weight(p)).collect() } else { Vec::new() };
    let columns: Vec<u16> =
        sent.iter().map(|(p, _)| p.column).collect::<BTreeSet<u16>>().into_iter().collect();
    let x = inputs.columns(input, &columns);
    let nth = |column| columns.binary_search(&column).expect("a column of the pairs") as u16;
    let (pairs, at) = sent.into_iter().map(|(p, at)| (Pair { column: nth(p.column), ..p }, at)).unzip();
    let call = ExpertCall { layer: input.layer, width: input.n_out, step_columns, x, pairs, weights };
    Ok((away, Some(Waiting { future: experts.call(call), at })))
}

impl Run<'_> {
    /// Waits for the rows of a layer, and writes them into its slots, which are summed next.
    pub(super) async fn arrive(
        &mut self,
        stage: &ReadyStage,
        slots: &ExpertSlots,
        waiting: Waiting,
    ) -> Result<(), RuntimeError> {
        // Recorded dispatches may still use the buffer of the slots.
        self.send(self.from..stage.range.start);
        let Waiting { future, at } = waiting;
        let rows = future.await?;
        let (width, ld) = (slots.width as usize, slots.ld as usize);
        let (found, expected) = (rows.len() as u64, (at.len() * width) as u64);
        if found != expected {
            let (layer, what) = (slots.layer, "values from elsewhere");
            return Err(ExpertError::Size { layer, what, found, expected }.into());
        }
        let recorder = self.devices.recorder(stage.place.device());
        let mut rows = rows.as_slice();
        for run in at.chunk_by(|a, b| a + 1 == *b) {
            let (these, rest) = rows.split_at(run.len() * width);
            rows = rest;
            let first = 4 * u64::from(run[0]) * ld as u64;
            let buffer = &recorder.buffers.acts[slots.act];
            let write = |words: &[f32]| {
                recorder.gpu.queue.write_buffer(buffer, first, bytemuck::cast_slice(words));
            };
            if ld == width {
                write(these);
                continue;
            }
            let mut words = vec![0.0f32; run.len() * ld];
            for (to, row) in words.chunks_exact_mut(ld).zip(these.chunks_exact(width)) {
                to[..width].copy_from_slice(row);
            }
            write(&words);
        }
        Ok(())
    }
}
