//! Sorting with the standard library.

/// The indices that sort a row, stable.
pub fn argsort(row: &[f64], descending: bool) -> Vec<u32> {
    let mut out: Vec<u32> = (0..row.len() as u32).collect();
    out.sort_by(|a, b| {
        let (a, b) = (row[*a as usize], row[*b as usize]);
        let order = a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal);
        if descending { order.reverse() } else { order }
    });
    out
}
