//! Routing of columns to experts: one buffer of words that routing writes and products read.

use chaski_graph::Routing;

/// Layout of a route buffer, in words: the experts of all (column, slot) pairs, their weights (f32), and for products
/// of many columns the tiles, the pairs sorted by expert, and the position of each pair in that order (`expert_lists`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// Experts.
    pub n_expert: u32,
    /// Experts per column: the number of slots.
    pub n_used: u32,
    /// Maximum number of columns.
    pub n_col: u32,
    /// Pairs of one expert per tile.
    pub tile: u32,
}

impl Route {
    /// Maximum number of experts.
    pub const MAX_EXPERT: u32 = Routing::MAX_EXPERT;
    /// Words of a tile: expert, first pair in the sorted list, end of its pairs.
    pub const TILE_WORDS: u32 = 3;

    /// Pairs of a column and a slot.
    pub fn n_pair(&self) -> u32 {
        self.n_col * self.n_used
    }

    /// Word of the first weight.
    pub fn weights_at(&self) -> u32 {
        self.n_pair()
    }

    /// Word of the first tile.
    pub fn tiles_at(&self) -> u32 {
        2 * self.n_pair()
    }

    /// Word of the first pair of the sorted list.
    pub fn pairs_at(&self) -> u32 {
        self.tiles_at() + Self::TILE_WORDS * self.n_tile()
    }

    /// Word of the first position in the sorted list, by pair.
    pub fn places_at(&self) -> u32 {
        self.pairs_at() + self.n_pair()
    }

    /// Maximum number of tiles for `n_pair` pairs: full ones, and one partial tile per expert in use.
    pub fn tiles_of(&self, n_pair: u32) -> u32 {
        n_pair / self.tile + self.n_expert.min(n_pair)
    }

    /// Maximum number of tiles.
    pub fn n_tile(&self) -> u32 {
        self.tiles_of(self.n_pair())
    }

    /// Number of tiles of `n_col` columns if slot i uses expert i.
    pub fn tiles_by_slot(&self, n_col: u32) -> u32 {
        n_col.div_ceil(self.tile) * self.n_used
    }

    /// Words of a buffer; `lists` includes tiles, sorted pairs and positions.
    pub fn n_word(&self, lists: bool) -> u32 {
        if lists { self.places_at() + self.n_pair() } else { self.tiles_at() }
    }
}

/// The contiguous range of experts that a matrix holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// The routing.
    pub route: Route,
    /// The first expert of the matrix.
    pub first: u32,
    /// Rows per expert.
    pub n_row: u32,
    /// Row stride between experts, at least `n_row`.
    pub stride: u32,
    /// Slot i uses expert i, as each head has a matrix of its own; there is no routing. Kernels bind the step buffer in
    /// place of a route.
    pub by_slot: bool,
}

impl Experts {
    /// Number of experts in a matrix of `n_row` rows.
    pub fn count(&self, n_row: u32) -> u32 {
        n_row / self.stride.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_suffice_however_columns_choose() {
        for (n_expert, n_used, n_col, tile) in
            [(8, 2, 1, 64), (8, 2, 512, 64), (128, 8, 33, 32), (1024, 10, 300, 16)]
        {
            let r = Route { n_expert, n_used, n_col, tile };
            let n_pair = r.n_pair();
            // Concentrated on few experts, spread over all, or one full tile and single pairs.
            for spread in [1, 2, n_expert / 2, n_expert] {
                let mut count = vec![0u32; n_expert as usize];
                (0..n_pair).for_each(|p| count[(p % spread) as usize] += 1);
                let tiles: u32 = count.iter().map(|c| c.div_ceil(tile)).sum();
                assert!(tiles <= r.tiles_of(n_pair), "{r:?} spread over {spread}: {tiles}");
            }
        }
    }
}
