//! Which experts every column uses, as kernels see it: one buffer of words that routing writes and products read.

use chaski_graph::Routing;

/// Where things stand in a buffer of routes, in words: the experts of all (column, slot) pairs, their weights (f32), and
/// for products of many columns the tiles, the pairs sorted by expert,
/// and where each pair stands among these (`expert_lists`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// Experts.
    pub n_expert: u32,
    /// Experts that a column uses: its slots.
    pub n_used: u32,
    /// Columns at most.
    pub n_col: u32,
    /// Pairs of one expert that a workgroup multiplies at once.
    pub tile: u32,
}

impl Route {
    /// Experts that can be told apart.
    pub const MAX_EXPERT: u32 = Routing::MAX_EXPERT;
    /// Words of a tile: expert, first pair in the sorted list, the one past its last.
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

    /// Word of the first place in the sorted list, by pair.
    pub fn places_at(&self) -> u32 {
        self.pairs_at() + self.n_pair()
    }

    /// Tiles that there can be for `n_pair` pairs: whole ones, and one more for each expert that has any.
    pub fn tiles_of(&self, n_pair: u32) -> u32 {
        n_pair / self.tile + self.n_expert.min(n_pair)
    }

    /// Tiles that there can be at most.
    pub fn n_tile(&self) -> u32 {
        self.tiles_of(self.n_pair())
    }

    /// Tiles of `n_col` columns where every slot has the expert of its number.
    pub fn tiles_by_slot(&self, n_col: u32) -> u32 {
        n_col.div_ceil(self.tile) * self.n_used
    }

    /// Words of a buffer; `lists` with tiles, sorted pairs and their places.
    pub fn n_word(&self, lists: bool) -> u32 {
        if lists { self.places_at() + self.n_pair() } else { self.tiles_at() }
    }
}

/// The part of the experts that a matrix holds, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// Which experts columns use.
    pub route: Route,
    /// The first expert of the matrix.
    pub first: u32,
    /// Rows of each.
    pub n_row: u32,
    /// Rows from one to the next, at least as many.
    pub stride: u32,
    /// Every slot has the expert of its own number, as every head has a matrix of its own: nothing is routed. In place of
    /// a route kernels bind the step buffer.
    pub by_slot: bool,
}

impl Experts {
    /// Experts in a matrix of so many rows.
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
            // All to few experts, or spread over all, or one full tile and the rest alone.
            for spread in [1, 2, n_expert / 2, n_expert] {
                let mut count = vec![0u32; n_expert as usize];
                (0..n_pair).for_each(|p| count[(p % spread) as usize] += 1);
                let tiles: u32 = count.iter().map(|c| c.div_ceil(tile)).sum();
                assert!(tiles <= r.tiles_of(n_pair), "{r:?} spread over {spread}: {tiles}");
            }
        }
    }
}
