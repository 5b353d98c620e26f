//! Single properties of schedules, one by one.

use std::collections::HashMap;

use chaski_schedule::{
    Budget, Change, Chooser, Chosen, Embeddings, Event, Input, Limits, Read, Refused, Request, RequestId,
    Scheduler, Want,
};

fn small() -> Limits {
    Limits {
        n_seq: 2,
        n_ctx: 16,
        page: 4,
        n_page: 4,
        max_row: 8,
        max_want: 4,
        max_output: 8,
        max_hidden: 8,
        whole: false,
        n_device: 1,
        max_ahead: 4,
        max_waiting: 2,
        n_snapshot: None,
        max_draft: 4,
    }
}

fn request(id: u64, prompt: &[u32]) -> Request {
    let prompt = prompt.to_vec();
    let (id, chooser) = (RequestId(id), Chooser::Device);
    Request {
        id,
        prompt,
        embeddings: Vec::new(),
        max_tokens: 4,
        chooser,
        group: 0,
        salt: 0,
        priority: 0,
        client: 0,
    }
}

#[test]
fn requests_that_cannot_fit_are_refused_with_both_numbers() {
    let mut s = Scheduler::new(small()).expect("room for a context");
    assert_eq!(s.submit(request(1, &[])), Err(Refused::Empty));
    let e = s.submit(request(1, &[1; 17])).expect_err("a long prompt");
    assert_eq!(e.to_string(), "the prompt has 17 tokens, but the context has 16");
    s.submit(request(1, &[1])).expect("a prompt");
    assert_eq!(s.submit(request(1, &[1])), Err(Refused::Id { id: RequestId(1) }));
    s.submit(request(2, &[1])).expect("a prompt");
    assert_eq!(s.submit(request(3, &[1])), Err(Refused::Queue { limit: 2 }));
    let e = Scheduler::new(Limits { n_page: 3, ..small() }).expect_err("a small pool");
    assert_eq!(e.to_string(), "the KV cache has room for 12 tokens, but a context has 16: 4 are missing");
}

/// While a step of some answers is under way, the next has the others, and each answer goes on from its own step alone.
#[test]
fn answers_take_turns_over_several_devices() {
    let limits =
        |n_device| Limits { n_device, n_seq: 4, n_page: 16, max_ahead: 31, max_waiting: 9, ..small() };
    let steps = |n_device: usize, n_request: u64| {
        let mut s = Scheduler::new(limits(n_device)).expect("room for a context");
        (0..n_request)
            .for_each(|id| drop(s.submit(Request { max_tokens: 9, ..request(id, &[id as u32 + 1; 2]) })));
        let budget = Budget { rows: 8, prompt: 0, repeat: 4 };
        let work = s.next(budget).expect("the prompts");
        s.done(&vec![5; work.step.rows.iter().filter(|row| row.want == Want::Choose).count()]);
        let mut next = || {
            let step = s.next(budget).expect("a step before any is read").step;
            (step.rows.iter().map(|row| (row.seq, row.input)).collect::<Vec<_>>(), step.repeat)
        };
        [next(), next(), next()]
    };
    let rows = |seqs: &[u32], input: Input| seqs.iter().map(|seq| (*seq, input)).collect::<Vec<_>>();
    let (known, chosen) = (Input::Token(5), Input::Chosen);
    // Two halves; the third step needs the tokens of the first.
    let found = steps(2, 4);
    assert_eq!(found, [(rows(&[0, 1], known), 1), (rows(&[2, 3], known), 1), (rows(&[0, 1], chosen), 1)]);
    let found = steps(3, 3);
    assert_eq!(found, [(rows(&[0], known), 1), (rows(&[1], known), 1), (rows(&[2], known), 1)]);
    // One answer, or one device: all in each step, and several tokens at once.
    let all = |seqs: &[u32]| [(rows(seqs, known), 1), (rows(seqs, chosen), 4), (rows(seqs, chosen), 4)];
    assert_eq!(steps(2, 1)[..2], all(&[0])[..2]);
    assert_eq!(steps(1, 4)[..2], all(&[0, 1, 2, 3])[..2]);
}

/// The rows of a prompt: position and output of each, step by step.
fn rows_of(s: &mut Scheduler, first: usize, prompt: &[u32]) -> Vec<Vec<(u32, Want)>> {
    let chooser = Chooser::Nobody { first, end: usize::MAX, read: Read::Hidden };
    s.submit(Request { chooser, max_tokens: 1, ..request(1, prompt) }).expect("a prompt");
    let (mut steps, mut is_open) = (Vec::new(), true);
    while is_open {
        let work = s.next(Budget { rows: 4, prompt: 0, repeat: 1 }).expect("a step");
        steps.push(work.step.rows.iter().map(|row| (row.pos, row.want)).collect());
        is_open = !s.done(&[]).iter().any(|e| matches!(e, Event::Rows { is_last: true, .. }));
    }
    steps
}

#[test]
fn rows_from_a_position_are_read_and_what_precedes_them_comes_from_the_cache() {
    let mut s =
        Scheduler::new(Limits { max_output: 2, max_want: 2, max_hidden: 7, ..small() }).expect("room");
    let prompt = [1, 2, 3, 4, 5, 6];
    let (run, read) = (|pos| (pos, Want::Nothing), |pos| (pos, Want::Hidden));
    // All rows, as the budget and the readback allow. They neither come from the cache nor stay there.
    for _ in 0..2 {
        let steps = rows_of(&mut s, 0, &prompt);
        assert_eq!(steps, [[0, 1, 2, 3].map(read).to_vec(), [4, 5].map(read).to_vec()]);
        assert_eq!(s.usage().pool.n_free, 4);
    }
    let last = |s: &mut Scheduler| rows_of(s, 5, &prompt);
    assert_eq!(last(&mut s), [[0, 1, 2, 3].map(run).to_vec(), vec![run(4), read(5)]]);
    assert_eq!(s.usage().pool.n_cached, 2);
    assert_eq!(last(&mut s), [[read(5)]]);
    assert_eq!(rows_of(&mut s, 2, &prompt).concat(), [2, 3, 4, 5].map(read));
}

#[test]
fn prompts_that_run_whole_share_steps_and_are_never_split() {
    let limits = Limits { n_seq: 4, n_page: 16, max_want: 8, max_waiting: 4, whole: true, ..small() };
    let mut s = Scheduler::new(limits.clone()).expect("room");
    let e = s.submit(request(1, &[1; 9])).expect_err("more than a step");
    let expected = "the text has 9 tokens, but the model takes texts at once, of at most 8 tokens here: a larger \
                    context or chunk allows more";
    assert_eq!(e.to_string(), expected);
    let mut submit = |id: u64, n: usize, end: usize| {
        let chooser = Chooser::Nobody { first: 0, end, read: Read::Hidden };
        s.submit(Request { chooser, max_tokens: 1, ..request(id, &vec![7; n]) }).expect("a text");
    };
    // The budget bounds what runs beside the first text, which runs whole whatever it is.
    [(1, 7, usize::MAX), (2, 3, 1)].into_iter().for_each(|(id, n, end)| submit(id, n, end));
    let mut step = || {
        let step = s.next(Budget { rows: 6, prompt: 0, repeat: 1 }).expect("a step").step;
        let rows: Vec<(u32, u32, bool)> =
            step.rows.iter().map(|r| (r.seq, r.pos, r.want == Want::Hidden)).collect();
        let ends = |e: &Event| matches!(e, Event::Rows { is_last: true, .. });
        (rows, s.done(&[]).iter().filter(|e| ends(e)).count())
    };
    assert_eq!(step(), ((0..7).map(|pos| (0, pos, true)).collect(), 1));
    assert_eq!(step(), ((0..3).map(|pos| (1, pos, pos == 0)).collect(), 1));
    let mut s = Scheduler::new(limits).expect("room");
    for id in 1..=3 {
        let chooser = Chooser::Nobody { first: 1, end: 2, read: Read::Hidden };
        s.submit(Request { chooser, max_tokens: 1, ..request(id, &[7, 8, 9]) }).expect("a text");
    }
    // Equal texts run again, since nothing is cached, and the third does not fit.
    let step = s.next(Budget { rows: 8, prompt: 0, repeat: 1 }).expect("a step").step;
    assert_eq!(
        step.rows.iter().map(|r| (r.seq, r.pos)).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    );
    assert_eq!(step.n_planned, 6);
}

/// Four rows of one value.
fn image() -> Embeddings {
    Embeddings::new(vec![0.5, 1.0, 1.5, 2.0], 1).expect("rows")
}

#[test]
fn embeddings_take_the_place_of_tokens() {
    let mut s = Scheduler::new(small()).expect("room for a context");
    let all = Budget { rows: 3, prompt: 0, repeat: 1 };
    let rows = image().at(vec![[0; 3], [0, 0, 1], [0, 1, 0], [0, 1, 1]]).expect("positions");
    s.submit(Request { embeddings: vec![(1, rows)], ..request(1, &[7, 0, 0, 0, 0, 8]) }).expect("a prompt");
    // The budget divides the rows; each step has its own.
    let step = s.next(all).expect("a piece").step;
    let inputs: Vec<Input> = step.rows.iter().map(|r| r.input).collect();
    assert_eq!(inputs, [Input::Token(7), Input::Embedding(0), Input::Embedding(1)]);
    assert_eq!(step.embeddings, [0.5, 1.0]);
    s.done(&[]);
    let step = s.next(all).expect("the rest").step;
    let inputs: Vec<Input> = step.rows.iter().map(|r| r.input).collect();
    assert_eq!(inputs, [Input::Embedding(0), Input::Embedding(1), Input::Token(8)]);
    assert_eq!(step.embeddings, [1.5, 2.0]);
    let at: Vec<_> = step.rows.iter().map(|r| r.components).collect();
    assert_eq!(at, [[1, 2, 1], [1, 2, 2], [3, 3, 3]].map(Some));
    s.done(&[5]);
    let row = s.next(all).expect("a token").step.rows[0];
    assert_eq!((row.pos, row.input, row.components), (6, Input::Token(5), Some([4; 3])));
}

#[test]
fn a_prefix_with_embeddings_is_shared_by_clones_alone() {
    let mut s = Scheduler::new(Limits { n_page: 8, ..small() }).expect("room for a context");
    let mut cached = |id, embeddings: Vec<(usize, Embeddings)>| {
        let prompt = [7, 0, 0, 0, 0, 8, 9, 9, 9];
        let asked = Request { max_tokens: 1, embeddings, ..request(id, &prompt) };
        s.submit(asked).expect("a prompt");
        let mut found = None;
        while let Some(work) = s.next(Budget { rows: 8, prompt: 0, repeat: 1 }) {
            found = found.or(work.before.iter().find_map(|c| match c {
                Change::Start { n_cached, .. } => Some(*n_cached),
                _ => None,
            }));
            let n_chosen = work.step.rows.iter().filter(|r| r.want == Want::Choose).count();
            s.done(&vec![5; n_chosen]);
        }
        found.expect("it started")
    };
    let rows = image();
    assert_eq!(cached(1, vec![(1, rows.clone())]), 0);
    assert_eq!(cached(2, vec![(1, rows.clone())]), 8);
    // The same values in another object, other positions, and the tokens below share what precedes the rows.
    assert_eq!(cached(3, vec![(1, image())]), 1);
    assert_eq!(cached(4, vec![(1, rows.at(vec![[0; 3]; 4]).expect("positions"))]), 1);
    assert_eq!(cached(5, Vec::new()), 1);
    assert_eq!(cached(6, Vec::new()), 8);
}

#[test]
fn embeddings_that_do_not_fit_their_prompt_are_refused() {
    let mut s = Scheduler::new(small()).expect("room for a context");
    let mut refused = |embeddings: Vec<(usize, Embeddings)>| {
        let asked = Request { embeddings, ..request(1, &[1; 6]) };
        s.submit(asked).expect_err("rows without room").to_string()
    };
    let e = "embeddings at 3 to 7 do not fit between 0 and 6, the end of the prompt";
    assert_eq!(refused(vec![(3, image())]), e);
    let e = "embeddings at 2 to 6 do not fit between 4 and 6, the end of the prompt";
    assert_eq!(refused(vec![(0, image()), (2, image())]), e);
    assert!(refused(vec![(usize::MAX, image())]).starts_with("embeddings at 18446744073709551615 "));
}

#[test]
fn a_request_that_goes_on_keeps_its_turn() {
    let mut s = Scheduler::new(Limits { n_seq: 1, ..small() }).expect("room for a context");
    let all = Budget { rows: 8, prompt: 0, repeat: 1 };
    let first = s.submit(Request { max_tokens: 1, ..request(1, &[1]) }).expect("a prompt");
    s.next(all).expect("the first prompt");
    s.submit(request(2, &[2])).expect("a prompt");
    s.submit(request(3, &[3])).expect("a prompt");
    let id = RequestId(1);
    assert_eq!(s.done(&[5]), [Event::Token { id, token: 5 }, Event::Length { id }]);
    // The queue is full for new requests, but not for this one, which precedes later ones.
    assert_eq!(s.submit(request(4, &[4])), Err(Refused::Queue { limit: 2 }));
    s.go_on(request(1, &[1, 5]), first).expect("it goes on");
    assert_eq!(s.go_on(request(1, &[1, 5]), first), Err(Refused::Id { id }));
    let work = s.next(all).expect("it goes on");
    assert!(work.before.iter().any(|c| matches!(c, Change::Start { id: RequestId(1), .. })), "{work:?}");
}

#[test]
fn a_prompt_does_not_stop_answers() {
    let mut s = Scheduler::new(Limits { n_page: 8, ..small() }).expect("room for a context");
    s.submit(request(1, &[1, 2])).expect("a prompt");
    let all = Budget { rows: 8, prompt: 0, repeat: 1 };
    let work = s.next(all).expect("a prompt");
    assert_eq!(work.step.rows.len(), 2);
    s.submit(request(2, &[9; 12])).expect("a prompt");
    // The answer's token and a chunk of the prompt run together.
    let work = s.next(all).expect("a mixed step");
    let seqs: Vec<u32> = work.step.rows.iter().map(|r| r.seq).collect();
    assert_eq!(seqs, [0, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn answers_leave_a_prompt_its_share_of_a_step() {
    let rows = |prompt: usize| {
        let mut s = Scheduler::new(Limits { n_seq: 3, n_page: 12, ..small() }).expect("room for a context");
        s.submit(request(1, &[1, 2])).expect("a prompt");
        s.submit(request(2, &[2, 3])).expect("a prompt");
        assert_eq!(s.next(Budget { rows: 8, prompt, repeat: 1 }).expect("prompts").step.rows.len(), 4);
        s.done(&[9, 9]);
        s.submit(request(3, &[7; 15])).expect("a prompt");
        let step = s.next(Budget { rows: 3, prompt, repeat: 1 }).expect("a mixed step").step;
        let n_prompt = step.rows.iter().filter(|row| row.seq == 2).count();
        (step.rows.len() - n_prompt, n_prompt)
    };
    assert_eq!([0, 1, 5].map(rows), [(2, 1), (2, 1), (2, 5)]);
    // A step has no more rows than it can.
    assert_eq!(rows(100), (2, 6));
}

/// The start of a request beside the copies before it.
fn begun(s: &mut Scheduler, id: u64, prompt: &[u32]) -> (usize, usize) {
    s.submit(Request { max_tokens: 1, ..request(id, prompt) }).expect("a prompt");
    let before = s.next(Budget { rows: 8, prompt: 0, repeat: 1 }).expect("a prompt").before;
    s.done(&[9]);
    let start = before.iter().find_map(|change| match change {
        Change::Start { n_cached, .. } => Some(*n_cached),
        _ => None,
    });
    let n_copy = before.iter().filter(|change| matches!(change, Change::Copy { .. })).count();
    (start.expect("a start"), n_copy)
}

#[test]
fn the_only_page_is_taken_over_with_its_prefix() {
    let mut s = Scheduler::new(Limits { n_seq: 1, n_ctx: 4, n_page: 1, ..small() }).expect("a context");
    assert_eq!(begun(&mut s, 1, &[1, 2, 3]), (0, 0));
    assert_eq!(begun(&mut s, 2, &[1, 2, 4]), (2, 0));
    // Its prefix is that of the last request now.
    assert_eq!(begun(&mut s, 3, &[1, 2, 4, 5]), (3, 0));
    assert_eq!(begun(&mut s, 4, &[7, 2]), (0, 0));
    // With another page, the first prefix stays.
    let mut s = Scheduler::new(Limits { n_seq: 1, n_ctx: 4, n_page: 2, ..small() }).expect("a context");
    assert_eq!(begun(&mut s, 1, &[1, 2, 3]), (0, 0));
    assert_eq!(begun(&mut s, 2, &[1, 2, 4]), (2, 1));
    assert_eq!(begun(&mut s, 3, &[1, 2, 3, 3]), (3, 1));
}

#[test]
fn a_request_that_waits_takes_no_page_over() {
    let mut s = Scheduler::new(Limits { n_ctx: 4, n_page: 2, ..small() }).expect("a context");
    assert_eq!(begun(&mut s, 1, &[1, 2, 3]), (0, 0));
    s.submit(Request { max_tokens: 2, ..request(2, &[5, 6]) }).expect("a prompt");
    let all = Budget { rows: 8, prompt: 0, repeat: 1 };
    assert_eq!(s.next(all).expect("a prompt").step.rows.len(), 2);
    s.submit(Request { max_tokens: 1, ..request(3, &[1, 2, 4]) }).expect("a prompt");
    s.done(&[9]);
    // The other request may need the page.
    assert_eq!(s.next(all).expect("an answer").step.rows.len(), 1);
    s.done(&[9]);
    let work = s.next(all).expect("the prompt");
    assert!(work.before.iter().any(|change| matches!(change, Change::Start { n_cached: 2, .. })), "{work:?}");
}

#[test]
fn requests_of_different_groups_and_salts_share_steps_and_no_prefixes() {
    let limits = Limits { n_seq: 4, n_page: 16, max_row: 32, max_waiting: 9, ..small() };
    let mut s = Scheduler::new(limits).expect("room");
    let prompt = [1, 2, 3, 4, 5, 6];
    // The first position and the last of each request, by id, group and salt, that runs in a step.
    let mut step = |asked: &[(u64, u64, u32)]| {
        for (id, group, salt) in asked.iter().copied() {
            s.submit(Request { group, salt, max_tokens: 1, ..request(id, &prompt) }).expect("a prompt");
        }
        let rows = s.next(Budget { rows: 32, prompt: 0, repeat: 1 }).expect("a step").step.rows;
        let mut found = HashMap::new();
        rows.iter().for_each(|row| found.entry(row.seq).or_insert((row.pos, row.pos)).1 = row.pos);
        s.done(&vec![7; asked.len()]);
        let mut found: Vec<(u32, u32)> = found.into_values().collect();
        found.sort_unstable();
        found
    };
    assert_eq!(step(&[(1, 0, 0)]), [(0, 5)]);
    assert_eq!(step(&[(2, 0, 0), (3, 0, 1), (4, 1, 0)]), [(0, 5), (0, 5), (5, 5)], "in one step");
    let again = [(5, 0, 0), (6, 0, 1), (7, 1, 0), (8, 1, 1)];
    assert_eq!(step(&again), [(0, 5), (5, 5), (5, 5), (5, 5)]);
}

#[test]
fn an_answer_alone_repeats_without_being_read() {
    let mut s = Scheduler::new(small()).expect("room for a context");
    s.submit(Request { max_tokens: 8, ..request(1, &[1, 2]) }).expect("a prompt");
    let budget = Budget { rows: 8, prompt: 0, repeat: 3 };
    assert_eq!(s.next(budget).expect("the prompt").step.repeat, 1);
    assert_eq!(s.next(budget).expect("tokens ahead").step.repeat, 3);
    // One token of the prompt and three more are in flight; one more is allowed.
    assert_eq!(s.next(budget).expect("tokens ahead").step.repeat, 1);
    assert_eq!(s.next(budget), None);
    assert_eq!(s.done(&[5]), [Event::Token { id: RequestId(1), token: 5 }]);
    assert_eq!(s.next(budget).expect("room again").step.repeat, 1);
}

#[test]
fn an_answer_under_masks_runs_one_token_ahead() {
    let mut s = Scheduler::new(small()).expect("room for a context");
    let id = RequestId(1);
    s.submit(Request { chooser: Chooser::Masked, ..request(1, &[1, 2]) }).expect("a prompt");
    let budget = Budget { rows: 8, prompt: 0, repeat: 3 };
    let work = s.next(budget).expect("the prompt");
    let wants: Vec<Want> = work.step.rows.iter().map(|r| r.want).collect();
    assert_eq!((wants, work.masked), (vec![Want::Nothing, Want::ChooseMasked], vec![id]));
    let work = s.next(budget).expect("a token that is not known");
    assert_eq!((work.step.repeat, work.step.rows[0].input, work.masked), (1, Input::Chosen, vec![id]));
    assert_eq!(s.next(budget), None);
    assert_eq!(s.done(&[5]), [Event::Token { id, token: 5 }]);
    assert_eq!(s.next(budget).expect("another").step.rows[0].input, Input::Chosen);
    assert_eq!(s.max_draft(id), 0);
}

#[test]
fn another_party_chooses_once_all_tokens_are_known() {
    let mut s = Scheduler::new(small()).expect("room for a context");
    let id = RequestId(1);
    s.submit(Request { max_tokens: 9, ..request(1, &[1, 2]) }).expect("a prompt");
    let all = Budget { rows: 8, prompt: 0, repeat: 1 };
    s.next(all).expect("the prompt");
    s.next(all).expect("a token ahead");
    s.set_chooser(id, Chooser::Caller);
    assert_eq!(s.next(all), None, "two tokens are not known");
    s.done(&[5]);
    assert_eq!(s.next(all), None, "one token is not known");
    s.done(&[6]);
    let work = s.next(all).expect("a row with logits");
    let start = Change::Start { seq: 0, id, chooser: Chooser::Caller, n_drawn: 2, n_cached: 3 };
    assert_eq!(work.before, [start]);
    assert_eq!((work.step.rows[0].input, work.step.rows[0].want), (Input::Token(6), Want::Logits));
    s.done(&[]);
    // Back, after drafts: those that are not confirmed are dropped.
    s.choose(id, 7);
    s.draft(id, &[8, 9]);
    assert_eq!(s.next(all).expect("drafts").step.rows.len(), 3);
    s.set_chooser(id, Chooser::Device);
    assert_eq!(s.next(all), None, "logits are under way");
    s.done(&[]);
    assert!(s.choose(id, 8).was_drafted && !s.choose(id, 3).was_drafted);
    assert_eq!(s.max_draft(id), 0, "the device is about to choose");
    let work = s.next(all).expect("a token");
    assert!(
        matches!(work.before[..], [Change::Start { chooser: Chooser::Device, n_drawn: 5, .. }]),
        "{work:?}"
    );
    assert_eq!((work.step.rows[0].pos, work.step.rows[0].input), (6, Input::Token(3)));
    assert_eq!(work.step.rows[0].want, Want::Choose);
    // A change that is taken back changes nothing.
    s.set_chooser(id, Chooser::Caller);
    s.set_chooser(id, Chooser::Device);
    let work = s.next(all).expect("a token ahead");
    assert_eq!((work.before, work.step.rows[0].input), (Vec::new(), Input::Chosen));
}

#[test]
fn right_drafts_save_steps_and_wrong_ones_change_nothing() {
    let mut s = Scheduler::new(small()).expect("room for a context");
    let id = RequestId(1);
    s.submit(Request { max_tokens: 8, chooser: Chooser::Caller, ..request(1, &[1, 2]) }).expect("a prompt");
    let all = Budget { rows: 8, prompt: 0, repeat: 1 };
    s.next(all).expect("the prompt");
    assert_eq!(s.done(&[]), [Event::Logits { id, index: 0, n_row: 1 }]);
    assert_eq!(s.max_draft(id), 0, "its next token is not chosen");
    assert_eq!(s.choose(id, 3), Chosen::default());
    assert_eq!(s.max_draft(id), 4);
    s.draft(id, &[4, 5, 9]);
    let work = s.next(all).expect("a token and drafts");
    let inputs: Vec<Input> = work.step.rows.iter().map(|r| r.input).collect();
    assert_eq!(inputs, [3, 4, 5, 9].map(Input::Token));
    assert_eq!(s.done(&[]), [Event::Logits { id, index: 0, n_row: 4 }]);
    assert!(s.choose(id, 4).was_drafted && s.choose(id, 5).was_drafted);
    assert_eq!(s.choose(id, 6), Chosen::default());
    // Four rows were sent and three accepted: the last position is written again.
    assert_eq!(s.n_sent(id), Some(5));
    let work = s.next(all).expect("a token");
    assert_eq!((work.step.rows[0].pos, work.step.rows[0].input), (5, Input::Token(6)));
}

#[test]
fn a_prompt_in_pieces_runs_with_the_kernels_of_whole_chunks() {
    let planned = |rows: usize| {
        let mut s = Scheduler::new(Limits { n_page: 8, ..small() }).expect("room for a context");
        s.submit(request(1, &[7; 13])).expect("a prompt");
        let mut planned = Vec::new();
        while planned.len() < 13 {
            let step = s.next(Budget { rows, prompt: 0, repeat: 1 }).expect("a piece").step;
            planned.extend(step.rows.iter().map(|_| step.n_planned));
            s.done(&if planned.len() < 13 { vec![] } else { vec![1] });
        }
        planned
    };
    // Chunks of 8 and 5.
    let whole = [[8; 8].as_slice(), &[5; 5]].concat();
    assert_eq!([planned(8), planned(4), planned(3), planned(1)], [&whole; 4].map(Vec::clone));
}
