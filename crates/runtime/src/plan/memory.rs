//! Buffers as data: their identity, size and use, and the memory that they add up to.

use super::planned::Slot;

/// Maximum number of readbacks of chosen tokens in flight.
pub const N_READBACK: usize = 4;

/// Maximum number of values in flight from one device to the next.
pub const N_CROSSING: usize = 2;

/// Identity of a buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum BufferSlot {
    /// A buffer that dispatches bind; never [`Slot::Keys`] or [`Slot::Values`], which are parts of [`Slot::Kv`].
    Bound(Slot),
    /// Scratch for copies of pages: one page of the largest layer.
    PageCopy,
    /// The recurrent state of a layer in a snapshot, of
    /// [`PlanConfig::n_snapshot`](crate::plan::PlanConfig::n_snapshot).
    StateCopy {
        /// Index of the snapshot.
        copy: usize,
        /// Layer of recurrent state.
        layer: usize,
    },
    /// The window of a layer in a snapshot.
    WindowCopy {
        /// Index of the snapshot.
        copy: usize,
        /// Layer of the KV cache.
        layer: usize,
    },
    /// Readback of chosen tokens, one of [`N_READBACK`].
    RingReadback(usize),
    /// Readback of logits or hidden states.
    LogitsReadback,
    /// Readback of the experts that tokens use, if experts are offloaded.
    RouteReadback,
    /// Readback of values that cross to the next device, one of [`N_CROSSING`].
    CrossingReadback(usize),
}

/// How a buffer is used.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BufferUsage {
    /// Read by kernels, written only during loading.
    Constant,
    /// Read and written by kernels, and by copies.
    Storage,
    /// Mapped by the CPU for reading.
    Readback,
}

/// A buffer that a plan needs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// The device.
    pub device: usize,
    /// Its identity.
    pub slot: BufferSlot,
    /// The kind of memory that it counts as.
    pub what: &'static str,
    /// Bytes, a multiple of 16.
    pub n_byte: u64,
    /// How it is used.
    pub usage: BufferUsage,
}

/// Memory by purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryItem {
    /// Purpose.
    pub what: &'static str,
    /// Buffers.
    pub n_buffer: usize,
    /// Bytes.
    pub n_byte: u64,
}

/// Device memory of a model, to the byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All kinds of buffers.
    pub items: Vec<MemoryItem>,
}

impl Memory {
    /// The kind of memory that weights and KV cache on the CPU count as.
    pub const ON_CPU: &str = "weights and KV cache (CPU)";

    /// The sum of a list of buffers, by kind in the order of the list.
    pub fn of<'a>(buffers: impl IntoIterator<Item = &'a BufferSpec>) -> Memory {
        let mut items: Vec<MemoryItem> = Vec::new();
        for b in buffers {
            match items.iter_mut().find(|i| i.what == b.what) {
                Some(item) => {
                    item.n_buffer += 1;
                    item.n_byte += b.n_byte;
                }
                None => items.push(MemoryItem { what: b.what, n_buffer: 1, n_byte: b.n_byte }),
            }
        }
        Memory { items }
    }

    /// The sum over devices, by kind.
    pub fn sum<'a>(devices: impl IntoIterator<Item = &'a Memory>) -> Memory {
        let mut items: Vec<MemoryItem> = Vec::new();
        for item in devices.into_iter().flat_map(|memory| &memory.items) {
            match items.iter_mut().find(|i| i.what == item.what) {
                Some(sum) => {
                    sum.n_buffer += item.n_buffer;
                    sum.n_byte += item.n_byte;
                }
                None => items.push(item.clone()),
            }
        }
        Memory { items }
    }

    /// Bytes in all.
    pub fn n_byte(&self) -> u64 {
        self.items.iter().map(|i| i.n_byte).sum()
    }
}
