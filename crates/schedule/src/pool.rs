//! The page pool of the KV cache: the owners of each page, and the prefixes that idle pages hold.
//!
//! A page full of known tokens is *named* by its tokens and its predecessor, so named pages form trees, one per group
//! of LoRA scales. A request that begins like a named chain reuses those pages instead of running the tokens again.
//! Pages without a sequence stay named until they are needed; the least recently used leaf is evicted first. Names are
//! compared token by token, so two prefixes are never confused. A row of embeddings in place of a token has a key of
//! its own ([`crate::Embeddings`]), above all tokens.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// Predecessor of a page.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Parent {
    /// None: the page begins a sequence of this group.
    Root(u64),
    /// This page.
    Page(u32),
}

/// The name of a page.
#[derive(Clone, Debug)]
struct Name {
    parent: Parent,
    /// A full page of tokens, or keys of rows; fewer only in a leaf.
    tokens: Box<[u64]>,
    /// Number of named successors.
    n_child: u32,
    /// A snapshot of the state outside pages, taken right after this page.
    snapshot: Option<u32>,
}

/// Counts of a [`Pool`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Total pages.
    pub n_page: usize,
    /// Pages in use by sequences.
    pub n_used: usize,
    /// Unused pages that hold a prefix.
    pub n_cached: usize,
    /// Empty pages.
    pub n_free: usize,
}

/// The longest known prefix of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Full pages, which the sequence now shares.
    pub pages: Vec<u32>,
    /// A page whose first tokens match, and how many do. The caller must copy it, since the sequence will append to it,
    /// or take it over ([`Pool::take_over`]). It is held until [`Pool::release`].
    pub tail: Option<(u32, usize)>,
    /// The snapshot to start from, taken after `pages`.
    pub snapshot: Option<u32>,
}

/// Maximum number of candidates with the same first token that [`Pool::find`] compares, newest first.
const MOST_COMPARED: usize = 64;

/// Pages of the KV cache.
#[derive(Clone, Debug)]
pub struct Pool {
    page: usize,
    /// Number of sequences that use each page.
    users: Vec<u32>,
    names: Vec<Option<Name>>,
    /// Pages with neither users nor a name.
    free: Vec<u32>,
    /// Named pages without users, by last use.
    idle: BTreeMap<u64, u32>,
    /// Last use of each idle page.
    stamps: Vec<u64>,
    clock: u64,
    /// Named pages by predecessor and first token.
    children: FxHashMap<(Parent, u64), Vec<u32>>,
    /// The page that each snapshot follows, and its last use.
    snapshots: Vec<(Option<u32>, u64)>,
}

impl Pool {
    /// A pool of `n_page` pages of `page` tokens, with room for `n_snapshot` snapshots.
    pub fn new(n_page: usize, page: usize, n_snapshot: usize) -> Self {
        assert!(page > 0, "a page has room for a token");
        Pool {
            page,
            users: vec![0; n_page],
            names: vec![None; n_page],
            free: (0..n_page as u32).rev().collect(),
            idle: BTreeMap::new(),
            stamps: vec![0; n_page],
            clock: 0,
            children: FxHashMap::default(),
            snapshots: vec![(None, 0); n_snapshot],
        }
    }

    /// Tokens per page.
    pub fn page(&self) -> usize {
        self.page
    }

    /// Pages that [`Self::take`] can return.
    pub fn n_available(&self) -> usize {
        self.free.len() + self.idle.len()
    }

    /// Counts.
    pub fn stats(&self) -> PoolStats {
        let (n_page, n_cached, n_free) = (self.users.len(), self.idle.len(), self.free.len());
        PoolStats { n_page, n_used: n_page - n_cached - n_free, n_cached, n_free }
    }

    /// An empty page for one sequence; `None` if all pages are in use.
    pub fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            let leaf = self.idle.values().copied().find(|p| self.name(*p).n_child == 0)?;
            self.forget(leaf);
        }
        let page = self.free.pop()?;
        self.users[page as usize] = 1;
        Some(page)
    }

    /// Makes a named page that is held once its holder's alone, to write to; false if others use it, or prefixes go on
    /// from it.
    pub fn take_over(&mut self, page: u32) -> bool {
        if self.users[page as usize] > 1 || self.name(page).n_child > 0 {
            return false;
        }
        self.unname(page);
        true
    }

    /// Releases a page. A sequence releases its last page first, so that leaves are evicted before their predecessors.
    pub fn release(&mut self, page: u32) {
        let users = &mut self.users[page as usize];
        *users = users.checked_sub(1).expect("who gives a page back has it");
        if *users > 0 {
            return;
        }
        match self.names[page as usize] {
            None => self.free.push(page),
            Some(_) => {
                self.clock += 1;
                self.stamps[page as usize] = self.clock;
                self.idle.insert(self.clock, page);
            }
        }
    }

    /// The longest known prefix in a group, of at most `most` tokens. The caller now holds its pages.
    ///
    /// `with_snapshot`: the sequence has state outside pages, so it can only start at a snapshot.
    pub fn find(&mut self, group: u64, tokens: &[u64], most: usize, with_snapshot: bool) -> Found {
        let tokens = &tokens[..most.min(tokens.len())];
        let mut found = Found::default();
        let mut parent = Parent::Root(group);
        let mut n_with_snapshot = 0;
        while let Some((page, n)) = self.best(parent, &tokens[found.pages.len() * self.page..]) {
            if n < self.page {
                found.tail = Some((page, n));
                break;
            }
            found.pages.push(page);
            parent = Parent::Page(page);
            if let Some(snapshot) = self.name(page).snapshot {
                (n_with_snapshot, found.snapshot) = (found.pages.len(), Some(snapshot));
            }
        }
        if with_snapshot {
            found.pages.truncate(n_with_snapshot);
            found.tail = None;
        } else {
            found.snapshot = None;
        }
        for page in found.pages.iter().copied().chain(found.tail.map(|t| t.0)) {
            self.hold(page);
        }
        if let Some(s) = found.snapshot {
            self.clock += 1;
            self.snapshots[s as usize].1 = self.clock;
        }
        found
    }

    /// The named successor of `parent` with the longest match to `tokens`, and the length of the match.
    fn best(&self, parent: Parent, tokens: &[u64]) -> Option<(u32, usize)> {
        let candidates = self.children.get(&(parent, *tokens.first()?))?;
        let common = |p: u32| self.name(p).tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let newest = candidates.iter().rev().take(MOST_COMPARED);
        newest.map(|p| (*p, common(*p))).max_by_key(|(_, n)| *n)
    }

    fn hold(&mut self, page: u32) {
        let users = &mut self.users[page as usize];
        *users += 1;
        if *users == 1 {
            self.idle.remove(&self.stamps[page as usize]);
        }
    }

    /// Names a page by its tokens, which its sequence has written after `parent`. The caller holds both pages.
    ///
    /// Returns the page that the sequence holds from now on: another one if a page of that name exists.
    pub fn set_name(&mut self, group: u64, parent: Option<u32>, page: u32, tokens: &[u64]) -> u32 {
        debug_assert!(self.users[page as usize] == 1 && self.names[page as usize].is_none());
        debug_assert!(!tokens.is_empty() && tokens.len() <= self.page);
        let parent = parent.map_or(Parent::Root(group), Parent::Page);
        let same = |p: &&u32| *self.name(**p).tokens == *tokens;
        let known = self.children.get(&(parent, tokens[0])).and_then(|c| c.iter().find(same)).copied();
        if let Some(known) = known {
            self.hold(known);
            self.release(page);
            return known;
        }
        if let Parent::Page(p) = parent {
            self.names[p as usize].as_mut().expect("pages are named in order").n_child += 1;
        }
        let name = Name { parent, tokens: tokens.into(), n_child: 0, snapshot: None };
        self.names[page as usize] = Some(name);
        self.children.entry((parent, tokens[0])).or_default().push(page);
        page
    }

    /// A number for a snapshot taken right after a named page, if it has none yet; replaces the least recently used
    /// snapshot.
    pub fn add_snapshot(&mut self, page: u32) -> Option<u32> {
        if self.name(page).snapshot.is_some() {
            return None;
        }
        let oldest = (0..self.snapshots.len()).min_by_key(|i| self.snapshots[*i].1)?;
        self.clock += 1;
        let (before, _) = std::mem::replace(&mut self.snapshots[oldest], (Some(page), self.clock));
        if let Some(name) = before.and_then(|p| self.names[p as usize].as_mut()) {
            name.snapshot = None;
        }
        let snapshot = oldest as u32;
        self.names[page as usize].as_mut().expect("the page is named").snapshot = Some(snapshot);
        Some(snapshot)
    }

    /// Forgets all prefixes, for example after device loss. Pages in use stay in use.
    pub fn clear(&mut self) {
        for page in 0..self.names.len() {
            if self.names[page].take().is_some() && self.users[page] == 0 {
                self.free.push(page as u32);
            }
        }
        self.idle.clear();
        self.children.clear();
        self.snapshots.fill((None, 0));
    }

    /// Forgets all prefixes that no sequence uses; returns the number of their pages.
    pub fn flush(&mut self) -> usize {
        let n_cached = self.idle.len();
        // A page in use may go on from an idle one only if it holds that one, too: leaves come first.
        while let Some(leaf) = self.idle.values().copied().find(|page| self.name(*page).n_child == 0) {
            self.forget(leaf);
        }
        n_cached - self.idle.len()
    }

    /// Forgets the longest known prefix of these tokens from its end, up to a page in use or with other successors.
    pub fn erase(&mut self, group: u64, tokens: &[u64]) {
        let found = self.find(group, tokens, tokens.len(), false);
        // A page that goes on differently is of others.
        let tail = found.tail.map(|(page, n)| (page, n == self.name(page).tokens.len()));
        for (page, is_own) in tail.into_iter().chain(found.pages.into_iter().rev().map(|page| (page, true))) {
            self.release(page);
            if is_own && self.users[page as usize] == 0 && self.name(page).n_child == 0 {
                self.forget(page);
            }
        }
    }

    fn name(&self, page: u32) -> &Name {
        self.names[page as usize].as_ref().expect("the page is named")
    }

    /// Removes the name of an idle leaf.
    fn forget(&mut self, page: u32) {
        self.idle.remove(&self.stamps[page as usize]);
        self.unname(page);
        self.free.push(page);
    }

    /// Removes the name of a leaf.
    fn unname(&mut self, page: u32) {
        let name = self.names[page as usize].take().expect("a leaf is named");
        if let Parent::Page(p) = name.parent {
            self.names[p as usize].as_mut().expect("a leaf goes before its parent").n_child -= 1;
        }
        if let Some(s) = name.snapshot {
            self.snapshots[s as usize] = (None, 0);
        }
        let key = (name.parent, name.tokens[0]);
        let siblings = self.children.get_mut(&key).expect("a named page is listed");
        siblings.retain(|p| *p != page);
        if siblings.is_empty() {
            self.children.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence of full pages: reuses known ones and names the rest.
    fn run(pool: &mut Pool, tokens: &[u64]) -> (usize, Vec<u32>) {
        let found = pool.find(0, tokens, tokens.len() - 1, false);
        let n_cached = found.pages.len() * pool.page() + found.tail.map_or(0, |t| t.1);
        let mut table = found.pages;
        if let Some((page, _)) = found.tail {
            pool.release(page);
        }
        for part in tokens.chunks(pool.page()).skip(table.len()) {
            let page = pool.take().expect("a free page");
            table.push(pool.set_name(0, table.last().copied(), page, part));
        }
        (n_cached, table)
    }

    fn end(pool: &mut Pool, table: &[u32]) {
        table.iter().rev().for_each(|p| pool.release(*p));
    }

    #[test]
    fn a_prefix_outlives_its_request() {
        let mut pool = Pool::new(4, 2, 0);
        let (n, a) = run(&mut pool, &[1, 2, 3, 4, 5]);
        assert_eq!(n, 0);
        end(&mut pool, &a);
        assert_eq!(pool.stats(), PoolStats { n_page: 4, n_used: 0, n_cached: 3, n_free: 1 });
        // The third page is shared partially: different tokens follow its first.
        let (n, b) = run(&mut pool, &[1, 2, 3, 4, 5, 6]);
        assert_eq!((n, &b[..2]), (5, &a[..2]));
        end(&mut pool, &b);
        let (n, _) = run(&mut pool, &[1, 2, 9]);
        assert_eq!(n, 2);
    }

    #[test]
    fn a_page_is_taken_over_by_the_only_one_that_holds_it() {
        let mut pool = Pool::new(4, 4, 0);
        let (_, a) = run(&mut pool, &[1, 2, 3, 4, 5]);
        end(&mut pool, &a);
        // Another prefix goes on from the first page.
        assert_eq!(pool.find(0, &[1, 2, 9], 3, false).tail, Some((a[0], 2)));
        assert!(!pool.take_over(a[0]));
        pool.release(a[0]);
        assert_eq!(pool.find(0, &[1, 2, 3, 4, 5, 6], 6, false).tail, Some((a[1], 1)));
        assert!(pool.take_over(a[1]));
        pool.release(a[1]);
        pool.release(a[0]);
        // Its prefix is known no more.
        assert_eq!(pool.stats(), PoolStats { n_page: 4, n_used: 0, n_cached: 1, n_free: 3 });
        let (one, two) = (pool.find(0, &[1], 1, false), pool.find(0, &[1, 2], 2, false));
        assert!(one.tail == Some((a[0], 1)) && two.tail == Some((a[0], 2)) && !pool.take_over(a[0]));
    }

    #[test]
    fn a_prefix_is_erased_up_to_what_others_have() {
        let mut pool = Pool::new(8, 2, 0);
        let (_, a) = run(&mut pool, &[1, 2, 3, 4, 5, 6]);
        let (_, b) = run(&mut pool, &[1, 2, 7, 8]);
        end(&mut pool, &b);
        // In use.
        pool.erase(0, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(pool.stats().n_free, 4);
        end(&mut pool, &a);
        pool.erase(0, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(pool.stats(), PoolStats { n_page: 8, n_used: 0, n_cached: 2, n_free: 6 });
        assert_eq!(pool.find(0, &[1, 2, 3, 4], 4, false).pages, a[..1]);
        pool.release(a[0]);
        pool.erase(0, &[1, 2, 7, 8]);
        pool.erase(0, &[9]);
        assert_eq!(pool.stats().n_free, 8);
    }

    #[test]
    fn a_flush_leaves_what_sequences_use() {
        let mut pool = Pool::new(8, 2, 1);
        let (_, a) = run(&mut pool, &[1, 2, 3, 4, 5]);
        pool.add_snapshot(a[1]);
        let (_, b) = run(&mut pool, &[1, 2, 9, 9]);
        end(&mut pool, &a);
        assert_eq!(pool.flush(), 2);
        assert_eq!(pool.stats(), PoolStats { n_page: 8, n_used: 2, n_cached: 0, n_free: 6 });
        let found = pool.find(0, &[1, 2, 9, 9], 4, false);
        assert_eq!(found.pages, b);
        end(&mut pool, &b);
        end(&mut pool, &b);
        assert_eq!((pool.flush(), pool.flush()), (2, 0));
        assert_eq!(pool.find(0, &[1, 2], 2, true), Found::default());
        assert_eq!(pool.stats().n_free, 8);
    }

    #[test]
    fn groups_share_nothing() {
        let mut pool = Pool::new(4, 2, 0);
        let (_, a) = run(&mut pool, &[1, 2, 3]);
        end(&mut pool, &a);
        assert_eq!(pool.find(1, &[1, 2, 3], 2, false), Found::default());
    }

    #[test]
    fn the_oldest_leaf_is_evicted_first() {
        let mut pool = Pool::new(3, 1, 0);
        let (_, a) = run(&mut pool, &[1, 2]);
        end(&mut pool, &a);
        let (_, b) = run(&mut pool, &[7]);
        end(&mut pool, &b);
        // [1, 2] is the oldest leaf, then [7]; [1] is only a leaf once [1, 2] is gone.
        assert_eq!(pool.take(), Some(a[1]));
        assert_eq!(pool.take(), Some(a[0]));
        assert_eq!(pool.take(), Some(b[0]));
        assert_eq!(pool.take(), None);
    }

    #[test]
    fn two_requests_with_one_prompt_have_one_page_in_the_end() {
        let mut pool = Pool::new(4, 2, 0);
        let (first, second) = (pool.take().expect("a page"), pool.take().expect("a page"));
        assert_eq!(pool.set_name(0, None, first, &[1, 2]), first);
        assert_eq!(pool.set_name(0, None, second, &[1, 2]), first);
        assert_eq!(pool.stats().n_free, 3);
        end(&mut pool, &[first, first]);
        assert_eq!(pool.stats().n_cached, 1);
    }

    #[test]
    fn a_sequence_with_state_begins_at_a_snapshot() {
        let mut pool = Pool::new(4, 2, 1);
        let (_, a) = run(&mut pool, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(pool.add_snapshot(a[1]), Some(0));
        assert_eq!(pool.add_snapshot(a[1]), None);
        let found = pool.find(0, &[1, 2, 3, 4, 5, 6, 7], 6, true);
        assert_eq!(found, Found { pages: a[..2].to_vec(), tail: None, snapshot: Some(0) });
        // Capacity for one snapshot: the newer replaces it.
        assert_eq!(pool.add_snapshot(a[0]), Some(0));
        assert_eq!(pool.find(0, &[1, 2, 3, 4, 5], 4, true).pages, a[..1]);
    }
}
