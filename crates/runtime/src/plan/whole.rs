//! The whole plan: segments for prefill, for decode, for logits and for sampling.

use chaski_kernels::ops::adjust::{self, Adjust};
use chaski_kernels::ops::argmax::Argmax;
use chaski_kernels::ops::get_rows::GetRows;
use chaski_kernels::ops::mask::{self, Mask};
use chaski_kernels::ops::mul_mat::MulMat;
use chaski_kernels::ops::mul_mat_vec::FewColumns;
use chaski_kernels::ops::sample::{MAX_TOP_K, Sample};
use chaski_kernels::ops::sample_wide::SampleWide;
use chaski_kernels::ops::take_chosen::{self, TakeChosen};
use chaski_kernels::{Caps, Format, Matrix, step};
use ggml_format::GgmlType;

use super::buffers::buffers;
use super::config::PlanConfig;
use super::cpu::CpuStage;
use super::cuts::Cutter;
use super::error::PlanError;
use super::expand::{Expander, Pool, Rounding, f32s, ld};
use super::fusion::fuse;
use super::group::Groups;
use super::memory::Memory;
use super::planned::{Growth, Segment, Slot};
use super::segments::{DecodePlan, HeadPlan, Hidden, PromptPlan, Segments};
use super::stages::Place;
use super::steps::{Step, Steps};
use crate::graph::{Graph, ValueId};

/// Split of a KV head's keys in attention: (up to this many tokens, workgroups of all KV heads, the same for heads of
/// more than 64 channels).
///
/// A single column has few workgroups, so longer sequences are split; but merging takes longer with more parts, and a
/// further dispatch if the kernel cannot merge itself. Workgroups of large heads have twice the threads. Measured on an
/// H200, which has 132 multiprocessors.
const SPLITS: [(u32, u32, u32); 3] = [(128, 1, 1), (1024, 64, 64), (u32::MAX, 256, 128)];

/// Maximum numbers of columns of the smaller prefill plans, in addition to that for a full chunk.
///
/// The best kernels for a full chunk leave the device idle at the end of a prompt or with a short one: a few columns
/// use teams of threads that read each weight once, some more use smaller tiles and split K. More such plans would save
/// less than compiling their kernels costs.
fn smaller(devices: &[&Caps], config: &PlanConfig) -> Vec<u32> {
    if config.is_deterministic() {
        return Vec::new();
    }
    // Alone kernels are the same for any number of columns.
    let shares = !devices.iter().all(|c| c.alone);
    let has_narrow = devices.iter().any(|c| c.uses_coop());
    // Half as many as the most: for batches of answers only.
    let has_half = has_narrow && config.n_seq > NARROW;
    let few = if has_narrow { MulMat::few(devices[0]) } else { FewColumns::MAX };
    let all = [(few, true), (NARROW, has_narrow), (BATCH / 2, has_half), (BATCH, true), (128, true)];
    all.iter().filter(|(n, has)| *has && shares && *n < config.max_col).map(|(n, _)| *n).collect()
}

/// Columns of the narrowest tiles of cooperative matrices.
const NARROW: u32 = 16;

/// Maximum number of columns with logits, one for each of several answers.
pub(super) const BATCH: u32 = step::MAX_PICK as u32;

/// Builds the plan for a device.
///
/// # Errors
/// [`PlanError`] if a step has no kernel on this device or a buffer is larger than a binding.
pub fn plan(
    graph: &Graph,
    steps: &Steps,
    groups: &mut Groups,
    caps: &Caps,
    config: &PlanConfig,
) -> Result<Segments, PlanError> {
    plan_on(graph, steps, groups, &[caps], config)
}

/// Builds the plan for devices, each of which gets part of the layers; the last has the head, and samples. Groups fit
/// the bindings of all.
///
/// # Errors
/// As [`plan`]; [`PlanError::Cut`] if the graph cannot be cut into that many parts, [`PlanError::Shares`] if
/// [`PlanConfig::shares`] has a wrong length, [`PlanError::NoDevice`] for none.
pub fn plan_on(
    graph: &Graph,
    steps: &Steps,
    groups: &mut Groups,
    devices: &[&Caps],
    config: &PlanConfig,
) -> Result<Segments, PlanError> {
    let caps = *devices.last().ok_or(PlanError::NoDevice)?;
    devices.iter().try_for_each(|caps| check_cache(graph, caps, config))?;
    #[cfg(not(target_arch = "wasm32"))]
    check_columns(graph, config)?;
    let logits = graph.logits.ok_or(PlanError::Missing { what: "logits" })?;
    // Operations after the output product work in place.
    let logits = steps.list.last().map_or(logits, |s| steps.output(graph, s));
    let is_head = |s: &Step| steps.output(graph, s) == logits;
    let head_at = steps.list.iter().position(is_head).ok_or(PlanError::Missing { what: "logits" })?;
    let (body, head) = steps.list.split_at(head_at);
    let n_vocab = graph.width(logits);
    let ld_logits = ld(n_vocab);
    let fit = (caps.max_binding_bytes / 4 / u64::from(ld_logits.max(1))) as u32;
    let all_cols = config.max_col.min(fit).clamp(1, step::MAX_PICK as u32);
    if u64::from(n_vocab) * 4 > caps.max_binding_bytes {
        return Err(PlanError::TooLarge {
            what: "the logits of one token",
            n_byte: u64::from(n_vocab) * 4,
            limit: caps.max_binding_bytes,
            help: "the vocabulary is too large for this device",
        });
    }
    let mut e = Expander {
        graph,
        steps,
        groups,
        caps: devices[0],
        devices,
        config,
        pool: Pool::default(),
        pools: devices.iter().map(|_| Pool::default()).collect(),
        device: 0,
        cuts: Vec::new(),
        n_cpu: 0,
        home: vec![None; graph.widths.len()],
        half: vec![false; graph.widths.len()],
        joined: None,
        rounding: Rounding::default(),
        rounds: None,
        normed: vec![None; graph.widths.len()],
        routes: vec![None; graph.widths.len()],
        out: Segment::new(),
        place: Place::Device(0),
        takes: Vec::new(),
        stages: Vec::new(),
        marks: None,
        crossing_words: 0,
        n_col: 1,
        spread: [1, 1],
        arrived: 1,
        route_words: 0,
        // Refused in browsers, whose pages do not download the code.
        experts: if cfg!(not(target_arch = "wasm32")) && config.away { graph.experts() } else { Vec::new() },
        layer: None,
        logits,
        ld_logits,
        is_picked: false,
    };

    let mut cpu = None;
    // Browsers have one device, and their pages do not download the code.
    if cfg!(not(target_arch = "wasm32")) && (devices.len() > 1 || config.cpu.is_some()) {
        e.cuts = cuts(&mut e, body, head)?;
        if config.cpu.is_some() {
            if config.experts.n_layer > 0 {
                return Err(PlanError::OffloadAfterCpu);
            }
            e.n_cpu = e.cuts.remove(0);
            let all: Vec<&Step> = body.iter().chain(head).collect();
            cpu = Some(CpuStage::of(graph, steps, &all, e.n_cpu));
        }
    }

    let mut s = Segments { cpu, ld_logits, all_cols, n_layer: graph.n_layer, ..Segments::default() };
    for max_col in smaller(devices, config).into_iter().chain([config.max_col]) {
        e.reset();
        let (_, groups, groups_of_large) = SPLITS[SPLITS.len() - 1];
        e.spread = [groups, groups_of_large];
        s.prompt.push(prompt_plan(&mut e, body, head, max_col, all_cols)?);
    }

    let mut covered = 0;
    // Alone kernels are the same for any number of keys.
    let alone = devices.iter().all(|c| c.alone);
    let splits = match (config.is_deterministic(), alone) {
        (true, _) => &[],
        (false, true) => &SPLITS[SPLITS.len() - 1..],
        (false, false) => &SPLITS[..],
    };
    for (max_key, groups, groups_of_large) in splits.iter().copied() {
        if covered < config.n_ctx {
            e.reset();
            e.spread = [groups, groups_of_large];
            let body = e.body(body, head, 1)?;
            s.decode.push(DecodePlan { max_key, body, head: e.head(head, 1)? });
            covered = max_key;
        }
    }

    choosers(&mut e, &mut s, n_vocab)?;

    let n_hidden = head_input(&e, head).map_or(0, |x| graph.width(x));
    s.arrived_words = e.arrived.into();
    s.route_words = e.route_words;
    s.crossing_words = e.crossing_words;
    s.act_words = e.words_of_devices();
    let n_row = if config.rows { graph.input_width() } else { 0 };
    s.rows = (n_row, ld(n_row));
    // Hidden states are read back the same way.
    s.hidden = (n_hidden, ld(n_hidden));
    s.logits_words = u64::from(ld_logits.max(ld(n_hidden))) * u64::from(all_cols);
    let mut most_hidden = config.max_col;
    if graph.is_encoder() {
        // All tokens of a text may be read, and they run together: as many times the columns with logits as that takes.
        most_hidden = config.max_col.next_multiple_of(all_cols);
        s.logits_words = s.logits_words.max(u64::from(ld(n_hidden)) * u64::from(most_hidden));
    }
    s.hidden_cols = (s.logits_words / u64::from(ld(n_hidden).max(1))).min(most_hidden.into()) as u32;
    for (words, caps) in s.act_words.iter().zip(devices) {
        let largest = words.iter().copied().max().unwrap_or(0) * 4;
        if largest > caps.max_binding_bytes {
            return Err(PlanError::TooLarge {
                what: "an activation buffer",
                n_byte: largest,
                limit: caps.max_binding_bytes,
                help: if graph.is_encoder() { "use a smaller context" } else { "use a smaller chunk" },
            });
        }
    }
    s.buffers = buffers(graph, groups, &s, config);
    Ok(s)
}

/// Checks that a deterministic plan has room for attention of each column by itself.
#[cfg(not(target_arch = "wasm32"))]
fn check_columns(graph: &Graph, config: &PlanConfig) -> Result<(), PlanError> {
    let (found, limit) = (config.max_col, PlanConfig::MAX_DETERMINISTIC);
    match config.deterministic && found > limit && !graph.is_encoder() {
        true => Err(PlanError::Deterministic { found, limit }),
        false => Ok(()),
    }
}

/// Memory of a model on devices, before loading: one sum for each, and the part of the CPU, which is not in any.
///
/// # Errors
/// As [`plan_on`].
pub fn memory_need(
    graph: &Graph,
    devices: &[&Caps],
    config: &PlanConfig,
) -> Result<(Vec<Memory>, Option<CpuStage>), PlanError> {
    let steps = fuse(graph, config.rules());
    let mut groups = Groups::of_devices(graph, &steps, devices, &config.experts)?;
    let segments = plan_on(graph, &steps, &mut groups, devices, config)?;
    let of = |device| Memory::of(segments.buffers.iter().filter(|b| b.device == device));
    Ok(((0..devices.len()).map(of).collect(), segments.cpu.clone()))
}

/// Cuts of the body, from a single-device plan of one column, which is discarded.
fn cuts(e: &mut Expander<'_>, body: &[Step], head: &[Step]) -> Result<Vec<usize>, PlanError> {
    e.reset();
    e.marks = Some(Vec::new());
    let whole: Segment = e.body(body, head, 1)?.into_iter().flat_map(|s| s.segment).collect();
    let marks = e.marks.take().unwrap_or_default();
    let head = e.head(head, 1)?;
    e.pool = Pool::default();
    let (body, marks) = (&whole, &marks);
    let cutter = Cutter { graph: e.graph, groups: e.groups, config: e.config, body, head: &head, marks };
    cutter.cuts(e.devices.len() + usize::from(e.config.cpu.is_some()))
}

/// Sampling from rows of logits, at most one per sequence.
fn choosers(e: &mut Expander<'_>, s: &mut Segments, n_vocab: u32) -> Result<(), PlanError> {
    let (caps, choice, ld) = (e.caps, e.config.choice(), s.ld_logits);
    let n_row = s.all_cols.min(e.config.n_seq);
    s.n_choice = n_row;
    let take = TakeChosen { n_col: e.config.max_col, choice };
    let columns = Growth::XTiles(take_chosen::TILE);
    e.push(take.dispatch()?, vec![("step", Slot::Step)], columns, "take_chosen", 0).col(12, 0);
    s.take_chosen = e.take_out();

    let bind = vec![("y", Slot::Logits), ("masks", Slot::Masks)];
    let n_byte = f32s(n_vocab + mask::n_word(n_vocab));
    e.push(Mask { k: n_vocab, ld, n_row }.dispatch()?, bind, Growth::Y, "mask", 0).col(n_byte, 0);
    s.mask = e.take_out();
    s.mask_words = u64::from(mask::n_word(n_vocab) * n_row);

    let bind =
        vec![("y", Slot::Logits), ("adjust", Slot::Adjust), ("step", Slot::Step), ("ring", Slot::Ring)];
    let dispatch = Adjust { k: n_vocab, ld, n_row, choice }.dispatch()?;
    e.push(dispatch, bind, Growth::X, "adjust", 0).col(f32s(adjust::N_WORD as u32), 0);
    s.adjust = e.take_out();

    let argmax = Argmax { k: n_vocab, ld, n_row, choice };
    let parts = e.pool.acquire(2 * u64::from(argmax.n_part() * n_row));
    let bind = vec![("x", Slot::Logits), ("y", Slot::Act(parts))];
    e.push(argmax.chunk(caps)?, bind, Growth::Y, "argmax", 0).col(f32s(n_vocab), 0);
    let bind = vec![("x", Slot::Act(parts)), ("step", Slot::Step), ("ring", Slot::Ring)];
    e.push(argmax.join(caps)?, bind, Growth::X, "argmax", 0).col(2 * f32s(argmax.n_part()), 0);
    s.argmax = e.take_out();
    e.pool.release(parts);

    let sample = Sample::of(n_vocab, ld, n_row, choice, caps);
    let (lists, n_list) = best(e, &sample)?;
    let n_byte = 2 * f32s(MAX_TOP_K * n_list);
    let rest = [("sampler", Slot::Sampler), ("step", Slot::Step), ("ring", Slot::Ring)];
    let bind = [("x", Slot::Act(lists))].into_iter().chain(rest).collect();
    e.push(sample.draw(caps, n_list)?, bind, Growth::X, "sample", 0).col(n_byte, 0);
    e.pool.release(lists);
    s.sample = e.take_out();

    let wide = SampleWide(sample);
    let (lists, n_list) = best(e, &sample)?;
    let sums = e.pool.acquire(wide.sum_words());
    let bind = vec![
        ("x", Slot::Logits),
        ("sampler", Slot::Sampler),
        ("step", Slot::Step),
        ("sums", Slot::Act(sums)),
    ];
    e.push(wide.sum(caps)?, bind, Growth::Y, "sample_wide", 0).col(f32s(n_vocab), 0);
    let inputs = [("x", Slot::Logits), ("lists", Slot::Act(lists)), ("sums", Slot::Act(sums))];
    let bind = inputs.into_iter().chain(rest).collect();
    // It seldom reads the logits.
    e.push(wide.draw(caps, n_list)?, bind, Growth::X, "sample_wide", 0).col(n_byte, 0);
    e.pool.release(lists);
    e.pool.release(sums);
    s.sample_wide = e.take_out();
    Ok(())
}

/// The best candidates of every row: their buffer, and the number of lists that a draw merges.
fn best(e: &mut Expander<'_>, sample: &Sample) -> Result<(usize, u32), PlanError> {
    let words = |n_list: u32| 2 * u64::from(MAX_TOP_K * n_list * sample.n_row);
    let mut n_list = sample.n_part();
    let mut lists = e.pool.acquire(words(n_list));
    let bind = vec![("x", Slot::Logits), ("y", Slot::Act(lists))];
    e.push(sample.chunk(e.caps)?, bind, Growth::Y, "sample", 0).col(f32s(sample.k), 0);
    while n_list > sample.max_draw() {
        let joined = sample.joined(n_list);
        let next = e.pool.acquire(words(joined));
        let bind = vec![("x", Slot::Act(lists)), ("y", Slot::Act(next))];
        let n_byte = 2 * f32s(MAX_TOP_K * (n_list + joined));
        e.push(sample.join(e.caps, n_list)?, bind, Growth::Y, "sample", 0).col(n_byte, 0);
        e.pool.release(lists);
        (lists, n_list) = (next, joined);
    }
    Ok((lists, n_list))
}

/// The plan for up to `max_col` columns.
fn prompt_plan(
    e: &mut Expander<'_>,
    body: &[Step],
    head: &[Step],
    max_col: u32,
    all_cols: u32,
) -> Result<PromptPlan, PlanError> {
    let body = e.body(body, head, max_col)?;
    let max_row = all_cols.min(max_col);
    // One token of a prompt, few answers, many.
    let fewer = [1, MulMat::few(e.caps)].into_iter().filter(|n| *n < max_row && !e.config.is_deterministic());
    let fewer = fewer.filter(|n| *n == 1 || !e.caps.alone).collect::<Vec<_>>();
    let mut heads = Vec::new();
    for n_row in fewer.into_iter().chain([max_row]) {
        heads.push(head_plan(e, head, max_col, n_row)?);
    }
    let hidden = hidden(e, head, max_col)?;
    Ok(PromptPlan { max_col, body, heads, hidden })
}

/// First input of the head: the result of the body.
fn head_input(e: &Expander<'_>, head: &[Step]) -> Option<ValueId> {
    e.steps.inputs(e.graph, head.first()?).first().copied()
}

/// Logits of at most `max_row` of `max_col` columns: the picked ones are gathered to a buffer, which the head reads.
fn head_plan(e: &mut Expander<'_>, head: &[Step], max_col: u32, max_row: u32) -> Result<HeadPlan, PlanError> {
    let x = head_input(e, head).ok_or(PlanError::Missing { what: "a head" })?;
    let x_home = e.home[x.0].expect("the body made the head's input");
    let width = e.graph.width(x);
    e.n_col = max_row;
    let picked = e.tmp(width);
    let f32_format = Format::of(GgmlType::F32).expect("plain values are a format");
    let table = Matrix { format: f32_format, n_row: max_col, n_col: width };
    let ids = e.config.choice().picks;
    let pick = GetRows { table, row0: 0, ids, id_stride: 1, ldy: ld(width), n_col: max_row };
    let bind = vec![("w", Slot::Act(x_home)), ("ids", Slot::Step), ("y", Slot::Act(picked))];
    let columns = e.many(Growth::Y);
    e.push(pick.dispatch(e.caps)?, bind, columns, "pick", 0).col(2 * f32s(width), 0);
    let pick = e.take_out();
    // Rounding of products depends on the number of their columns.
    let mut half = e.half_of(head, max_row);
    half[x.0] = false;
    let half = std::mem::replace(&mut e.half, half);
    // A gathered column has nothing behind it.
    let normed = e.normed[x.0].take();
    (e.home[x.0], e.is_picked) = (Some(picked), true);
    let head = e.head(head, max_row)?;
    (e.home[x.0], e.is_picked, e.half, e.normed[x.0]) = (Some(x_home), false, half, normed);
    e.pool.release(picked);
    Ok(HeadPlan { max_row, pick, head })
}

/// The norm that the head fuses, for every column; without one the body's result is the head's input.
fn hidden(e: &mut Expander<'_>, head: &[Step], max_col: u32) -> Result<Hidden, PlanError> {
    let first = head.first().ok_or(PlanError::Missing { what: "a head" })?;
    let x = head_input(e, head).ok_or(PlanError::Missing { what: "a head" })?;
    e.n_col = max_col;
    if let Some(norm) = first.norm() {
        // Products may want it rounded, embeddings do not.
        e.half[norm.out.0] = false;
    }
    let (input, _) = e.fed(x, first.norm())?;
    let Slot::Act(act) = input.slot else { return Err(PlanError::Missing { what: "a result of the body" }) };
    // Nothing runs after it.
    if let Some(b) = first.norm().and_then(|n| e.home[n.out.0].take()) {
        e.pool.release(b);
    }
    Ok(Hidden { segment: e.take_out(), act })
}

/// Checks that the state and cache of every layer can be bound; kernels count a cache's cells in 32 bits.
fn check_cache(graph: &Graph, caps: &Caps, config: &PlanConfig) -> Result<(), PlanError> {
    for layer in &graph.states {
        let n_byte = layer.n_byte() * u64::from(config.n_seq);
        if n_byte > caps.max_binding_bytes {
            return Err(PlanError::TooLarge {
                what: "the recurrent state of a layer",
                n_byte,
                limit: caps.max_binding_bytes,
                help: "use fewer sequences",
            });
        }
    }
    for layer in &graph.kv {
        let pages = u64::from(config.pages_in(layer));
        let n_cell = pages.saturating_mul(u64::from(config.page) * u64::from(layer.n_kv));
        let countable = u32::try_from(n_cell).is_ok();
        // That many cells have at least a block of 18 bytes each.
        let n_byte = if countable { config.kv_layout(layer).n_byte() } else { n_cell.saturating_mul(18) };
        if n_byte > caps.max_binding_bytes || !countable {
            return Err(PlanError::TooLarge {
                what: "the KV cache of a layer",
                n_byte,
                limit: caps.max_binding_bytes,
                help: "use a smaller context or a smaller type for the KV cache",
            });
        }
    }
    Ok(())
}
