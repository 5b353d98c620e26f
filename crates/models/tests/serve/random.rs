//! Random requests that arrive and leave, on executors of random capacities and behaviour.

use chaski_models::serve::{EmbedRequest, Request};
use chaski_models::{EmbedOptions, Ends, GenerateOptions, Pooling, Speculation, VectorNorm};
use chaski_schedule::Limits;
use proptest::prelude::*;

use crate::case::{Case, Texts, check, check_texts, constrained, greedy, masked, on_cpu, run_beside, seeded};
use crate::fake::{Habits, POISON, limits};
use crate::reasoning::budgeted;

prop_compose! {
    fn sizes()(page in 1_usize..9, n_ctx in 20_usize..60)(
        page in Just(page),
        n_ctx in Just(n_ctx),
        n_page in n_ctx.div_ceil(page)..n_ctx.div_ceil(page) * 3,
        n_seq in 1_usize..6,
        max_row in 1_usize..20,
        max_want in 1_usize..8,
        max_ahead in 0_usize..20,
        max_hidden in 16_usize..40,
    ) -> Limits {
        Limits { n_seq, n_ctx, page, n_page, max_row, max_want, max_ahead, max_hidden, ..limits() }
    }
}

/// LoRA scales, of which some are the default.
fn scales() -> impl Strategy<Value = Option<Vec<f32>>> {
    let some = prop::sample::select(vec![[0.5, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]);
    prop::option::weighted(0.5, some.prop_map(Vec::from))
}

fn options() -> impl Strategy<Value = GenerateOptions> {
    let sampler = prop_oneof![
        3 => Just(greedy()),
        3 => (0_u32..5).prop_map(seeded),
        1 => (0_u32..5).prop_map(on_cpu),
        1 => Just(constrained()),
        3 => (0_u32..5).prop_map(masked),
    ];
    let shift = prop_oneof![3 => Just(None), 1 => (0_usize..12).prop_map(Some)];
    let stop = prop_oneof![3 => Just(Vec::new()), 1 => "[a-p]{1,2}".prop_map(|s| vec![s])];
    let speculate = prop::option::weighted(
        0.3,
        (1_usize..5).prop_map(|n_max| Speculation { n_max, n_match: 1, ..Speculation::default() }),
    );
    let ends = (0_usize..20, prop::collection::vec(3_u32..18, 0..3))
        .prop_map(|(min_tokens, stop_tokens)| Ends { min_tokens, stop_tokens, max_time: None });
    let ends = prop_oneof![2 => Just(Ends::default()), 1 => ends];
    let budget = prop::option::weighted(0.3, 0_usize..12);
    (sampler, shift, stop, scales(), speculate, 0_usize..50, 0_u32..4, (ends, budget)).prop_map(
        |(o, shift, stop, lora, speculate, max, interval, (ends, budget))| {
            // A grammar may be that of the text after the reasoning.
            let after = budget.is_some() && max % 2 == 0 && o.grammar.is_some();
            let grammar_after = after.then(|| "</think>".to_owned());
            let o = budget.map_or(o.clone(), |n| GenerateOptions { grammar_after, ..budgeted(n, o) });
            // Without a limit, a shifted answer might not end.
            let max_tokens = if max > 40 && shift.is_none() { None } else { Some(max) };
            GenerateOptions { shift, stop, lora, speculate, max_tokens, interval, ends, ..o }
        },
    )
}

prop_compose! {
    fn case()(
        n_same in 0_usize..16,
        end in prop::collection::vec(3_u32..18, 1..6),
        is_poisoned in prop::bool::weighted(0.05),
        options in options(),
        priority in 0_i32..2,
        client in 0_u64..3,
        delay in 0_usize..80,
        leaves in prop::option::weighted(0.25, 0_usize..40),
    ) -> Case {
        // Prompts with a common prefix.
        let mut prompt: Vec<u32> = (0..n_same as u32).map(|i| 3 + i % 5).collect();
        prompt.extend(end);
        prompt.extend(is_poisoned.then_some(POISON));
        Case { request: Request { priority, client, ..Request::new(prompt, options) }, delay, leaves }
    }
}

prop_compose! {
    fn texts()(
        texts in prop::collection::vec(prop::collection::vec(3_u32..6, 1..20), 1..9),
        pooling in prop::sample::select(vec![Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last]),
        lora in scales(),
        priority in 0_i32..2,
        client in 0_u64..3,
        delay in 0_usize..80,
        leaves in prop::option::weighted(0.25, 0_usize..40),
    ) -> Texts {
        let options = EmbedOptions { pooling: None, norm: VectorNorm::None };
        let request = EmbedRequest { lora, priority, client, ..EmbedRequest::new(texts, options) };
        Texts { request, pooling, delay, leaves }
    }
}

prop_compose! {
    fn habits()(
        n_more_under_way in 0_usize..3,
        n_pending in 0_u64..4,
        // One loss: after a second without a token, as of requests that have left, all requests end.
        lost_at in prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(1_u64..300, 1)],
    ) -> Habits {
        Habits { n_more_under_way, n_pending, lost_at, ..Habits::default() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_and_embedding_is_that_of_its_request_alone(
        limits in sizes(),
        habits in habits(),
        cases in prop::collection::vec(case(), 1..14),
        asked in prop::collection::vec(texts(), 0..4),
        seed in any::<u64>(),
    ) {
        let n_ctx = limits.n_ctx;
        let left = run_beside(seed, limits, habits, &cases, &asked);
        check(&cases, &left, n_ctx);
        check_texts(&asked, &left);
        prop_assert!(left.executor.is_ok());
        prop_assert_eq!((left.load.n_waiting, left.load.n_running, left.load.pages.n_used), (0, 0, 0));
    }
}
