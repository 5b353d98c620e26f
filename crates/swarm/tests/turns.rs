//! Single turns of the hub: what it does in answer to one event.

use std::sync::Arc;
use std::time::Duration;

use chaski_swarm::{
    Action, Call, CallId, CallPair, Class, CloseReason, Event, Hedging, HostId, Hub, HubConfig, Joined,
    LayerShape, ModelShape, PeerId, WorkerId,
};
use chaski_wire::{Answer, Body, Control, Dtype, Frame, Have, Hex, Rows};

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
