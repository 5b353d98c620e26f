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
        self.on(Event::Call(Call { id: CallId(1), layer: 0, step_columns: 1, x: Arc::new([2.0]), pairs }))
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
