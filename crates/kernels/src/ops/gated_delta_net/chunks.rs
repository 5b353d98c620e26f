//! The gated delta rule over many columns, a chunk at a time, with the state updated in place, for columns of one
//! sequence.

use super::CHUNKS;
use super::columns::DeltaColumns;
use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;

/// Columns per chunk.
const CHUNK: u32 = 32;
const PART: u32 = 2144;

/// The kernels of a call: one processes all chunks in parallel, the other walks over the chunks.
#[derive(Clone, Debug)]
pub struct DeltaChunks {
    /// Writes `parts`; its grid grows along x, one tile per [`DeltaChunks::CHUNK`] columns.
    pub prepare: Dispatch,
    /// Reads `parts` and advances the state.
    pub advance: Dispatch,
}

impl DeltaChunks {
    /// Columns per chunk.
    pub const CHUNK: u32 = CHUNK;

    /// Words of the buffer `parts`.
    pub fn n_word(call: &DeltaColumns) -> u64 {
        let [_, heads, n_col, _] = call.v.ne;
        u64::from(n_col.div_ceil(CHUNK)) * u64::from(heads) * u64::from(PART)
    }

    /// The kernels; `None` if the call is better done column by column.
    ///
    /// q, k and v must be parts of the columns of one buffer, bound as `x`; y is a buffer of columns. All columns must
    /// belong to one sequence.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] if tensors are not f32.
    pub fn of(call: &DeltaColumns, caps: &Caps) -> Result<Option<DeltaChunks>, DispatchError> {
        call.check()?;
        let [s, heads, n_col, _] = call.v.ne;
        let k_heads = call.q.ne[1];
        // Rows of the state that still fit in workgroup memory.
        let n_byte = |rows: u32| 16 * rows * (s / 4 + 1 + 16);
        let fits = |rows: &u32| 8 * rows <= caps.max_threads && n_byte(*rows) <= caps.max_workgroup_bytes;
        let parts = [&call.q, &call.k, &call.v];
        let whole = |n: u32| n % 4 == 0;
        let even = whole(s)
            && parts
                .iter()
                .all(|t| t.stride[0] == 1 && t.stride[1] == s && whole(t.stride[2]) && whole(t.offset))
            && parts.iter().all(|t| t.stride[2] == call.v.stride[2])
            && [call.alpha, call.beta].iter().all(|t| t.stride[0] == 1)
            && (call.y.offset, call.y.stride[0], call.y.stride[1]) == (0, 1, s);
        let rows = [16, 8, 4].into_iter().find(fits).filter(|_| even && heads > 0);
        let (Some(rows), true) = (rows, n_col > 1 && caps.max_threads >= 256) else { return Ok(None) };
        let common = [
            ("S", f64::from(s)),
            ("HEADS", heads.into()),
            ("K_HEADS", k_heads.into()),
            ("NEIGHBOURS", f64::from(u8::from(call.neighbours))),
            ("X_COL", (call.v.stride[2] / 4).into()),
            ("Q_AT", (call.q.offset / 4).into()),
            ("K_AT", (call.k.offset / 4).into()),
        ];
        let of = |part, own: &[(&'static str, f64)], grid, why: String| {
            dispatch(&CHUNKS, &[Value::Word(part)], [&common, own].concat(), grid, why)
        };
        let prepare = of(
            "prepare",
            &[
                ("EPS", call.eps.into()),
                ("G_AT", call.alpha.offset.into()),
                ("G_COL", call.alpha.stride[1].into()),
                ("B_AT", call.beta.offset.into()),
                ("B_COL", call.beta.stride[1].into()),
            ],
            [n_col.div_ceil(CHUNK), heads, 1],
            format!("{CHUNK} columns of a head per workgroup"),
        )?;
        let advance = of(
            "advance",
            &[
                ("V_AT", (call.v.offset / 4).into()),
                ("Y_COL", call.y.stride[2].into()),
                ("N_SEQ", call.n_seq.into()),
                ("R", rows.into()),
                ("WG", (8 * rows).into()),
            ],
            [s.div_ceil(rows), heads, 1],
            format!("{rows} rows of the state per workgroup, {CHUNK} columns at once"),
        )?;
        Ok(Some(DeltaChunks { prepare, advance }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::column_cases;
    use super::*;

    #[test]
    fn rows_that_are_no_fours_go_column_by_column() {
        let chunks = |s| {
            let call = column_cases::call(s, 2, 1, 64, false, true);
            DeltaChunks::of(&call, &Caps::base()).expect("sizes that fit").is_some()
        };
        assert_eq!([128, 64, 36, 33, 4, 1024].map(chunks), [true, true, true, false, true, false]);
    }
}
