//! Embeddings as requests of a service.

use chaski_models::serve::{EmbedRequest, Readings, Request, ServeError, serve};
use chaski_models::{EmbedOptions, Embedding, Pooling, VectorNorm};
use chaski_schedule::Limits;

use crate::case::{MAX_WAITING, Texts, check_texts, greedy, read, run_beside};
use crate::fake::{Fake, Habits, Yield, limits, tokenizer};
use crate::tasks::run_all;

fn texts(n: usize, n_token: usize) -> EmbedRequest {
    let text = |i| (0..n_token).map(|at| 3 + ((i + at) % 15) as u32).collect();
    let options = EmbedOptions { pooling: None, norm: VectorNorm::None };
    EmbedRequest::new((0..n).map(text).collect(), options)
}

#[test]
fn texts_of_a_request_run_together() {
    for (pooling, n_step) in [(Pooling::Mean, 6), (Pooling::Cls, 2), (Pooling::Last, 6)] {
        let asked = [Texts { request: texts(8, 12), pooling, delay: 0, leaves: None }];
        let left = run_beside(1, limits(), Habits::default(), &[], &asked);
        check_texts(&asked, &left);
        // Steps of 16 rows: four texts of a token each, or a text and a third.
        let rows = left.executor.expect("the driver gives it back").rows;
        assert_eq!(rows.len(), n_step, "{pooling}: {rows:?}");
    }
}

#[test]
fn texts_count_as_one_request_of_the_queue_and_as_many_that_wait() {
    let limits = Limits { n_seq: 1, ..limits() };
    let (handle, driver) =
        serve(Fake::new(limits, Habits::default()), tokenizer(), 1).expect("sizes that fit");
    let readings = handle.embed(texts(9, 3), Pooling::Mean).expect("texts");
    assert_eq!((handle.load().n_waiting, handle.load().n_running), (9, 0));
    let answer = handle.generate(Request::new(vec![3], greedy())).expect("a prompt");
    let e = handle.embed(texts(1, 3), Pooling::Mean).expect_err("a full queue");
    assert!(matches!(e, ServeError::Busy { found: 2, limit: 2 }), "{e}");
    let caller = async move {
        // Few texts run before it.
        read(answer).await;
        let left = handle.load().n_waiting;
        assert!(left >= 4, "{left} texts wait");
        assert_eq!(readings.await.expect("embeddings").len(), 9);
        assert_eq!((handle.load().n_waiting, handle.load().n_running), (0, 0));
    };
    run_all(1, vec![Box::pin(async { drop(driver.run().await.expect("a device")) }), Box::pin(caller)]);
}

/// Polls a future that takes longer.
async fn turn(readings: &mut Readings<Embedding>) {
    let mut readings = std::pin::Pin::new(readings);
    let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(readings.as_mut().poll(cx))).await;
    assert!(poll.is_pending());
    Yield(false).await;
}

#[test]
fn a_future_that_is_dropped_ends_its_requests_within_a_step() {
    let habits = Habits { n_pending: 3, ..Habits::default() };
    let (handle, driver) =
        serve(Fake::new(limits(), habits), tokenizer(), MAX_WAITING).expect("sizes that fit");
    let n_row = driver.executor().n_row.clone();
    let caller = async move {
        let mut readings = handle.embed(texts(50, 40), Pooling::Mean).expect("texts");
        while handle.load().n_running == 0 {
            turn(&mut readings).await;
        }
        drop(readings);
        for _ in 0..20 {
            Yield(false).await;
        }
        let load = handle.load();
        assert_eq!((load.n_waiting, load.n_running, load.pages.n_used, load.pages.n_cached), (0, 0, 0, 0));
    };
    run_all(1, vec![Box::pin(async { drop(driver.run().await.expect("a device")) }), Box::pin(caller)]);
    let n_row = n_row.load(std::sync::atomic::Ordering::Relaxed);
    assert!((16..16 * 10).contains(&n_row), "{n_row} of 2000 rows ran");
}

#[test]
fn texts_that_cannot_run_are_refused_with_the_reason() {
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes that fit");
    let refused = |texts: Vec<Vec<u32>>| {
        let request = EmbedRequest::new(texts, EmbedOptions::default());
        handle.embed(request, Pooling::Mean).expect_err("a text that does not fit").to_string()
    };
    assert_eq!(refused(vec![vec![3], Vec::new()]), "the prompt has no tokens");
    assert_eq!(refused(vec![vec![3; 65]]), "the prompt has 65 tokens, but the context has 64");
    assert_eq!(refused(vec![vec![20]]), "token 20 is not in the vocabulary of 20");
    assert_eq!(handle.load().n_waiting, 0);
    let readings = handle.embed(texts(20, 5), Pooling::Mean).expect("texts");
    drop(driver);
    for readings in [readings, handle.embed(texts(1, 5), Pooling::Mean).expect("texts")] {
        let e = pollster::block_on(readings).expect_err("no driver");
        assert!(matches!(e, ServeError::Stopped), "{e}");
    }
    assert_eq!(handle.load().n_waiting, 0);
    let nothing = handle.embed(EmbedRequest::new(Vec::new(), EmbedOptions::default()), Pooling::Mean);
    assert_eq!(pollster::block_on(nothing.expect("no texts")).expect("no driver is needed"), []);
}
