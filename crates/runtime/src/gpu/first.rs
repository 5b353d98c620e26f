//! The first layers of a model on the CPU, before those of devices: on a thread of their own, which takes orders in
//! turn, so that the devices' queues are filled meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use chaski_kernels::step;

use super::lanes::Values;
use crate::cpu::{CpuConfig, CpuModel, FirstLayers};
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{CpuStage, Memory, MemoryItem};
use crate::step::Column;
use crate::tensors::Tensors;

type Order = Box<dyn FnOnce(&mut FirstLayers) + Send>;

/// Tokens of columns that lack one.
pub(super) enum Chosen {
    /// The columns as the device that chose them has them.
    Columns(Receiver<Vec<u8>>),
    /// These, in order.
    Tokens(Receiver<Vec<u32>>),
}

impl Chosen {
    /// Waits for them, and sets the tokens; false if there is no sender, because nobody waits for the step any more.
    fn set(&self, columns: &mut [Column]) -> bool {
        match self {
            Chosen::Columns(told) => told.recv().map(|bytes| take_tokens(columns, &bytes)).is_ok(),
            Chosen::Tokens(told) => told.recv().is_ok_and(|tokens| {
                let lacking = columns.iter_mut().filter(|c| c.token.is_none());
                lacking.zip(tokens).for_each(|(column, token)| column.token = Some(token));
                true
            }),
        }
    }
}

/// The layers, as seen by the model.
pub(super) struct First {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    /// Orders that were not begun are dropped.
    is_over: Arc<AtomicBool>,
    n_byte: u64,
    layout: String,
    has_state: bool,
    /// Bytes of recurrent state of a sequence, and those of a page in all layers.
    session: (u64, u64),
}

impl First {
    /// Loads the layers of a plan, if it has some on the CPU.
    ///
    /// # Errors
    /// As [`CpuModel::load`]; [`RuntimeError::Threads`].
    pub(super) async fn load(
        graph: &Graph,
        stage: Option<&CpuStage>,
        (config, inputs_in_16_bits): (Option<CpuConfig>, bool),
        tensors: &impl Tensors,
        progress: impl FnMut(u64, u64),
    ) -> Result<Option<First>, RuntimeError> {
        let (Some(stage), Some(config)) = (stage, config) else { return Ok(None) };
        let part = (&stage.nodes[..], &stage.gives[..]);
        let loaded = FirstLayers::load(graph, part, config, inputs_in_16_bits, tensors, progress);
        First::start(loaded.await?).map(Some)
    }

    fn start(mut layers: FirstLayers) -> Result<First, RuntimeError> {
        let (orders, receiver) = channel::<Order>();
        let is_over = Arc::new(AtomicBool::new(false));
        let (of_state, of_page) = (layers.session_bytes(0), layers.session_bytes(1));
        let model = layers.model();
        let (n_byte, layout, has_state) = (model.n_byte(), model.session_layout(), model.has_state());
        let run = {
            let is_over = is_over.clone();
            move || {
                for order in receiver {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    order(&mut layers);
                }
            }
        };
        let thread = std::thread::Builder::new().name("layers on the CPU".into()).spawn(run);
        let thread = thread.map_err(|e| RuntimeError::Threads { n: 1, reason: e.to_string() })?;
        let session = (of_state, of_page - of_state);
        Ok(First { orders: Some(orders), thread: Some(thread), is_over, n_byte, layout, has_state, session })
    }

    fn order(&self, order: impl FnOnce(&mut FirstLayers) + Send + 'static) {
        // After the end there is nobody to give an order to.
        let Some(orders) = &self.orders else { return };
        orders.send(Box::new(order)).expect("the thread runs until there are no more orders");
    }

    /// Changes the model after all earlier orders.
    pub(super) fn change(&self, change: impl FnOnce(&mut CpuModel) + Send + 'static) {
        self.order(move |layers| change(layers.model()));
    }

    /// Sets rows that columns of later steps use in place of embeddings.
    pub(super) fn set_rows(&self, rows: Vec<f32>) {
        self.order(move |layers| layers.set_rows(&rows));
    }

    /// A result after all earlier orders, which must not wait for anything.
    fn ask<T: Send + 'static>(&self, of: impl FnOnce(&mut FirstLayers) -> T + Send + 'static) -> T {
        let (sender, receiver) = channel();
        // Nobody waits if the receiver is gone.
        self.order(move |layers| drop(sender.send(of(layers))));
        receiver.recv().expect("the thread answers")
    }

    /// Runs columns; `chosen` has the tokens of those that lack one. The values follow each other, with columns of
    /// `n_word` words.
    pub(super) fn run(&self, mut columns: Vec<Column>, chosen: Option<Chosen>, n_word: Vec<u32>) -> Values {
        let (sender, values) = channel();
        self.order(move |layers| {
            if chosen.is_some_and(|chosen| !chosen.set(&mut columns)) {
                return;
            }
            let made = layers.run(&columns).map(|values| packed(&values, columns.len(), &n_word));
            drop(sender.send(made));
        });
        values
    }

    pub(super) fn has_state(&self) -> bool {
        self.has_state
    }

    /// Memory of weights and cache.
    pub(super) fn memory(&self) -> MemoryItem {
        MemoryItem { what: Memory::ON_CPU, n_buffer: 0, n_byte: self.n_byte }
    }

    /// Layout of a snapshot's bytes.
    pub(super) fn layout(&self) -> &str {
        &self.layout
    }

    /// Bytes of a snapshot of a sequence with `n_page` pages.
    pub(super) fn snapshot_bytes(&self, n_page: u32) -> u64 {
        self.session.0 + u64::from(n_page) * self.session.1
    }

    /// A sequence in these pages.
    pub(super) fn snapshot(&self, seq: u32, pages: &[u32]) -> Vec<u8> {
        let pages = pages.to_vec();
        self.ask(move |layers| layers.save(seq, &pages))
    }

    /// Restores a sequence of `n` tokens to these pages.
    pub(super) fn put_back(&self, seq: u32, pages: &[u32], n: u32, bytes: &[u8]) {
        let (pages, bytes) = (pages.to_vec(), bytes.to_vec());
        self.order(move |layers| layers.put_back(seq, &pages, n, &bytes));
    }

    /// Ends the thread and frees the layers, which take no more orders. Nothing that they wait for may come later.
    pub(super) fn end(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }

    fn stop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.orders = None;
    }
}

impl Drop for First {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Takes the tokens of columns without one from the columns of a step as devices have them.
fn take_tokens(columns: &mut [Column], bytes: &[u8]) {
    for (i, column) in columns.iter_mut().enumerate() {
        let at = 4 * (step::HEADER + step::COLUMN * i);
        let word = bytes[at..at + 4].try_into().expect("a word has four bytes");
        column.token.get_or_insert(u32::from_ne_bytes(word));
    }
}

/// Values of `n_col` columns one after the other, as devices have them.
fn packed(values: &[Vec<f32>], n_col: usize, n_word: &[u32]) -> Vec<u8> {
    let mut out: Vec<f32> = Vec::new();
    for (value, n_word) in values.iter().zip(n_word) {
        let width = value.len() / n_col.max(1);
        for column in value.chunks_exact(width.max(1)) {
            out.extend_from_slice(column);
            out.resize(out.len() + *n_word as usize - width, 0.0);
        }
    }
    bytemuck::cast_slice(&out).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_strides_of_devices() {
        let values = [vec![1.0, 2.0, 3.0, 4.0], vec![5.0, 6.0]];
        let packed = packed(&values, 2, &[3, 1]);
        let found: Vec<f32> = bytemuck::pod_collect_to_vec(&packed);
        assert_eq!(found, [1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 5.0, 6.0]);
    }

    #[test]
    fn columns_get_the_tokens_that_a_device_chose() {
        let mut words = vec![0u32; step::HEADER + 3 * step::COLUMN];
        (0..3).for_each(|i| words[step::HEADER + step::COLUMN * i] = 70 + i as u32);
        let mut columns = [Column::chosen(0, 4), Column::token(1, 9, 2), Column::chosen(2, 0)];
        take_tokens(&mut columns, bytemuck::cast_slice(&words));
        assert_eq!(columns.map(|c| c.token), [Some(70), Some(9), Some(72)]);
    }
}
