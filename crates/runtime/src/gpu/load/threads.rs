//! Loading with several threads: each takes the next piece, reads and packs it, and has the device copy it.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use pollster::block_on;

use super::super::device::Gpu;
use super::pieces::{Piece, pieces, place, room};
use super::staging::Staging;
use super::{CHUNK, rows};
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::Groups;
use crate::tensors::Tensors;

/// How much is done at once.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sizes {
    /// Threads at most.
    pub(super) n_thread: usize,
    /// Bytes of a piece; each thread has two staging buffers of this size.
    pub(super) piece: usize,
    /// Bytes per read, which stay in a core's cache until they are packed.
    pub(super) read: usize,
}

impl Sizes {
    /// Those of this machine.
    pub(super) fn here() -> Self {
        let n_core = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Sizes { n_thread: n_core.min(8), piece: 4 << 20, read: CHUNK }
    }
}

/// Work of all threads.
struct Job<T> {
    /// Its weights only.
    graph: Graph,
    groups: Groups,
    buffers: Vec<Vec<Option<wgpu::Buffer>>>,
    tensors: Arc<T>,
    pieces: Vec<Piece>,
    /// The next piece.
    next: AtomicUsize,
    /// Bytes per read.
    read: usize,
    board: Arc<Board>,
}

impl<T: Tensors> Job<T> {
    /// Loads pieces until there are no more, or another thread fails.
    fn run(&self, mut staging: Staging) -> Result<(), RuntimeError> {
        let mut bytes = Vec::new();
        while !self.board.is_over.load(Ordering::Relaxed) {
            let Some(piece) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) else { break };
            let n_byte = self.load(piece, &mut staging, &mut bytes)?;
            self.board.change(|state| state.done += n_byte);
        }
        staging.submit();
        Ok(())
    }

    /// Loads a piece; returns the bytes read.
    fn load(&self, piece: &Piece, staging: &mut Staging, bytes: &mut Vec<u8>) -> Result<u64, RuntimeError> {
        let g = piece.of(&self.groups);
        let shard = &g.shards[piece.shard];
        let (layout, row_bytes) = (g.layout(shard), g.row_bytes());
        let runs = piece.runs(&self.groups);
        let (at, mut view) = staging.take(room(&runs))?;
        let mut put = |to: u64, run: &[u8]| {
            let from = at as usize + place(&runs, to);
            view.slice(from..from + run.len()).copy_from_slice(run);
        };
        let (per, end) = (g.rows_of(self.read), piece.row + piece.n_row);
        for row in (piece.row..end).step_by(per as usize) {
            bytes.resize(per.min(end - row) as usize * row_bytes, 0);
            block_on(rows(&self.graph, g, shard.row0 + row, row_bytes, bytes, &*self.tensors))?;
            match layout.is_of_file(g.format, g.n_col) {
                true => put(layout.start_of(g.format, row.into()), bytes),
                false => layout.pack(g.format, g.n_col, row.into(), bytes, &mut put),
            }
        }
        drop(view);
        let buffer = self.buffers[piece.group][piece.shard].as_ref();
        staging.copy(at, &runs, buffer.expect("pieces are those of shards with a buffer"));
        Ok(u64::from(piece.n_row) * row_bytes as u64)
    }
}

/// Progress of the threads, for the task that waits for them.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
    /// Threads end before their next piece.
    is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Bytes.
    done: u64,
    n_running: usize,
    /// The first.
    error: Option<RuntimeError>,
    waker: Option<Waker>,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.state();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The bytes, once there are others than `known`; `None` after all threads have ended.
    fn poll(&self, known: u64, cx: &mut Context<'_>) -> Poll<Option<u64>> {
        let mut state = self.state();
        if state.done != known {
            return Poll::Ready(Some(state.done));
        }
        if state.n_running == 0 {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The end of a thread, also by a panic.
struct Ends(Arc<Board>);

impl Drop for Ends {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_over.store(true, Ordering::Relaxed);
        }
        self.0.change(|state| state.n_running -= 1);
    }
}

/// Running threads, which end when this is dropped.
#[derive(Default)]
struct Threads {
    board: Arc<Board>,
    all: Vec<JoinHandle<()>>,
}

impl Threads {
    fn start<T: Tensors + Send + Sync + 'static>(
        &mut self,
        job: &Arc<Job<T>>,
        staging: Staging,
    ) -> Result<(), RuntimeError> {
        self.board.state().n_running += 1;
        let (ends, job) = (Ends(self.board.clone()), job.clone());
        let run = move || {
            let _ends = ends;
            if let Err(e) = job.run(staging) {
                job.board.is_over.store(true, Ordering::Relaxed);
                job.board.change(|state| _ = state.error.get_or_insert(e));
            }
        };
        let thread = std::thread::Builder::new().name("weights".into()).spawn(run);
        let failed = |e: std::io::Error| RuntimeError::Threads { n: 1, reason: e.to_string() };
        self.all.push(thread.map_err(failed)?);
        Ok(())
    }

    /// Waits for all threads, and takes their error.
    fn join(mut self) -> Result<(), RuntimeError> {
        let ends: Vec<_> = self.all.drain(..).map(JoinHandle::join).collect();
        for end in ends {
            end.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        self.board.state().error.take().map_or(Ok(()), Err)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.board.is_over.store(true, Ordering::Relaxed);
        for thread in self.all.drain(..) {
            // It has an error or a panic of its own, but nobody waits for it.
            _ = thread.join();
        }
    }
}

/// Fills the buffers of every group on a device; reports the bytes.
pub(super) async fn fill<T: Tensors + Send + Sync + 'static>(
    gpu: &Arc<Gpu>,
    graph: &Graph,
    groups: &Groups,
    tensors: &Arc<T>,
    buffers: &[Vec<Option<wgpu::Buffer>>],
    sizes: Sizes,
    mut progress: impl FnMut(u64),
) -> Result<(), RuntimeError> {
    let pieces = pieces(groups, buffers, sizes.piece);
    let rooms = || pieces.iter().map(|piece| room(&piece.runs(groups)));
    let (total, largest) = (rooms().sum::<u64>(), rooms().max().unwrap_or(0));
    // Small pieces share a buffer.
    let size = largest.max(total.min(sizes.piece as u64));
    let n_thread = total.div_ceil(size.max(1)).min(sizes.n_thread as u64);
    let mut stagings = Vec::new();
    for _ in 0..n_thread {
        stagings.push(Staging::new(gpu, size).await?);
    }
    let mut threads = Threads::default();
    let job = Arc::new(Job {
        graph: Graph { weights: graph.weights.clone(), ..Graph::default() },
        groups: groups.clone(),
        buffers: buffers.to_vec(),
        tensors: tensors.clone(),
        pieces,
        next: AtomicUsize::new(0),
        read: sizes.read,
        board: threads.board.clone(),
    });
    for staging in stagings {
        threads.start(&job, staging)?;
    }
    let mut known = 0;
    while let Some(done) = poll_fn(|cx| threads.board.poll(known, cx)).await {
        known = done;
        progress(done);
    }
    threads.join()
}
