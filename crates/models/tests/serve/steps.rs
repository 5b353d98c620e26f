//! The number of tokens of a step.

use std::cell::RefCell;

use chaski_models::GenerateOptions;
use chaski_models::serve::{Request, serve};
use chaski_schedule::Limits;

use crate::case::{MAX_WAITING, Text, greedy, read};
use crate::fake::{Fake, Habits, limits, mix, tokenizer};
use crate::tasks::run_all;

/// The rows of the steps of two requests with long prompts, and their answers.
fn steps(step_tokens: Option<usize>) -> (Vec<usize>, Vec<Text>) {
    let sizes = Limits { n_ctx: 200, n_page: 150, max_row: 150, ..limits() };
    let (handle, mut driver) =
        serve(Fake::new(sizes, Habits::default()), tokenizer(), MAX_WAITING).expect("sizes");
    driver.set_step_tokens(step_tokens);
    let (texts, rows) = (RefCell::new(vec![Text::default(); 2]), RefCell::new(Vec::new()));
    let mut tasks: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
    for i in 0..2_u64 {
        let options = GenerateOptions { max_tokens: Some(5), ..greedy() };
        let tokens: Vec<u32> = (0..170).map(|at| 3 + (mix(i << 32 | at) % 15) as u32).collect();
        let answer = handle.generate(Request::new(tokens, options)).expect("a prompt");
        let texts = &texts;
        tasks.push(Box::pin(async move {
            let text = read(answer).await;
            texts.borrow_mut()[i as usize] = text;
        }));
    }
    drop(handle);
    tasks.push(Box::pin(async { *rows.borrow_mut() = driver.run().await.expect("a device").rows }));
    run_all(5, tasks);
    (rows.into_inner(), texts.into_inner())
}

#[test]
fn a_step_has_as_many_tokens_as_are_wanted_and_prompts_their_share() {
    let (rows, expected) = steps(None);
    assert_eq!(rows[..2], [150, 150]);
    for (n, first) in [(1, 64), (80, 80), (1000, 150)] {
        let (rows, texts) = steps(Some(n));
        assert_eq!(rows[0], first, "{n}: {rows:?}");
        // Beside an answer, too.
        assert!(rows.iter().all(|found| *found <= first.max(n).clamp(65, 150)), "{n}: {rows:?}");
        assert_eq!(texts, expected);
    }
}
