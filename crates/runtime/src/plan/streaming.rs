//! CPU offload of experts: layers, and expert slots on the device.
//!
//! A matrix of offloaded experts has a slot for some of them. To kernels it is a matrix of as many experts as there are
//! slots: once the CPU knows the experts of the columns, it fills slots, and rewrites the route from experts to slots.

use chaski_graph::Routing;
use chaski_kernels::Route;

use super::error::PlanError;
use crate::graph::{Graph, Op, ValueId};

/// Weights of a pair that are read back: browsers are no hubs, and no others need them.
pub(crate) const WEIGHTS: u32 = if cfg!(target_arch = "wasm32") { 0 } else { 1 };

/// Offload options.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Streaming {
    /// Number of layers with offloaded experts: the first MoE layers; more than the model has means all.
    pub n_layer: u32,
    /// Expert slots on the device per such layer; 0: twice as many as a token uses, or a quarter of all if that is
    /// more.
    pub n_slot: u32,
}

impl Streaming {
    /// Slots for the experts of a layer.
    ///
    /// # Errors
    /// [`PlanError::ExpertSlots`] for fewer than a token uses, or more than there are experts.
    pub fn slots(&self, routing: &Routing) -> Result<u32, PlanError> {
        let Routing { n_expert, n_used, .. } = *routing;
        match self.n_slot {
            0 => Ok((2 * n_used).max(n_expert / 4).min(n_expert)),
            n if (n_used..=n_expert).contains(&n) => Ok(n),
            found => Err(PlanError::ExpertSlots { found, least: n_used, most: n_expert }),
        }
    }

    /// Routes of offloaded experts, and the number of slots of each.
    ///
    /// # Errors
    /// [`PlanError::NoExperts`] if there are no experts; as [`Self::slots`].
    pub(super) fn routes(&self, graph: &Graph) -> Result<Vec<(ValueId, u32)>, PlanError> {
        let all = graph.nodes.iter().filter_map(|n| match &n.op {
            Op::TopkMoe { routing, .. } => Some((n.out, routing)),
            _ => None,
        });
        let first: Result<Vec<_>, PlanError> =
            all.take(self.n_layer as usize).map(|(y, routing)| Ok((y, self.slots(routing)?))).collect();
        match first? {
            none if none.is_empty() && self.n_layer > 0 => Err(PlanError::NoExperts),
            first => Ok(first),
        }
    }
}

/// Offloaded experts of products, which need slots. The stage's input is the route.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OffloadedExperts {
    /// The group with their slots.
    pub group: usize,
    /// Layout of the route.
    pub route: Route,
    /// Columns are sorted by expert, and the tiles name the experts; otherwise the route has one column's experts.
    pub many: bool,
    /// The input, if the experts may be computed elsewhere.
    pub input: Option<ExpertInput>,
}

/// The input of a layer of experts that may be computed elsewhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ExpertInput {
    /// The layer ([`ExpertLayer::layer`](crate::graph::ExpertLayer::layer)).
    pub layer: u16,
    /// Its activation buffer.
    pub act: usize,
    /// Values per column.
    pub width: u32,
    /// Column stride, in values.
    pub ld: u32,
    /// Values are f16, two per word.
    pub f16: bool,
    /// Values per row of the result.
    pub n_out: u32,
}

impl ExpertInput {
    /// Words per column.
    pub fn words(&self) -> u32 {
        if self.f16 { self.ld / 2 } else { self.ld }
    }
}

/// The slots of a layer of experts that may be computed elsewhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ExpertSlots {
    /// The layer ([`ExpertLayer::layer`](crate::graph::ExpertLayer::layer)).
    pub layer: u16,
    /// Their activation buffer: rows in the order of slots for one column, otherwise of the pairs sorted by expert.
    pub act: usize,
    /// Values per row.
    pub width: u32,
    /// Row stride, in values.
    pub ld: u32,
}

impl OffloadedExperts {
    /// Words in which the route of `n_col` columns names experts: first, and number.
    pub fn words(&self, n_col: u32) -> (u32, u32) {
        let r = &self.route;
        match self.many {
            true => (r.tiles_at(), Route::TILE_WORDS * r.tiles_of(n_col * r.n_used)),
            false => (0, r.n_used),
        }
    }

    /// Words that are read back for `n_col` columns: those that name experts, then, if experts may be computed
    /// elsewhere, the experts of all pairs, their weights and the input.
    pub fn words_read(&self, n_col: u32) -> u32 {
        let more = |input: ExpertInput| n_col * ((1 + WEIGHTS) * self.route.n_used + input.words());
        let more = self.input.map_or(0, more);
        self.words(n_col).1 + more
    }

    /// The distinct experts in these words, ascending.
    pub fn wanted(&self, words: &[u32]) -> Vec<u32> {
        let mut all: Vec<u32> = match self.many {
            true => tiles(words).filter(|t| t[1] < t[2]).map(|t| t[0]).collect(),
            false => words.to_vec(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The same words with slots in place of experts; tiles of experts without slot are empty.
    pub fn placed(&self, words: &[u32], place: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
        match self.many {
            true => tiles(words)
                .flat_map(|[expert, first, end]| match place(expert).filter(|_| first < end) {
                    Some(place) => [place, first, end],
                    None => [0; 3],
                })
                .collect(),
            false => words.iter().map(|expert| place(*expert).unwrap_or(u32::MAX)).collect(),
        }
    }
}

/// Tiles of a route: expert, first pair, end of its pairs.
fn tiles(words: &[u32]) -> impl Iterator<Item = [u32; 3]> {
    words.chunks_exact(Route::TILE_WORDS as usize).map(|t| [t[0], t[1], t[2]])
}

#[cfg(test)]
mod tests {
    use chaski_graph::Gate;

    use super::*;

    fn routing(n_expert: u32, n_used: u32) -> Routing {
        let gate = Gate::Softmax;
        Routing { gate, n_expert, n_used, n_group: 1, n_group_used: 1, norm: None, scale: 1.0 }
    }

    #[test]
    fn there_are_places_for_what_a_token_uses_and_for_no_more_than_all() {
        let slots =
            |n_slot, n_expert, n_used| Streaming { n_layer: 1, n_slot }.slots(&routing(n_expert, n_used));
        assert_eq!(slots(0, 128, 8).expect("a default"), 32);
        assert_eq!(slots(0, 32, 4).expect("a default"), 8);
        assert_eq!(slots(0, 2, 2).expect("a default"), 2);
        assert_eq!(slots(8, 128, 8).expect("as many as are used"), 8);
        assert_eq!(slots(128, 128, 8).expect("all"), 128);
        for wrong in [7, 129] {
            let e = slots(wrong, 128, 8).expect_err("out of range");
            assert!(
                matches!(e, PlanError::ExpertSlots { found, least: 8, most: 128 } if found == wrong),
                "{e}"
            );
        }
    }

    #[test]
    fn words_of_a_route_get_places_for_experts() {
        let route = Route { n_expert: 8, n_used: 2, n_col: 1, tile: 32 };
        let one = OffloadedExperts { group: 0, route, many: false, input: None };
        assert_eq!(one.words(1), (0, 2));
        assert_eq!(one.wanted(&[5, 3]), [3, 5]);
        assert_eq!(one.placed(&[5, 3], |e| Some(e - 3)), [2, 0]);

        let many = OffloadedExperts { many: true, route: Route { n_col: 40, ..route }, ..one };
        assert_eq!(many.words(40), (160, 3 * (80 / 32 + 8)));
        // Expert 7 has two tiles; the last is empty, as is that of expert 0 once it has no slot.
        let words = [0, 0, 2, 7, 2, 34, 7, 34, 36, 0, 0, 0];
        assert_eq!(many.wanted(&words), [0, 7]);
        assert_eq!(many.placed(&words, |e| (e == 7).then_some(1)), [0, 0, 0, 1, 2, 34, 1, 34, 36, 0, 0, 0]);
    }
}
