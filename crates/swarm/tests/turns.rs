//! Single turns of the hub: what it does in answer to one event.

use std::sync::Arc;
use std::time::Duration;

use chaski_swarm::{
    Action, Call, CallId, CallPair, Class, CloseReason, Event, Hedging, HostId, Hub, HubConfig, Joined,
    LayerShape, ModelShape, PeerId, Worker, WorkerAction, WorkerConfig, WorkerEvent, WorkerId,
};
use chaski_wire::{
    Answer, Assign, Body, Control, Dtype, Fail, FailCode, Frame, Have, Hex, Limits, Pair, Rows, Run, Task,
};

/// Two units of one expert each, rows of one value.
fn config() -> HubConfig {
    let layers = vec![LayerShape { layer: 0, n_expert: 2, expert_bytes: 1 }];
    HubConfig { check: 0.0, ..HubConfig::new(ModelShape { layers, width: 1, block: 1 }, 5) }
}

struct Table {
    hub: Hub,
    now: Duration,
}

impl Table {
    fn new(config: HubConfig) -> Self {
        Self { hub: Hub::new(config), now: Duration::ZERO }
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        self.now += Duration::from_micros(10);
        let mut actions = Vec::new();
        self.hub.on(self.now, event, &mut actions);
        actions
    }

    /// A worker that holds some experts.
    fn join(&mut self, id: u64, experts: &[u16]) {
        let worker =
            Joined { worker: WorkerId(id), host: HostId(id), class: Class(0), memory: 10, is_even: false };
        self.on(Event::Joined { peer: PeerId(id), worker });
        for &expert in experts {
            let units = vec![chaski_wire::Unit::Experts { layer: 0, experts: vec![expert] }];
            let have = Have { epoch: 0, units, canary: Hex([0; 32]) };
            self.on(Event::Frame {
                peer: PeerId(id),
                frame: Frame::plain(Body::Control(Control::Have(have))),
            });
        }
    }

    /// A call of one column.
    fn call(&mut self, experts: &[u16]) -> Vec<Action> {
        let pair = |(slot, &expert): (usize, &u16)| CallPair { expert, column: 0, slot: slot as u16 };
        let pairs = experts.iter().enumerate().map(pair).collect();
        self.on(Event::Call(Call {
            id: CallId(1),
            layer: 0,
            step_columns: 1,
            x: Arc::new([2.0]),
            pairs,
            weights: Vec::new(),
        }))
    }

    fn answer(&mut self, (peer, task): &(PeerId, Frame), value: f32) -> Vec<Action> {
        let rows = Rows::encode(1, &[value], Dtype::F32).expect("a finite row");
        let answer = Answer { rows, queue: 0, queued: 0, running: 1 };
        let frame = Frame { body: Body::Result { answer, sum: false }, ..task.clone() };
        self.on(Event::Frame { peer: *peer, frame })
    }
}

/// Tasks among actions.
fn tasks(actions: &[Action]) -> Vec<(PeerId, Frame)> {
    let task = |action: &Action| match action {
        Action::Send { peer, frame } if matches!(frame.body, Body::Task(_)) => Some((*peer, frame.clone())),
        _ => None,
    };
    actions.iter().filter_map(task).collect()
}

fn rows(actions: &[Action]) -> Option<Vec<f32>> {
    actions.iter().find_map(|a| if let Action::Complete { rows, .. } = a { Some(rows.clone()) } else { None })
}

#[test]
fn the_first_answer_cancels_the_other_task() {
    let mut table = Table::new(HubConfig { hedging: Hedging::Always, ..config() });
    table.join(1, &[0]);
    table.join(2, &[0]);
    let sent = tasks(&table.call(&[0]));
    assert_eq!(sent.len(), 2, "a task and its hedge");
    let actions = table.answer(&sent[1], 7.0);
    assert_eq!(rows(&actions), Some(vec![7.0]));
    let (peer, frame) = &sent[0];
    let cancel = Action::Send { peer: *peer, frame: Frame::plain(Body::Cancel(vec![frame.task])) };
    assert!(actions.contains(&cancel), "{actions:?}");
    assert_eq!(rows(&table.answer(&sent[0], 7.0)), None, "a late answer is dropped");
}

#[test]
fn a_closed_socket_sends_its_tasks_again_in_the_same_turn() {
    let mut table = Table::new(config());
    table.join(1, &[0, 1]);
    table.join(2, &[0, 1]);
    let sent = tasks(&table.call(&[0]));
    assert_eq!(sent.len(), 1);
    let again = tasks(&table.on(Event::Closed { peer: sent[0].0 }));
    assert_eq!(again.len(), 1);
    assert_ne!(again[0].0, sent[0].0);
    assert!(again[0].1.task > sent[0].1.task, "ids grow");
    assert_eq!(rows(&table.answer(&again[0], 3.0)), Some(vec![3.0]));
}

#[test]
fn the_third_wrong_frame_closes_a_connection() {
    let mut table = Table::new(config());
    table.join(1, &[0]);
    let peer = PeerId(1);
    let wrong = || Event::Frame { peer, frame: Frame { task: 99, ..Frame::plain(Body::Cancel(vec![1])) } };
    let is_close = |a: &Action| *a == Action::Close { peer, reason: CloseReason::Malformed };
    let is_fail = |a: &Action| matches!(a, Action::Send { frame, .. } if matches!(frame.body, Body::Fail(_)));
    for n in 1..=3 {
        let actions = table.on(wrong());
        assert!(actions.iter().any(is_fail), "{actions:?}");
        assert_eq!(actions.iter().any(is_close), n == 3, "after {n} frames");
    }
    assert!(table.on(wrong()).is_empty(), "a closed connection is forgotten");
}

#[test]
fn a_worker_without_a_plan_for_so_many_columns_stays() {
    let peer = PeerId(1);
    for (code, is_strike) in [(FailCode::COLUMNS, false), (FailCode::LATE, false), (FailCode::INTERNAL, true)]
    {
        let mut table = Table::new(config());
        table.join(1, &[0]);
        let frame = Frame { task: 99, ..Frame::plain(Body::Fail(Fail::new(code, 0, ""))) };
        let fail = || Event::Frame { peer, frame: frame.clone() };
        let is_close = |a: &Action| *a == Action::Close { peer, reason: CloseReason::Malformed };
        let is_closed = (0..3).any(|_| table.on(fail()).iter().any(is_close));
        assert_eq!(is_closed, is_strike, "{code:?}");
    }
}

#[test]
fn parts_that_a_liar_made_for_an_open_call_are_made_again() {
    let mut table = Table::new(HubConfig { local: Some(Class(0)), check: 1.0, replicas: 1, ..config() });
    table.join(1, &[0]);
    table.join(2, &[1]);
    let mut sent = tasks(&table.call(&[0, 1]));
    sent.sort_by_key(|(peer, _)| *peer);
    let checked = table.answer(&sent[0], -1.0);
    let [Action::Compute { task, .. }, ..] = checked[..] else {
        panic!("the hub checks the answer: {checked:?}")
    };
    let caught = table.on(Event::Computed { task, rows: Some(vec![5.0]) });
    assert!(caught.contains(&Action::Tainted { worker: WorkerId(1), since: None }), "{caught:?}");
    assert!(
        caught.contains(&Action::Close { peer: PeerId(1), reason: CloseReason::Quarantined }),
        "{caught:?}"
    );
    let task =
        caught.iter().find_map(|a| if let Action::Compute { task, .. } = a { Some(*task) } else { None });
    let made =
        table.on(Event::Computed { task: task.expect("the part is made again"), rows: Some(vec![5.0]) });
    assert_eq!(rows(&made), None);
    assert_eq!(rows(&table.answer(&sent[1], 6.0)), Some(vec![5.0, 6.0]));
    let back = Joined { worker: WorkerId(1), host: HostId(1), class: Class(0), memory: 10, is_even: false };
    let refused = table.on(Event::Joined { peer: PeerId(9), worker: back });
    assert!(
        refused.contains(&Action::Close { peer: PeerId(9), reason: CloseReason::Quarantined }),
        "{refused:?}"
    );
}

#[test]
fn a_unit_without_holder_is_an_error_after_30_seconds() {
    let mut table = Table::new(config());
    table.join(1, &[1]);
    assert!(tasks(&table.call(&[0])).is_empty());
    table.now = Duration::from_secs(29);
    assert!(!table.on(Event::Timer).iter().any(|a| matches!(a, Action::Fail { .. })));
    table.now = Duration::from_secs(31);
    let actions = table.on(Event::Timer);
    let error = actions
        .iter()
        .find_map(|a| if let Action::Fail { error, .. } = a { Some(error.to_string()) } else { None });
    assert!(error.is_some_and(|e| e.starts_with("layer 0: no worker holds expert 0, for 3")), "{actions:?}");
}

/// A call of `n` columns for one expert; the task that follows.
fn prompt(table: &mut Table, id: u64, n: u16) -> (PeerId, Frame) {
    let pairs = (0..n).map(|column| CallPair { expert: 0, column, slot: 0 }).collect();
    let x: Vec<f32> = (0..n).map(|i| f32::from(i) + 1.0).collect();
    let call =
        Call { id: CallId(id), layer: 0, step_columns: n.into(), x: x.into(), pairs, weights: Vec::new() };
    let mut sent = tasks(&table.on(Event::Call(call)));
    assert_eq!(sent.len(), 1, "one worker holds the expert");
    sent.swap_remove(0)
}

/// The answer to a task with these values, decoded before the hub takes it.
fn decoded(
    table: &mut Table,
    (peer, frame): &(PeerId, Frame),
    values: Vec<f32>,
    us: [u32; 2],
) -> Vec<Action> {
    let rows = Rows::encode(1, &values, Dtype::F32).expect("finite rows");
    let answer = Answer { rows, queue: 0, queued: us[0], running: us[1] };
    let name = (frame.task, frame.epoch, frame.layer);
    table.on(Event::Answer { peer: *peer, name, sum: false, answer, values })
}

#[test]
fn some_pairs_of_a_large_part_are_made_again() {
    let mut table = Table::new(HubConfig { local: Some(Class(0)), check: 1.0, replicas: 1, ..config() });
    table.join(1, &[0]);
    let right = |n: u16| (0..n).map(|i| 3.0 * f32::from(i)).collect::<Vec<f32>>();
    let task = prompt(&mut table, 1, 40);
    let actions = decoded(&mut table, &task, right(40), [0, 1]);
    assert_eq!(rows(&actions), Some(right(40)));
    let check = |actions: &[Action]| {
        actions.iter().find_map(|a| match a {
            Action::Compute { task, pairs, is_check: true, .. } => Some((*task, pairs.clone())),
            _ => None,
        })
    };
    let (id, pairs) = check(&actions).expect("the first answer is checked");
    assert_eq!(pairs.len(), 8);
    assert!(pairs.windows(2).all(|two| two[0].column + 1 == two[1].column));
    let made = pairs.iter().map(|p| 3.0 * f32::from(p.column)).collect();
    let actions = table.on(Event::Computed { task: id, rows: Some(made) });
    assert!(!actions.iter().any(|a| matches!(a, Action::Tainted { .. })), "they are the same: {actions:?}");
    let task = prompt(&mut table, 2, 40);
    let (id, pairs) = check(&decoded(&mut table, &task, right(40), [0, 1])).expect("all are checked");
    let made = pairs.iter().map(|p| 3.5 + f32::from(p.column)).collect();
    let caught = table.on(Event::Computed { task: id, rows: Some(made) });
    assert!(caught.contains(&Action::Tainted { worker: WorkerId(1), since: Some(CallId(1)) }), "{caught:?}");
}

#[test]
fn calls_know_where_their_time_went() {
    let mut table = Table::new(config());
    table.join(1, &[0]);
    let task = prompt(&mut table, 1, 3);
    table.now += Duration::from_micros(490);
    decoded(&mut table, &task, vec![1.0; 3], [30, 200]);
    let [one, several] = table.hub.status().times;
    assert_eq!((one.n_call, several.n_call, several.n_answer), (0, 1, 1));
    let us = |time: Duration| time.as_micros();
    assert_eq!([several.before, several.queued, several.running, several.frames].map(us), [0, 30, 200, 270]);
    assert_eq!(us(several.whole()), 500);
    assert_eq!((several.n_byte, us(several.work)), (3 * 8, 200));
}

/// Six experts in units of two, rows of two values.
fn summing() -> HubConfig {
    let layers = vec![LayerShape { layer: 0, n_expert: 6, expert_bytes: 1 }];
    let shape = ModelShape { layers, width: 2, block: 2 };
    HubConfig { check: 0.0, exact: false, sums: true, ..HubConfig::new(shape, 5) }
}

/// A worker that holds some units of two experts.
fn join_units(table: &mut Table, id: u64, units: &[u16]) {
    table.join(id, &[]);
    for &unit in units {
        let units = vec![chaski_wire::Unit::Experts { layer: 0, experts: vec![2 * unit, 2 * unit + 1] }];
        let have = Have { epoch: 0, units, canary: Hex([0; 32]) };
        let frame = Frame::plain(Body::Control(Control::Have(have)));
        table.on(Event::Frame { peer: PeerId(id), frame });
    }
}

/// A call of two columns: experts 0, 2 and 4 with weights 0.5, 0.25 and 0.25, and experts 1 and 2 with -0.75 and 0.5.
fn summed_call(table: &mut Table) -> Vec<Action> {
    let pair = |expert, column, slot| CallPair { expert, column, slot };
    let pairs = vec![pair(0, 0, 0), pair(1, 1, 0), pair(2, 0, 1), pair(2, 1, 1), pair(4, 0, 2)];
    let weights = vec![0.5, -0.75, 0.25, 0.5, 0.25];
    let x = Arc::new([1.0, 2.0, 3.0, 4.0]);
    table.on(Event::Call(Call { id: CallId(1), layer: 0, step_columns: 2, x, pairs, weights }))
}

/// The answer with these values to a task of sums.
fn sum_answer(table: &mut Table, (peer, task): &(PeerId, Frame), values: &[f32]) -> Vec<Action> {
    let rows = Rows::encode(2, values, Dtype::F32).expect("finite rows");
    let answer = Answer { rows, queue: 0, queued: 0, running: 1 };
    let frame = Frame { body: Body::Result { answer, sum: true }, ..task.clone() };
    table.on(Event::Frame { peer: *peer, frame })
}

fn task_of(frame: &Frame) -> &Task {
    let Body::Task(task) = &frame.body else { panic!("{frame:?} is no task") };
    task
}

#[test]
fn a_sum_is_one_row_a_column_in_place_of_the_greatest_weight() {
    let mut table = Table::new(summing());
    join_units(&mut table, 1, &[0, 1, 2]);
    let actions = summed_call(&mut table);
    let sent = tasks(&actions);
    assert_eq!(sent.len(), 1, "one task for all units");
    let task = task_of(&sent[0].1);
    assert_eq!((task.rows.n_row(), task.n_answer(), task.pairs.len()), (2, 2, 5));
    let [third, half] = [0.5 / -0.75, 0.25 / 0.5];
    assert_eq!(task.weights, Some(vec![1.0, 1.0, half, third, half]));
    let wrong = table.answer(&sent[0], 1.0);
    assert!(rows(&wrong).is_none() && tasks(&wrong).is_empty(), "an answer without the flag: {wrong:?}");
    table.now += Duration::from_secs(1);
    let again = tasks(&table.on(Event::Timer));
    let actions = sum_answer(&mut table, &again[0], &[10.0, 20.0, 30.0, 40.0]);
    // Experts 0 and 1 have the greatest weights.
    let expected = [10.0, 20.0, 30.0, 40.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(rows(&actions), Some(expected.to_vec()));
    assert_eq!(table.hub.stats().n_sum, 3);
}

#[test]
fn units_that_nobody_holds_together_any_more_are_split() {
    let mut table = Table::new(HubConfig { local: Some(Class(0)), ..summing() });
    join_units(&mut table, 1, &[0, 1, 2]);
    join_units(&mut table, 2, &[1]);
    let actions = summed_call(&mut table);
    // Unit 1 has two holders, so it is apart: a hedge needs a worker with all units of a task.
    let sent = tasks(&actions);
    let pairs: Vec<usize> = sent.iter().map(|(_, frame)| task_of(frame).pairs.len()).collect();
    assert_eq!(pairs.iter().sum::<usize>(), 5, "{sent:?}");
    // Units 0 and 2 are alone at worker 1: without it the hub makes them, each by itself.
    let actions = table.on(Event::Closed { peer: PeerId(1) });
    let here: Vec<(u64, Vec<CallPair>)> = actions
        .iter()
        .filter_map(|a| match a {
            Action::Compute { task, pairs, .. } => Some((*task, pairs.clone())),
            _ => None,
        })
        .collect();
    let n_here: usize = here.iter().map(|(_, pairs)| pairs.len()).sum();
    assert_eq!(n_here, 3, "{actions:?}");
    let mut left: Vec<_> = sent.into_iter().filter(|(peer, _)| *peer == PeerId(2)).collect();
    left.extend(tasks(&actions));
    assert_eq!(left.len(), 1, "worker 2 has unit 1");
    assert_eq!(task_of(&left[0].1).n_answer(), 2);
    let mut last = sum_answer(&mut table, &left[0], &[5.0, 6.0, 7.0, 8.0]);
    for (task, pairs) in here {
        // The product of expert e and column c is 10 e + c.
        let value = |p: &CallPair| [10.0 * f32::from(p.expert) + f32::from(p.column); 2];
        let made = pairs.iter().flat_map(value).collect();
        last = table.on(Event::Computed { task, rows: Some(made) });
    }
    let expected = [0.0, 0.0, 11.0, 11.0, 5.0, 6.0, 7.0, 8.0, 40.0, 40.0];
    assert_eq!(rows(&last), Some(expected.to_vec()));
}

#[test]
fn sums_are_checked_by_the_hub_and_a_wrong_one_is_found() {
    for (is_right, factor) in [(true, 1.000_01), (false, 1.01)] {
        let mut table = Table::new(HubConfig { local: Some(Class(0)), check: 1.0, replicas: 1, ..summing() });
        join_units(&mut table, 1, &[0, 1, 2]);
        let sent = tasks(&summed_call(&mut table));
        // Products of 1 for every pair: the sums of relative weights.
        let sums = [1.0 + 0.5 + 0.5, 1.0 + 0.5 / -0.75].map(|v: f32| v * factor);
        let actions = sum_answer(&mut table, &sent[0], &[sums[0], sums[0], sums[1], sums[1]]);
        let check = actions.iter().find_map(|a| match a {
            Action::Compute { task, pairs, is_check: true, .. } => Some((*task, pairs.len())),
            _ => None,
        });
        let (task, n_pair) = check.unwrap_or_else(|| panic!("the hub checks: {actions:?}"));
        let judged = table.on(Event::Computed { task, rows: Some(vec![1.0; 2 * n_pair]) });
        let is_caught = judged.iter().any(|a| matches!(a, Action::Tainted { .. }));
        assert_eq!(is_caught, !is_right, "factor {factor}: {judged:?}");
    }
}

#[test]
fn a_worker_sums_in_the_order_of_slots() {
    let shape = summing().shape;
    let mut worker = Worker::new(WorkerConfig { shape, memory: 10, slots: None, n_queue: 4, seed: 1 });
    let mut on = |event| {
        let mut actions = Vec::new();
        worker.on(Duration::ZERO, event, &mut actions);
        actions
    };
    on(WorkerEvent::Connected);
    let units = vec![chaski_wire::Unit::Experts { layer: 0, experts: vec![0, 1] }];
    let assign = Assign { epoch: 1, more: false, units, files: Vec::new(), tensors: Vec::new() };
    let actions = on(WorkerEvent::Frame(Frame::plain(Body::Control(Control::Assign(assign)))));
    let Some(WorkerAction::Load(unit)) = actions.first() else { panic!("{actions:?}") };
    on(WorkerEvent::Loaded { unit: *unit, canary: Some(Hex([0; 32])) });
    let task = Task {
        runs: vec![Run { expert: 0, n: 2 }, Run { expert: 1, n: 1 }],
        pairs: [(0, 1), (1, 0), (0, 0)].map(|(column, slot)| Pair { column, slot }).to_vec(),
        weights: Some(vec![0.5, 1.0, 1.0]),
        rows: Rows::encode(2, &[1.0, 2.0, 3.0, 4.0], Dtype::F16).expect("finite rows"),
        answer: Dtype::F16,
        budget: 0,
        step_columns: 2,
    };
    let frame = Frame { task: 7, epoch: 1, layer: 0, body: Body::Task(task) };
    let actions = on(WorkerEvent::Frame(frame));
    assert!(matches!(actions[..], [WorkerAction::Compute { task: 7, .. }]), "{actions:?}");
    let rows = Some(vec![2.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let actions = on(WorkerEvent::Computed { task: 7, rows });
    let [WorkerAction::Send(Frame { body: Body::Result { answer, sum: true }, .. })] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(answer.rows.to_f32(), [8.0, 10.0, 5.0, 6.0]);
    assert_eq!(answer.rows.dtype(), Dtype::F16);
}

#[test]
fn a_layer_of_a_token_with_sums_takes_4_d_and_204_bytes() {
    const WIDTH: usize = 512;
    let layers = vec![LayerShape { layer: 0, n_expert: 32, expert_bytes: 0 }];
    let shape = ModelShape { layers, width: WIDTH as u32, block: 8 };
    let f16 = Dtype::F16;
    let mut table = Table::new(HubConfig { shape, input: f16, output: f16, ..summing() });
    table.join(1, &[]);
    let experts = |block: u16| (8 * block..8 * block + 8).collect();
    let units =
        (0..4).map(|block| chaski_wire::Unit::Experts { layer: 0, experts: experts(block) }).collect();
    let have = Body::Control(Control::Have(Have { epoch: 0, units, canary: Hex([0; 32]) }));
    table.on(Event::Frame { peer: PeerId(1), frame: Frame::plain(have) });
    // Two experts of each unit.
    let pair = |slot: u16| CallPair { expert: 4 * slot + slot % 4, column: 0, slot };
    let (pairs, weights) = ((0..8).map(pair).collect(), vec![0.125; 8]);
    let x = vec![1.0; WIDTH].into();
    let call = Call { id: CallId(1), layer: 0, step_columns: 1, x, pairs, weights };
    let sent = tasks(&table.on(Event::Call(call)));
    let [(_, task)] = &sent[..] else { panic!("one worker has all units: {sent:?}") };
    let rows = Rows::encode(WIDTH as u32, &[0.5; WIDTH], task_of(task).answer).expect("finite rows");
    let answer = Answer { rows, queue: 0, queued: 0, running: 1 };
    let result = Frame { body: Body::Result { answer, sum: true }, ..task.clone() };
    let bytes = |frame: &Frame| {
        let parts = frame.encode(&Limits::default(), true).expect("a frame that is allowed");
        parts.iter().map(Vec::len).sum::<usize>()
    };
    assert_eq!(bytes(task) + bytes(&result), 4 * WIDTH + 204);
    let done = table.on(Event::Frame { peer: PeerId(1), frame: result });
    assert_eq!(rows_of(&done, WIDTH)[0], vec![0.5; WIDTH]);
}

/// Rows of a call that is complete.
fn rows_of(actions: &[Action], width: usize) -> Vec<Vec<f32>> {
    rows(actions).expect("the call is complete").chunks_exact(width).map(<[f32]>::to_vec).collect()
}
