//! Clients share the slots by tokens served, whatever they ask for; priorities count within a client alone.

use std::collections::HashMap;

use chaski_schedule::{Budget, Change, Chooser, Event, Limits, Request, RequestId, Scheduler, Want};

use crate::random::Random;

/// A scheduler, and who was served.
struct Trial {
    scheduler: Scheduler,
    /// Clients by request.
    clients: HashMap<RequestId, u64>,
    slots: HashMap<u32, RequestId>,
    /// Tokens of prompts and answers by client.
    served: HashMap<u64, usize>,
    n_waiting: HashMap<u64, usize>,
    ends: Vec<u64>,
    n_id: u64,
}

impl Trial {
    fn new(n_seq: usize, n_page: usize) -> Trial {
        let limits = Limits {
            n_seq,
            n_ctx: 1024,
            page: 16,
            n_page,
            max_row: 64,
            max_want: 8,
            max_output: 8,
            max_hidden: 8,
            whole: false,
            n_device: 1,
            max_ahead: 0,
            max_waiting: 1000,
            n_snapshot: None,
            max_draft: 0,
        };
        Trial {
            scheduler: Scheduler::new(limits).expect("room for a context"),
            clients: HashMap::new(),
            slots: HashMap::new(),
            served: HashMap::new(),
            n_waiting: HashMap::new(),
            ends: Vec::new(),
            n_id: 0,
        }
    }

    /// Submits a request with a prompt of its own; returns its id.
    fn ask(&mut self, client: u64, n_prompt: usize, max_tokens: usize, priority: i32) -> u64 {
        self.n_id += 1;
        let (id, prompt) = (RequestId(self.n_id), vec![self.n_id as u32; n_prompt]);
        let (chooser, embeddings) = (Chooser::Device, Vec::new());
        let request =
            Request { id, prompt, embeddings, max_tokens, chooser, group: 0, salt: 0, priority, client };
        self.scheduler.submit(request).expect("room in the queue");
        self.clients.insert(id, client);
        *self.n_waiting.entry(client).or_default() += 1;
        self.n_id
    }

    /// A step; false if nothing is left.
    fn step(&mut self) -> bool {
        let Some(work) = self.scheduler.next(Budget { rows: 64, prompt: 0, repeat: 1 }) else { return false };
        for change in &work.before {
            if let Change::Start { seq, id, .. } = change {
                self.slots.insert(*seq, *id);
                *self.n_waiting.get_mut(&self.clients[id]).expect("it waited") -= 1;
            }
        }
        for row in &work.step.rows {
            *self.served.entry(self.clients[&self.slots[&row.seq]]).or_default() += 1;
        }
        let n_chosen = work.step.rows.iter().filter(|row| row.want == Want::Choose).count();
        for event in self.scheduler.done(&vec![5; n_chosen]) {
            if let Event::Length { id } = event {
                self.ends.push(id.0);
            }
        }
        true
    }

    /// The order in which all requests end.
    fn ends(mut self) -> Vec<u64> {
        while self.step() {}
        self.ends
    }
}

#[test]
fn clients_take_turns_with_a_single_slot() {
    let mut t = Trial::new(1, 64);
    // One client has six requests before the other has three.
    let a: Vec<u64> = (0..6).map(|_| t.ask(1, 8, 8, 0)).collect();
    let b: Vec<u64> = (0..3).map(|_| t.ask(2, 8, 8, 0)).collect();
    assert_eq!(t.ends(), [a[0], b[0], a[1], b[1], a[2], b[2], a[3], a[4], a[5]]);
}

#[test]
fn slots_that_become_free_at_once_are_shared() {
    let mut t = Trial::new(4, 256);
    for client in [1, 2] {
        (0..8).for_each(|_| _ = t.ask(client, 3 + client as usize, 40, 0));
    }
    t.step();
    assert_eq!([t.n_waiting[&1], t.n_waiting[&2]], [6, 6]);
}

#[test]
fn clients_with_work_are_served_as_many_tokens_whatever_their_lengths() {
    for seed in 0..300 {
        let r = &mut Random::new(seed);
        let n_seq = r.within(1, 5);
        let mut t = Trial::new(n_seq, 64 + r.within(0, 64));
        // Most tokens of a client's prompts and answers: some ask for 20 times as much as others.
        let most: Vec<(usize, usize)> =
            (0..r.within(2, 4)).map(|_| (r.within(1, 100), r.within(1, 200))).collect();
        let largest = most.iter().map(|(prompt, answer)| prompt + answer).max().expect("clients");
        while t.served.values().sum::<usize>() < 30 * n_seq * largest {
            for (client, (prompt, answer)) in most.iter().enumerate() {
                let client = client as u64;
                while t.n_waiting.get(&client).is_none_or(|n| *n <= n_seq) {
                    t.ask(client, r.within(1, *prompt), r.within(1, *answer), r.within(0, 4) as i32 - 2);
                }
            }
            assert!(t.step(), "schedule {seed}");
        }
        assert_eq!(t.scheduler.usage().n_preempted, 0, "tokens that ran twice would count");
        let served = || t.served.values().copied();
        let apart = served().max().unwrap_or(0) - served().min().unwrap_or(0);
        // Nothing is taken from a request that runs, so they can be as far apart as the requests that run.
        assert!(t.served.len() == most.len() && apart <= n_seq * largest, "{seed}: {:?} {most:?}", t.served);
    }
}

#[test]
fn a_pause_neither_saves_up_nor_forgives() {
    // The first client is served alone for a while; the second then begins at the same count, not at 0.
    let mut t = Trial::new(1, 64);
    let a: Vec<u64> = (0..4).map(|_| t.ask(1, 8, 8, 0)).collect();
    while t.ends.len() < 2 {
        t.step();
    }
    let b: Vec<u64> = (0..3).map(|_| t.ask(2, 8, 8, 0)).collect();
    assert_eq!(t.ends()[2..], [a[2], b[0], a[3], b[1], b[2]]);
    // A client that was served much more ends its work while others wait, and comes back: they are first.
    let mut t = Trial::new(1, 64);
    let long = t.ask(1, 8, 100, 0);
    let b: Vec<u64> = (0..4).map(|_| t.ask(2, 8, 8, 0)).collect();
    while t.ends.is_empty() {
        t.step();
    }
    let again = t.ask(1, 8, 8, 0);
    assert_eq!(t.ends(), [vec![long], b, vec![again]].concat());
}

#[test]
fn a_priority_counts_within_its_client() {
    let mut t = Trial::new(1, 64);
    let a: Vec<u64> = [0, -3, 2].into_iter().map(|priority| t.ask(1, 8, 8, priority)).collect();
    let b: Vec<u64> = [-9, 5].into_iter().map(|priority| t.ask(2, 8, 8, priority)).collect();
    // The highest first, negative ones last, and neither delays or hastens the other client.
    assert_eq!(t.ends(), [a[2], b[1], a[0], b[0], a[1]]);
}

#[test]
fn a_priority_preempts_requests_of_its_client_alone() {
    // Two requests fit, three do not once they grow.
    let preempted = |clients: [u64; 3], priorities: [i32; 3]| {
        let mut t = Trial::new(3, 64);
        let ids: Vec<u64> = clients
            .iter()
            .zip(priorities)
            .map(|(client, priority)| t.ask(*client, 300, 300, priority))
            .collect();
        while t.scheduler.usage().n_preempted == 0 {
            assert!(t.step());
        }
        let waits = |id: &&u64| t.scheduler.n_sent(RequestId(**id)).is_none();
        ids.iter().filter(waits).map(|id| id - ids[0]).collect::<Vec<u64>>()
    };
    assert_eq!(preempted([1, 1, 1], [0, 0, 0]), [2]);
    assert_eq!(preempted([1, 1, 1], [-1, 0, 5]), [0]);
    // The youngest gives way, whatever it asks for.
    assert_eq!(preempted([1, 1, 2], [-1, 0, 5]), [2]);
    assert_eq!(preempted([2, 1, 2], [-1, 0, 5]), [0]);
}
