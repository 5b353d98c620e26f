//! Pieces of weights, which threads take one after another, and their places in a buffer.

use chaski_kernels::{DeviceLayout, Format};

use crate::plan::{Group, Groups};

/// Whole row steps of a shard.
#[derive(Copy, Clone, Debug)]
pub(super) struct Piece {
    pub(super) group: usize,
    pub(super) shard: usize,
    /// First row of the shard.
    pub(super) row: u32,
    pub(super) n_row: u32,
}

impl Piece {
    /// The group.
    pub(super) fn of<'a>(&self, groups: &'a Groups) -> &'a Group {
        &groups.groups[self.group]
    }

    /// Its contiguous parts in the buffer of the shard: one for each plane, and the format's table with the first rows.
    pub(super) fn runs(&self, groups: &Groups) -> Vec<Run> {
        let g = self.of(groups);
        runs(&g.layout(&g.shards[self.shard]), g.format, self.row.into(), self.n_row.into())
    }
}

/// A contiguous part of a piece.
#[derive(Copy, Clone, Debug)]
pub(super) struct Run {
    /// First byte, counted from the start of the piece.
    pub(super) from: u64,
    /// First byte in the buffer.
    pub(super) to: u64,
    /// Bytes, a multiple of 4.
    pub(super) n_byte: u64,
}

fn runs(layout: &DeviceLayout, format: &Format, row: u64, n_row: u64) -> Vec<Run> {
    let per_row = u64::from(layout.blocks_per_row);
    let plane = |(n_byte, start): (u64, &u64)| (start + row * per_row * n_byte, n_row * per_row * n_byte);
    let planes = format.planes.iter().map(|p| p.n_byte as u64).zip(&layout.plane_start).map(plane);
    let table = (row == 0).then_some((layout.table_start, size_of_val(format.table()) as u64));
    let mut from = 0;
    let run = |(to, n_byte): (u64, u64)| {
        let run = Run { from, to, n_byte: n_byte.next_multiple_of(4) };
        from += run.n_byte;
        run
    };
    planes.chain(table).filter(|(_, n_byte)| *n_byte > 0).map(run).collect()
}

/// Bytes of these runs.
pub(super) fn room(runs: &[Run]) -> u64 {
    runs.last().map_or(0, |last| last.from + last.n_byte)
}

/// Place in the piece of what lies at this byte of the buffer.
pub(super) fn place(runs: &[Run], at: u64) -> usize {
    let run = runs.iter().find(|run| (run.to..run.to + run.n_byte).contains(&at));
    let run = run.expect("rows of a piece are packed into its runs");
    (run.from + at - run.to) as usize
}

/// All shards with a buffer here, in pieces of about this many bytes; none of offloaded experts.
pub(super) fn pieces(groups: &Groups, buffers: &[Vec<Option<wgpu::Buffer>>], n_byte: usize) -> Vec<Piece> {
    let mut all = Vec::new();
    for (group, (g, buffers)) in
        groups.groups.iter().zip(buffers).enumerate().filter(|(_, (g, _))| !g.streamed)
    {
        let per = g.rows_of(n_byte);
        for (shard, (s, _)) in g.shards.iter().zip(buffers).enumerate().filter(|(_, (_, b))| b.is_some()) {
            let piece = |row: u32| Piece { group, shard, row, n_row: per.min(s.n_row - row) };
            all.extend((0..s.n_row).step_by(per as usize).map(piece));
        }
    }
    all
}
