//! A fake executor: its KV cache holds tokens, and its logits are a hash of the tokens that the page table leads to.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use chaski_models::ModelError;
use chaski_models::serve::{Executor, Outputs, Start};
use chaski_runtime::RuntimeError;
use chaski_schedule::{Change, Input, Limits, Row, Step, Want};
use chaski_text::{Sampler, Tokenizer, TokenizerSpec};

/// Vocabulary: three control tokens, then letters.
pub(crate) const N_VOCAB: u32 = 20;
/// Ends reasoning; nothing chooses it.
pub(crate) const CLOSE: u32 = 1;
pub(crate) const EOS: u32 = 2;
/// After this token, no logit is finite.
pub(crate) const POISON: u32 = 19;
/// Number of LoRAs.
const N_LORA: usize = 2;

pub(crate) fn tokenizer() -> Arc<Tokenizer> {
    let mut tokens = ["<unk>", "</think>", "</s>"].map(String::from).to_vec();
    tokens.extend(('a'..).map(String::from).take(N_VOCAB as usize - 3));
    let token_types = (0..N_VOCAB).map(|i| if i == 0 { 2 } else { 1 + 2 * i32::from(i < 3) }).collect();
    let spec = TokenizerSpec {
        model: "llama".into(),
        tokens,
        token_types,
        eos: Some(EOS),
        suppress: vec![0, 1, POISON as i32],
        ..TokenizerSpec::default()
    };
    Arc::new(Tokenizer::from_spec(spec).expect("a small vocabulary"))
}

/// A hash of a number.
pub(crate) fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// LoRA scales as the KV cache remembers them.
fn scales_hash(lora: &[f32]) -> u64 {
    lora.iter().fold(7, |h, s| mix(h ^ u64::from(s.to_bits())))
}

/// The default scales.
pub(crate) const SCALES: [f32; N_LORA] = [1.0; N_LORA];

/// The logits after these tokens.
pub(crate) fn logits(seen: &[u32], lora: &[f32]) -> Vec<f32> {
    if seen.iter().any(|t| *t == POISON || *t >= N_VOCAB) {
        return vec![f32::NAN; N_VOCAB as usize];
    }
    let hash = seen.iter().fold(scales_hash(lora), |h, t| mix(h ^ u64::from(*t)));
    // All different, and answers do not end at once.
    let logit = |t: u32| (mix(hash ^ u64::from(t) << 40) % 1000) as f32 / 100.0 + t as f32 / 10_000.0;
    (0..N_VOCAB).map(|t| if t == EOS { logit(t) - 0.6 } else { logit(t) }).collect()
}

/// The final hidden state after these tokens.
pub(crate) fn hidden(seen: &[u32], lora: &[f32]) -> [f32; 2] {
    let hash = seen.iter().fold(scales_hash(lora), |h, t| mix(h ^ u64::from(*t)));
    [(hash % 1000) as f32, seen.len() as f32]
}

/// The mask that allows all tokens.
pub(crate) const ALL: u32 = u32::MAX;

/// The allowed token that the device chooses: the one that the sampler does here, at its draw of this number.
pub(crate) fn choose(sampler: &Sampler, seen: &[u32], lora: &[f32], n_drawn: usize, mask: u32) -> u32 {
    let mut logits = logits(seen, lora);
    let forbidden = (0..N_VOCAB).filter(|t| mask >> t & 1 == 0);
    forbidden.for_each(|t| logits[t as usize] = f32::NEG_INFINITY);
    let mut sampler = sampler.clone();
    sampler.skip_draws(n_drawn);
    seen.iter().for_each(|t| sampler.accept(*t));
    sampler.sample(&logits).unwrap_or(u32::MAX)
}

#[derive(Default)]
struct Slot {
    table: HashMap<usize, usize>,
    sampler: Option<Sampler>,
    lora: Vec<f32>,
    /// The initial tokens, and the number of earlier draws.
    tokens: Vec<u32>,
    n_before: usize,
    n_drawn: usize,
    chosen: Option<u32>,
}

/// Behaviour of a fake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Habits {
    /// Additional steps in flight.
    pub(crate) n_more_under_way: usize,
    /// Maximum number of pending polls before a read is ready.
    pub(crate) n_pending: u64,
    /// Calls (changes, submissions and reads, by number) in which the device is lost, or soon after: between two losses
    /// a step with tokens is read, since two without any end all requests.
    pub(crate) lost_at: Vec<u64>,
    /// The device is lost in every call that runs a sequence with this token.
    pub(crate) deadly: Option<u32>,
    /// Recovery fails.
    pub(crate) cannot_recover: bool,
}

pub(crate) struct Fake {
    limits: Limits,
    habits: Habits,
    /// Each token with a hash of the LoRA scales that it ran with.
    pages: Vec<Vec<Option<(u32, u64)>>>,
    slots: Vec<Slot>,
    outputs: VecDeque<Outputs>,
    /// A step after these that waits for masks.
    waits: Option<Step>,
    n_call: u64,
    is_lost: bool,
    /// Losses by the number of the call.
    n_lost: usize,
    /// A step with tokens has been read since the last of them.
    has_told: bool,
    /// Rows of each submitted step.
    pub(crate) rows: Vec<usize>,
    /// Steps with rows of different LoRA scales.
    pub(crate) n_mixed: usize,
    pub(crate) n_row: Arc<AtomicUsize>,
    /// The last initial token of each request, in order of arrival.
    pub(crate) begun: Vec<u32>,
    pub(crate) n_repeated: usize,
    pub(crate) n_recovered: usize,
    /// Rows that choose under a mask, and those of them whose token was not known when they came.
    pub(crate) n_masked: usize,
    pub(crate) n_masked_ahead: usize,
}

pub(crate) fn limits() -> Limits {
    Limits {
        n_seq: 4,
        n_ctx: 64,
        page: 4,
        n_page: 48,
        max_row: 16,
        max_want: 8,
        max_output: 16,
        max_hidden: 16,
        whole: false,
        max_ahead: 31,
        max_waiting: 100,
        n_snapshot: None,
        n_device: 1,
        max_draft: 4,
    }
}

impl Fake {
    pub(crate) fn new(limits: Limits, habits: Habits) -> Self {
        let mut fake = Fake {
            habits,
            pages: Vec::new(),
            slots: Vec::new(),
            outputs: VecDeque::new(),
            waits: None,
            n_call: 0,
            is_lost: false,
            n_lost: 0,
            has_told: true,
            rows: Vec::new(),
            n_mixed: 0,
            n_row: Arc::default(),
            begun: Vec::new(),
            n_repeated: 0,
            n_recovered: 0,
            n_masked: 0,
            n_masked_ahead: 0,
            limits,
        };
        fake.begin();
        fake
    }

    fn begin(&mut self) {
        self.pages = vec![vec![None; self.limits.page]; self.limits.n_page];
        self.slots = (0..self.limits.n_seq).map(|_| Slot::default()).collect();
        (self.waits, self.is_lost) = (None, false);
        self.outputs.clear();
    }

    /// Counts a call, in which the device may be lost.
    fn call(&mut self) -> Result<(), ModelError> {
        assert!(!self.is_lost, "a device that is lost is not asked before it is made anew");
        self.n_call += 1;
        let n_due = self.habits.lost_at.iter().filter(|at| **at <= self.n_call).count();
        if n_due == self.n_lost || !self.has_told {
            return Ok(());
        }
        self.n_lost += 1;
        self.has_told = false;
        Err(self.lose())
    }

    fn lose(&mut self) -> ModelError {
        self.is_lost = true;
        RuntimeError::DeviceLost { reason: format!("call {}", self.n_call) }.into()
    }

    fn write(&mut self, seq: usize, pos: usize, token: u32, scales: u64) {
        let page = self.slots[seq].table[&(pos / self.limits.page)];
        self.pages[page][pos % self.limits.page] = Some((token, scales));
    }

    /// The tokens up to a position, read through the page table.
    fn seen(&self, seq: usize, pos: usize) -> Vec<u32> {
        let (page, Slot { table, lora, .. }) = (self.limits.page, &self.slots[seq]);
        let cell = |p: usize| self.pages[table[&(p / page)]][p % page].expect("it was written");
        let read = |p| {
            let (token, scales) = cell(p);
            assert_eq!(scales, scales_hash(lora), "it ran with the scales of the request");
            token
        };
        (0..=pos).map(read).collect()
    }

    fn run(&mut self, step: &Step, masks: &[u32]) -> Outputs {
        let mut masks = masks.iter();
        let mut out = Outputs::default();
        for i in 0..step.repeat as usize {
            for row in &step.rows {
                let token = match row.input {
                    Input::Token(token) => token,
                    Input::Embedding(_) => unreachable!("requests with embeddings are refused"),
                    Input::Chosen => self.slots[row.seq as usize].chosen.expect("a token was chosen before"),
                };
                let scales = scales_hash(&self.slots[row.seq as usize].lora);
                self.write(row.seq as usize, row.pos as usize + i, token, scales);
            }
            for row in step.rows.iter().filter(|r| r.want != Want::Nothing) {
                let seen = self.seen(row.seq as usize, row.pos as usize + i);
                let slot = &mut self.slots[row.seq as usize];
                assert!(seen.starts_with(&slot.tokens), "the sequence has the tokens that it began with");
                let lora = &slot.lora;
                match row.want {
                    Want::Nothing => {}
                    Want::Hidden => out.hidden.extend(hidden(&seen, lora)),
                    Want::Logits => {
                        assert!(slot.sampler.is_none());
                        out.logits.extend(logits(&seen, lora));
                    }
                    Want::Choose | Want::ChooseMasked => {
                        assert_eq!(
                            seen.len(),
                            slot.tokens.len() + slot.n_drawn - slot.n_before,
                            "a draw for each"
                        );
                        let sampler = slot.sampler.as_ref().expect("a sampler");
                        let mask = if row.want == Want::Choose { Some(&ALL) } else { masks.next() };
                        let mask = *mask.expect("a mask for every row that has one");
                        let token = choose(sampler, &seen, lora, slot.n_drawn, mask);
                        slot.n_drawn += 1;
                        slot.chosen = Some(token);
                        out.chosen.push(token);
                    }
                }
            }
        }
        assert!(masks.next().is_none(), "as many masks as rows that have one");
        out
    }
}

impl Executor for Fake {
    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn n_vocab(&self) -> usize {
        N_VOCAB as usize
    }

    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError> {
        match asked {
            None => Ok(SCALES.to_vec()),
            Some(scales) if scales.len() == N_LORA => Ok(scales.to_vec()),
            Some(scales) => {
                let (found, limit) = (scales.len() as u64, N_LORA as u64);
                Err(RuntimeError::Limit { what: "LoRA scales", found, limit }.into())
            }
        }
    }

    fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str> {
        let p = sampler.params();
        if p.is_argmax() || p.top_k > 0 { Ok(()) } else { Err("top-k is off") }
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        self.call()?;
        let Start { seq, sampler, tokens, n_drawn, lora } = start;
        self.begun.extend(tokens.last());
        let slot = &mut self.slots[seq as usize];
        (slot.sampler, slot.tokens, slot.lora) = (sampler.cloned(), tokens.to_vec(), lora.to_vec());
        (slot.n_drawn, slot.n_before, slot.chosen) = (n_drawn, n_drawn, None);
        Ok(())
    }

    fn change(&mut self, change: &Change) -> Result<(), ModelError> {
        self.call()?;
        match change {
            Change::Pages { seq, first, pages } => {
                let table = &mut self.slots[*seq as usize].table;
                table.extend((*first as usize..).zip(pages.iter().map(|p| *p as usize)));
            }
            Change::Copy { from, to } => self.pages[*to as usize] = self.pages[*from as usize].clone(),
            other => unreachable!("{other:?} on a device that has nothing but pages"),
        }
        Ok(())
    }

    fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        self.call()?;
        assert!(self.waits.is_none() && self.outputs.len() < self.max_under_way());
        let is_deadly = |t: &u32| self.habits.deadly == Some(*t);
        if step.rows.iter().any(|r| matches!(r.input, Input::Token(t) if is_deadly(&t))) {
            return Err(self.lose());
        }
        self.rows.push(step.rows.len());
        let lora = |row: &Row| &self.slots[row.seq as usize].lora;
        self.n_mixed += usize::from(step.rows.iter().any(|row| lora(row) != lora(&step.rows[0])));
        self.n_row.fetch_add(step.rows.len(), Ordering::Relaxed);
        self.n_repeated += usize::from(step.repeat > 1);
        let masked = step.rows.iter().filter(|r| r.want == Want::ChooseMasked);
        let n_masked = masked.clone().count();
        self.n_masked += n_masked;
        self.n_masked_ahead += masked.filter(|r| r.input == Input::Chosen).count();
        if n_masked > 0 {
            self.waits = Some(step.clone());
            return Ok(());
        }
        let outputs = self.run(step, &[]);
        self.outputs.push_back(outputs);
        Ok(())
    }

    fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError> {
        self.call()?;
        assert!(self.outputs.is_empty(), "masks depend on the tokens of all steps before");
        let step = self.waits.take().expect("a step waits for masks");
        // A word has room for the vocabulary.
        let outputs = self.run(&step, masks);
        self.outputs.push_back(outputs);
        Ok(())
    }

    async fn read(&mut self) -> Result<Outputs, ModelError> {
        self.call()?;
        assert!(!self.outputs.is_empty(), "a step that has its masks");
        for _ in 0..mix(self.n_call) % (self.habits.n_pending + 1) {
            Yield(false).await;
        }
        let outputs = self.outputs.pop_front().expect("a step is under way");
        self.has_told |= !outputs.chosen.is_empty() || !outputs.logits.is_empty();
        Ok(outputs)
    }

    fn forget(&mut self) {
        self.waits = None;
        self.outputs.clear();
    }

    fn rows(&self, _is_alone: bool) -> usize {
        usize::MAX
    }

    /// As on a GPU, nothing follows a step whose rows are read back before it is read.
    fn max_under_way(&self) -> usize {
        let is_read_back = self.outputs.iter().any(|o| !o.logits.is_empty() || !o.hidden.is_empty());
        1 + if is_read_back { 0 } else { self.habits.n_more_under_way }
    }

    async fn recover(&mut self, error: Arc<ModelError>) -> Result<(), Arc<ModelError>> {
        assert!(self.is_lost);
        Yield(false).await;
        if self.habits.cannot_recover {
            return Err(error);
        }
        self.begin();
        self.n_recovered += 1;
        Ok(())
    }
}

/// Pending once.
pub(crate) struct Yield(pub(crate) bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
