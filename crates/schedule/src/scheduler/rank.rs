//! The order of service: between clients by tokens served or by age, within a client by priority, then by age.

use std::cmp::Reverse;

use super::Scheduler;
use super::running::{Running, Waiting};
use super::shares::expected;
use crate::request::Request;

/// A client with a waiting request.
struct Client {
    id: u64,
    /// Tokens served, with those that its running requests will soon have.
    served: u64,
    /// Age of its oldest waiting request.
    order: u64,
}

/// The order of a client's requests.
fn within(request: &Request, order: u64) -> (Reverse<i32>, u64) {
    (Reverse(request.priority), order)
}

/// Items in ascending order of a key, equal ones in their own. There are few; the standard library's sort would be
/// 3 kB of each web page.
pub(super) fn ascending<T, K: Ord>(items: impl Iterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut out = Vec::new();
    for item in items {
        let place = key(&item);
        out.insert(out.partition_point(|other| key(other) <= place), item);
    }
    out
}

impl Scheduler {
    /// The next request for a free slot. One that has begun already waits for pages alone. Then comes the client with
    /// the fewest tokens served, and of its requests the one of the highest priority, then the oldest.
    pub(super) fn first_waiting(&self) -> Option<usize> {
        let can = |begun: bool| {
            let fits = move |w: &&Waiting| !w.waits_for_choice && (w.has_begun || !begun);
            self.waiting.iter().filter(fits)
        };
        let any_begun = can(true).next().is_some();
        let client = self.next_client(can(any_begun));
        let is_next = |w: &&Waiting| client.is_none_or(|client| w.request.client == client);
        let first = can(any_begun).filter(is_next).min_by_key(|w| within(&w.request, w.order))?;
        self.waiting.iter().position(|w| w.request.id == first.request.id)
    }

    /// The client that is served next, of those of waiting requests; `None` if there is but one, as in browsers, whose
    /// pages do not download the code.
    fn next_client<'a>(&'a self, waiting: impl Iterator<Item = &'a Waiting>) -> Option<u64> {
        if cfg!(target_arch = "wasm32") {
            return None;
        }
        let mut clients: Vec<Client> = Vec::new();
        for w in waiting {
            let id = w.request.client;
            match clients.iter_mut().find(|client| client.id == id) {
                Some(client) => client.order = client.order.min(w.order),
                None => clients.push(Client { id, served: self.served(id), order: w.order }),
            }
        }
        clients.iter().min_by_key(|client| (client.served, client.order)).map(|client| client.id)
    }

    /// Tokens served to a client, with those that its running requests will soon have.
    fn served(&self, client: u64) -> u64 {
        let of_client = self.slots.iter().flatten().filter(|r| r.request.client == client);
        let soon = |r: &Running| {
            let n_answer = r.request.max_tokens.saturating_sub(r.n_chosen());
            expected(r.tokens.len().saturating_sub(r.n_charged), n_answer)
        };
        self.shares.served(client) + of_client.map(soon).sum::<u64>()
    }

    /// Running sequences, the most important first. A client's turns, which are the ages of its requests, go to its
    /// requests by priority: so a priority changes nothing for other clients.
    pub(super) fn by_rank(&self) -> Vec<usize> {
        let running = || (0..self.slots.len()).filter_map(|seq| Some((seq, self.slots[seq].as_ref()?)));
        let mut seqs: Vec<(usize, &Running)> =
            ascending(running(), |(_, r)| (r.request.client, within(&r.request, r.order)));
        // Browsers have one client.
        if !cfg!(target_arch = "wasm32") {
            let mut turns: Vec<(u64, u64)> = running().map(|(_, r)| (r.request.client, r.order)).collect();
            turns.sort_unstable();
            let mut ranked: Vec<_> = turns.into_iter().map(|(_, turn)| turn).zip(seqs).collect();
            ranked.sort_by_key(|(turn, _)| *turn);
            seqs = ranked.into_iter().map(|(_, seq)| seq).collect();
        }
        seqs.into_iter().map(|(seq, _)| seq).collect()
    }
}

#[test]
fn items_come_in_the_order_of_their_keys() {
    let found = ascending([(3, 'a'), (1, 'b'), (3, 'c'), (2, 'd'), (1, 'e')].into_iter(), |(key, _)| *key);
    assert_eq!(found, [(1, 'b'), (1, 'e'), (2, 'd'), (3, 'a'), (3, 'c')]);
}
