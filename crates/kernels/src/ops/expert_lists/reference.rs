//! Pairs sorted by expert, and their tiles.

use crate::route::Route;

/// Words of a route buffer after the first `2 * n_pair`: tiles, sorted pairs, places; `n_col` columns are used.
pub fn expert_lists(route: &Route, ids: &[u32], n_col: u32, words: &mut [u32]) {
    let n = (n_col * route.n_used) as usize;
    let (tiles, pairs, places) =
        (route.tiles_at() as usize, route.pairs_at() as usize, route.places_at() as usize);
    let mut sorted: Vec<u32> = (0..n as u32).collect();
    sorted.sort_by_key(|p| ids[*p as usize]);
    let mut all = Vec::new();
    for expert in 0..route.n_expert {
        let first = sorted.partition_point(|p| ids[*p as usize] < expert) as u32;
        let end = sorted.partition_point(|p| ids[*p as usize] <= expert) as u32;
        let starts = (first..end).step_by(route.tile as usize);
        all.extend(starts.map(|s| [expert, s, end.min(s + route.tile)]));
    }
    all.resize(route.tiles_of(n as u32) as usize, [0; 3]);
    for (word, tile) in words[tiles..].iter_mut().zip(all.iter().flatten()) {
        *word = *tile;
    }
    words[pairs..pairs + n].copy_from_slice(&sorted);
    for (place, pair) in sorted.iter().enumerate() {
        words[places + *pair as usize] = place as u32;
    }
}
