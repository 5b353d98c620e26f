//! Sums over the experts of a column, made where the products are.
//!
//! A worker that makes several products of a column can answer with one row, their weighted sum. Its weights are
//! relative to the greatest of them ([`relative`]), so that the row has the magnitude of a product, whatever the
//! weights are. The engine weighs it like the product of that greatest weight, and all others as zeros.

use crate::unit::CallPair;

/// Columns that pairs name, ascending.
pub(crate) fn columns(pairs: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut columns: Vec<u16> = pairs.collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Of each column, in ascending order, the index of the pair with the weight of the greatest magnitude.
pub(crate) fn leads(pairs: &[CallPair], weights: &[f32]) -> Vec<usize> {
    let columns = columns(pairs.iter().map(|p| p.column));
    let mut leads = vec![usize::MAX; columns.len()];
    for (i, (pair, weight)) in pairs.iter().zip(weights).enumerate() {
        let lead = &mut leads[columns.binary_search(&pair.column).expect("the column of a pair")];
        if *lead == usize::MAX || weight.abs() > weights[*lead].abs() {
            *lead = i;
        }
    }
    leads
}

/// Weights over the greatest one of their column; all zero if that is zero.
pub(crate) fn relative(pairs: &[CallPair], weights: &[f32]) -> Vec<f32> {
    let columns = columns(pairs.iter().map(|p| p.column));
    let leads = leads(pairs, weights);
    let of_column = |column| weights[leads[columns.binary_search(&column).expect("the column of a pair")]];
    let ratio = |(pair, weight): (&CallPair, &f32)| match of_column(pair.column) {
        0.0 => 0.0,
        greatest => weight / greatest,
    };
    pairs.iter().zip(weights).map(ratio).collect()
}

/// The weighted sums of the rows of `n_column` columns, in f32 in the order of slots. `places` are the column and the
/// slot of each row.
///
/// # Shapes
/// `rows`: `[places.len(), width]`; returns `[n_column, width]`
pub(crate) fn sums(
    places: &[(u16, u16)],
    weights: &[f32],
    rows: &[f32],
    (n_column, width): (usize, usize),
) -> Vec<f32> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_unstable_by_key(|&i| places[i]);
    let mut out = vec![0.0; n_column * width];
    for i in order {
        let to = &mut out[usize::from(places[i].0) * width..][..width];
        let row = &rows[i * width..][..width];
        to.iter_mut().zip(row).for_each(|(to, v)| *to += weights[i] * v);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(expert: u16, column: u16, slot: u16) -> CallPair {
        CallPair { expert, column, slot }
    }

    #[test]
    fn weights_are_relative_to_the_greatest_of_a_column() {
        let pairs = [pair(0, 3, 1), pair(2, 1, 0), pair(2, 3, 0), pair(5, 3, 2), pair(6, 7, 0)];
        let weights = [0.25, 0.5, -0.5, 0.125, 0.0];
        assert_eq!(leads(&pairs, &weights), [1, 2, 4]);
        assert_eq!(relative(&pairs, &weights), [-0.5, 1.0, 1.0, -0.25, 0.0]);
    }

    #[test]
    fn rows_are_summed_in_the_order_of_slots() {
        let places = [(0, 0), (1, 0), (0, 2), (0, 1)];
        let rows = [1e8, 1.0, 2.0, 3.0, 1.0, 10.0, -1e8, 0.5];
        // In the order of the rows 1e8 would swallow the 1.
        assert_eq!(sums(&places, &[1.0; 4], &rows, (3, 2)), [1.0, 11.5, 2.0, 3.0, 0.0, 0.0]);
        assert_eq!(sums(&places, &[0.5, 2.0, 0.0, 0.5], &rows, (2, 2)), [0.0, 0.75, 4.0, 6.0]);
    }
}
