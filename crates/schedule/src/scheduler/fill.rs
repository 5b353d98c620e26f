//! Filling a step: the next token of every answer, then chunks of several prompts.

use super::rank::ascending;
use super::room::Room;
use super::running::{Logits, Running};
use super::{Budget, Scheduler, Sent, UnderWay, Work};
use crate::embeddings::{components, row_at};
use crate::request::{Chooser, Read, Request};
use crate::step::{Change, Input, Row, Want};

/// Tokens between two snapshots of a sequence.
const SNAPSHOT_EVERY: usize = 512;

impl Scheduler {
    /// Fills a step.
    pub(super) fn fill(&mut self, budget: Budget, work: &mut Work) {
        if !(0..self.slots.len()).any(|seq| self.is_ready(seq)) {
            return;
        }
        let max_row = budget.rows.clamp(1, self.limits.max_row);
        self.n_step += 1;
        let mut n_want = self.limits.max_want.min(self.limits.max_output);
        let mut room = Room::of(&self.limits);
        let n_turn = self.n_turn();
        let answers = self.answers(max_row.min(n_want), n_turn, work);
        for (i, seq) in answers.iter().enumerate() {
            // Each of the others takes one row.
            let n_row = (max_row - work.step.rows.len()).min(room.n_output);
            room.n_output -= self.send_answer(*seq, n_row - (answers.len() - i), work);
            n_want -= 1;
        }
        let n_prompt = if self.limits.whole { 0 } else { budget.prompt };
        let max_row = max_row.max((work.step.rows.len() + n_prompt).min(self.limits.max_row));
        let is_alone = self.prompts().is_empty() && !work.step.rows.is_empty();
        let mut n_planned = work.step.rows.len();
        for seq in self.prompts() {
            if self.limits.whole && !self.fits_whole(seq, max_row, room, work) {
                continue;
            }
            // The first of them runs however long it takes.
            let max_row = if self.limits.whole { self.limits.max_row } else { max_row };
            n_planned += self.chunk(seq, self.limits.max_row.saturating_sub(n_planned));
            let n_row = max_row - work.step.rows.len();
            let read = self.slots[seq].as_ref().and_then(|r| r.request.read());
            let kind = read.map_or(Read::Logits, |(_, kind)| kind);
            let most = if read.is_some() { usize::MAX } else { n_want };
            // Of a whole prompt, only the rows that are read need room, which is there.
            let n_output = if self.limits.whole { usize::MAX } else { room.n_row(kind).min(most) };
            let n = self.piece(seq, n_row, n_output);
            let n_output = self.send(seq, n, work);
            room.take(kind, n_output);
            n_want -= if read.is_some() { 0 } else { n_output };
        }
        work.step.n_planned = n_planned.min(self.limits.max_row).max(work.step.rows.len()) as u32;
        work.step.repeat = 1;
        if is_alone && n_turn == usize::MAX {
            self.repeat(budget.repeat, &answers, work);
        }
        if work.step.rows.is_empty() {
            return;
        }
        let stay = |seq: u32| self.slots[seq as usize].as_ref().map_or(0, |r| r.stay);
        let sent =
            |r: &Row| Sent { seq: r.seq as usize, pos: r.pos as usize, stay: stay(r.seq), want: r.want };
        let rows = work.step.rows.iter().map(sent).collect();
        self.under_way.push_back(UnderWay { rows, repeat: work.step.repeat });
    }

    /// True if a row of the sequence can be sent.
    fn is_ready(&self, seq: usize) -> bool {
        let Some(r) = &self.slots[seq] else { return false };
        let may_choose = r.n_chosen() + r.n_ahead < r.request.max_tokens;
        let is_ahead = r.n_left() == 1 && r.n_ahead > self.max_ahead(r.request.chooser);
        // The tokens before a snapshot must be known.
        let waits = self.is_due(seq, r.n_sent) && r.n_sent > r.tokens.len();
        r.n_left() > 0
            && r.n_sent < self.limits.n_ctx
            && may_choose
            && r.logits == Logits::Unasked
            && r.next_chooser.is_none()
            && !(is_ahead || waits)
    }

    /// Maximum number of tokens that the device may be ahead of the caller.
    fn max_ahead(&self, chooser: Chooser) -> usize {
        match chooser {
            // One row may wait for its mask while the previous token is read.
            Chooser::Masked => self.limits.max_ahead.min(1),
            Chooser::Device | Chooser::Caller | Chooser::Nobody { .. } => self.limits.max_ahead,
        }
    }

    /// Answers that a step takes, so that all devices have some; any number if they do not take turns.
    fn n_turn(&self) -> usize {
        let n_device = self.limits.n_device;
        // Browsers have one, and their pages do not download the code.
        if cfg!(target_arch = "wasm32") || n_device <= 1 {
            return usize::MAX;
        }
        let goes_on = |r: &&Running| r.n_chosen() + r.n_ahead < r.request.max_tokens;
        let answers = self.slots.iter().flatten().filter(|r| !r.is_prompt());
        match answers.filter(goes_on).count() {
            0 | 1 => usize::MAX,
            n => n.div_ceil(n_device),
        }
    }

    /// Sequences whose next token can be sent, least recently served first: at most `n_turn`, and as many as
    /// a step of `most` has room for. All of them have pages for it; less important requests are preempted if
    /// necessary.
    fn answers(&mut self, most: usize, n_turn: usize, work: &mut Work) -> Vec<usize> {
        let is_answer = |s: &usize| self.slots[*s].as_ref().is_some_and(|r| !r.is_prompt());
        let ready = (0..self.slots.len()).filter(|s| self.is_ready(*s)).filter(is_answer);
        let mut seqs = ascending(ready, |s| self.slots[*s].as_ref().map(|r| r.last_step));
        // Reserve part of the step for prompts, even if answers could fill it.
        let n_prompt = if self.prompts().is_empty() { 0 } else { most.div_ceil(4).min(most - 1) };
        seqs.truncate((most - n_prompt).min(n_turn));
        // The most important come first, so that others do not preempt them.
        let seqs: Vec<usize> = self.by_rank().into_iter().filter(|s| seqs.contains(s)).collect();
        let mut kept = Vec::new();
        for seq in seqs {
            if self.slots[seq].is_none() {
                continue;
            }
            kept.push(seq);
            while !self.has_pages(seq, 1, work) {
                // The request that needs the page is preempted itself if all others are more important.
                let others: Vec<usize> = kept.iter().copied().filter(|s| *s != seq).collect();
                let gone = self.preempt(&others).expect("the sequence itself can be preempted");
                if gone == seq {
                    kept.pop();
                    break;
                }
            }
        }
        kept
    }

    /// Sequences with rows of a prompt to send, the most important first.
    fn prompts(&self) -> Vec<usize> {
        let is_prompt = |s: &usize| self.slots[*s].as_ref().is_some_and(Running::is_prompt);
        self.by_rank().into_iter().filter(|s| self.is_ready(*s)).filter(is_prompt).collect()
    }

    /// True if a whole prompt fits in the step: the first one always does.
    fn fits_whole(&self, seq: usize, max_row: usize, room: Room, work: &Work) -> bool {
        let Some(r) = &self.slots[seq] else { return false };
        let Some((rows, kind)) = r.request.reads() else { return false };
        let n_row = work.step.rows.len();
        n_row == 0 || (n_row + r.n_left() <= max_row && rows.len() <= room.n_row(kind))
    }

    /// Rows of the prompt's current chunk. A new chunk begins where the last ended, with as many rows as an unbudgeted
    /// step could have.
    fn chunk(&mut self, seq: usize, n_row: usize) -> usize {
        let Some(r) = &self.slots[seq] else { return 0 };
        if r.chunk.contains(&r.n_sent) {
            return r.chunk.len();
        }
        // As many rows as are read at once.
        let kind = r.request.read().map_or(Read::Logits, |(_, kind)| kind);
        let n_read = r.n_before_output() + Room::of(&self.limits).n_row(kind);
        let mut end = r.n_sent + n_row.min(r.n_left()).min(n_read);
        if self.limits.n_snapshot.is_some() {
            end = (r.n_sent + 1..end).find(|at| self.is_due(seq, *at)).unwrap_or(end);
        }
        let Some(r) = &mut self.slots[seq] else { return 0 };
        r.chunk = r.n_sent..end;
        r.chunk.len()
    }

    /// Rows of a prompt's chunk that fit in a step, with at most `n_output` outputs.
    fn piece(&self, seq: usize, n_row: usize, n_output: usize) -> usize {
        let Some(r) = &self.slots[seq] else { return 0 };
        n_row.min(r.chunk.end.saturating_sub(r.n_sent)).min(r.n_before_output().saturating_add(n_output))
    }

    /// True if a snapshot of a sequence is due before position `pos`: at regular intervals, and at the last page that a
    /// request with the same prompt would share.
    fn is_due(&self, seq: usize, pos: usize) -> bool {
        let Some(r) = self.slots[seq].as_ref().filter(|_| self.limits.n_snapshot.is_some()) else {
            return false;
        };
        let page = self.limits.page;
        let every = SNAPSHOT_EVERY.next_multiple_of(page);
        let last = (r.request.prompt.len() - 1) / page * page;
        pos > 0 && pos % page == 0 && (pos % every == 0 || pos == last)
    }

    /// Allocates pages for the next `n` rows of a sequence, as far as the pool allows.
    fn has_pages(&mut self, seq: usize, n: usize, work: &mut Work) -> bool {
        let Some(r) = self.slots[seq].as_mut() else { return false };
        let needed = (r.n_sent + n).div_ceil(self.limits.page);
        let first = r.table.len();
        while r.table.len() < needed {
            match self.pool.take() {
                Some(page) => r.table.push(page),
                None => break,
            }
        }
        if r.table.len() > first {
            let pages = r.table[first..].to_vec();
            work.before.push(Change::Pages { seq: seq as u32, first: first as u32, pages });
        }
        r.table.len() >= needed
    }

    /// Adds the next row of an answer to a step, with its drafted tokens if they fit; returns the number of outputs.
    fn send_answer(&mut self, seq: usize, n_more: usize, work: &mut Work) -> usize {
        let Some(r) = &self.slots[seq] else { return 0 };
        let mut n = r.draft.len().min(n_more);
        if n > 0 && !self.has_pages(seq, 1 + n, work) {
            let Some(r) = &self.slots[seq] else { return 0 };
            n = n.min(r.table.len() * self.limits.page - r.n_sent - 1);
        }
        if let Some(r) = &mut self.slots[seq] {
            r.draft.truncate(n);
        }
        self.send(seq, 1 + n, work);
        1 + n
    }

    /// Adds the next `n` rows of a sequence to a step, with a snapshot before them if one is due; returns the number of
    /// outputs.
    fn send(&mut self, seq: usize, n: usize, work: &mut Work) -> usize {
        if n == 0 {
            return 0;
        }
        let is_due = self.slots[seq].as_ref().is_some_and(|r| self.is_due(seq, r.n_sent));
        let Some(r) = self.slots[seq].as_mut() else { return 0 };
        if is_due {
            let named = r.n_named * self.limits.page == r.n_sent;
            let snapshot = named.then(|| self.pool.add_snapshot(r.table[r.n_named - 1])).flatten();
            let n_token = r.n_sent as u32;
            let keep = |snapshot| Change::Keep { seq: seq as u32, snapshot, n_token };
            work.before.extend(snapshot.map(keep));
        }
        r.last_step = self.n_step;
        let (end, n_before) = (r.n_token(), r.n_before_output());
        for pos in r.n_sent..r.n_sent + n {
            let placed = &r.request.embeddings;
            let input = match row_at(placed, pos) {
                Some((rows, i)) => work.step.embed(rows.row(i)),
                None => r.input(pos),
            };
            let components = components(placed, pos);
            let want = want(&r.request, pos, end);
            work.step.rows.push(Row { seq: seq as u32, pos: pos as u32, components, input, want });
        }
        r.n_sent += n;
        self.shares.charge(r.request.client, r.charge());
        let n_read = r
            .request
            .reads()
            .map_or(usize::MAX, |(rows, _)| rows.end.saturating_sub(r.n_sent - n).saturating_sub(n_before));
        let n_output = n.saturating_sub(n_before).min(n_read);
        if n_output > 0 {
            match r.request.chooser {
                Chooser::Nobody { .. } => {}
                Chooser::Caller => r.logits = Logits::UnderWay,
                Chooser::Device => r.n_ahead += 1,
                Chooser::Masked => {
                    r.n_ahead += 1;
                    work.masked.push(r.request.id);
                }
            }
        }
        n_output
    }

    /// Repeats a step of device-chosen tokens as often as all of its requests allow.
    fn repeat(&mut self, most: u32, answers: &[usize], work: &mut Work) {
        let is_chosen = |r: &Row| r.input == Input::Chosen && r.want == Want::Choose;
        if !work.step.rows.iter().all(is_chosen) {
            return;
        }
        // The last possible row of each request is already counted.
        let mut n = most.max(1) as usize - 1;
        for seq in answers {
            let Some(r) = &self.slots[*seq] else { return };
            let left = r.request.max_tokens - (r.n_chosen() + r.n_ahead);
            let ahead = (self.limits.max_ahead + 1).saturating_sub(r.n_ahead);
            n = n.min(left).min(self.limits.n_ctx - r.n_sent).min(ahead);
            if self.limits.n_snapshot.is_some() {
                n = (0..n).find(|i| self.is_due(*seq, r.n_sent + i)).unwrap_or(n);
            }
        }
        for seq in answers {
            while n > 0 && !self.has_pages(*seq, n, work) {
                let Some(r) = &self.slots[*seq] else { return };
                n = n.min(r.table.len() * self.limits.page - r.n_sent);
            }
        }
        for seq in answers {
            let Some(r) = self.slots[*seq].as_mut() else { continue };
            r.n_sent += n;
            r.n_ahead += n;
            self.shares.charge(r.request.client, r.charge());
        }
        work.step.repeat = n as u32 + 1;
    }
}

/// The output of a row of a request with `n_token` tokens.
fn want(request: &Request, pos: usize, n_token: usize) -> Want {
    match (request.chooser, pos + 1 >= n_token) {
        (Chooser::Nobody { .. }, _) => match request.reads() {
            Some((rows, Read::Hidden)) if rows.contains(&pos) => Want::Hidden,
            Some((rows, Read::Logits)) if rows.contains(&pos) => Want::Logits,
            _ => Want::Nothing,
        },
        (_, false) => Want::Nothing,
        (Chooser::Device, true) => Want::Choose,
        (Chooser::Masked, true) => Want::ChooseMasked,
        (Chooser::Caller, true) => Want::Logits,
    }
}
