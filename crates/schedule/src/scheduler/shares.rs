//! Shares of the clients: tokens served to each, so that the client with the fewest is served next.
//!
//! The counts are a virtual time. A client that comes back from a pause begins at the time of those that never paused,
//! so a pause saves nothing up; its count stays known until the others have passed it, so a short pause forgives
//! nothing. Browsers have one client, and their pages do not download the code.

/// Tokens of an answer that count as served once it begins, if it may have as many: clients then share slots that
/// become free at once, although nobody knows how long answers will be.
const EXPECTED: usize = 128;

/// Tokens served to clients with requests, and to those that were served more than these.
#[derive(Debug, Default)]
pub(super) struct Shares(Vec<Share>);

#[derive(Debug)]
struct Share {
    client: u64,
    /// Tokens served, in virtual time.
    served: u64,
    /// Waiting and running requests.
    n_open: usize,
}

impl Shares {
    /// A request of a client comes.
    pub(super) fn open(&mut self, client: u64) {
        if cfg!(target_arch = "wasm32") {
            return;
        }
        let now = self.now().unwrap_or(0);
        match self.0.iter_mut().find(|share| share.client == client) {
            Some(share) => {
                share.served = if share.n_open == 0 { share.served.max(now) } else { share.served };
                share.n_open += 1;
            }
            None => self.0.push(Share { client, served: now, n_open: 1 }),
        }
    }

    /// A request of a client ends.
    pub(super) fn close(&mut self, client: u64) {
        if cfg!(target_arch = "wasm32") {
            return;
        }
        if let Some(share) = self.0.iter_mut().find(|share| share.client == client) {
            share.n_open -= 1;
        }
        self.forget();
    }

    /// A client is served tokens.
    pub(super) fn charge(&mut self, client: u64, n_token: usize) {
        if cfg!(target_arch = "wasm32") {
            return;
        }
        if let Some(share) = self.0.iter_mut().find(|share| share.client == client) {
            share.served += n_token as u64;
        }
    }

    /// Tokens served to a client.
    pub(super) fn served(&self, client: u64) -> u64 {
        self.0.iter().find(|share| share.client == client).map_or(0, |share| share.served)
    }

    /// The virtual time: the fewest tokens served to a client with requests.
    fn now(&self) -> Option<u64> {
        self.0.iter().filter(|share| share.n_open > 0).map(|share| share.served).min()
    }

    /// Forgets clients without requests that would begin at the virtual time.
    fn forget(&mut self) {
        let now = self.now();
        self.0.retain(|share| share.n_open > 0 || now.is_some_and(|now| share.served > now));
    }
}

/// Tokens that count as served once a request begins, beyond those that it has: `n_prompt` of its prompt, and some of
/// an answer of at most `n_answer`.
pub(super) fn expected(n_prompt: usize, n_answer: usize) -> u64 {
    (n_prompt + n_answer.min(EXPECTED)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_until_the_others_have_been_served_as_much() {
        let mut shares = Shares::default();
        let known = |shares: &Shares| shares.0.iter().map(|share| share.client).collect::<Vec<_>>();
        [7, 8].into_iter().for_each(|client| shares.open(client));
        shares.charge(7, 100);
        shares.close(7);
        assert_eq!((known(&shares), shares.served(7)), (vec![7, 8], 100));
        shares.charge(8, 100);
        shares.open(9);
        assert_eq!(shares.served(9), 100);
        shares.close(9);
        assert_eq!(known(&shares), [8]);
        shares.close(8);
        assert_eq!(known(&shares), []);
    }
}
