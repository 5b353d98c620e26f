//! Tests of the shelf: models are numbers, and nothing is loaded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chaski::Source;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::News;
use super::offer::{KeepAlive, LoadError, Loader, Offer};
use super::shelf::{Asked, Budget, Room, Shelf, State, Step};
use crate::about::About;
use crate::error::Kind;
use crate::model::Size;

/// The size of each model, all of it on a device.
const TEN: Size = Size { n_byte: 10, n_device: 10 };

const MINUTE: Duration = Duration::from_secs(60);

fn offer(id: &str, n_byte: u64) -> Offer {
    let loader: Loader = Arc::new(|_| Err(LoadError::Other("tests load nothing".into())));
    let offer = Offer::new(id, Source::Default, loader);
    offer.about.set(Ok(About { n_byte, ..About::default() })).unwrap();
    Offer { keep_alive: KeepAlive::For(MINUTE), ..offer }
}

/// A shelf with models of ten bytes each.
fn shelf(room: Room, ids: &[&str], now: Instant) -> Shelf<u32> {
    let mut shelf = Shelf::new(room);
    shelf.offer(ids.iter().map(|id| offer(id, 10)).collect(), now);
    shelf
}

fn at_most(n: usize) -> Room {
    Room { n_model: Some(n), n_byte: None }
}

/// Loads and frees until nothing is to be done; returns what was done.
fn settle(shelf: &mut Shelf<u32>, now: Instant) -> Vec<String> {
    let mut done = Vec::new();
    while let Some(step) = shelf.next(now) {
        match step {
            Step::Load(offer) => {
                done.push(format!("+{}", offer.id));
                shelf.loaded(&offer.id, 0, TEN, now);
            }
            Step::End(id, _) => {
                done.push(format!("-{id}"));
                shelf.ended(&id);
            }
            Step::Tell => {}
        }
    }
    done
}

/// A request that waits until it is served.
fn wait(shelf: &mut Shelf<u32>, id: &str, now: Instant) {
    shelf.join(id);
    assert!(matches!(shelf.ask(id, now), Asked::Wait), "{id}");
}

/// A waiting request gets its model.
fn get(shelf: &mut Shelf<u32>, id: &str, now: Instant) {
    assert!(matches!(shelf.ask(id, now), Asked::Ready(_)), "{id}");
    shelf.part(id);
}

/// A request that has waited, and uses its model.
fn hold(shelf: &mut Shelf<u32>, id: &str, now: Instant) -> Vec<String> {
    wait(shelf, id, now);
    let done = settle(shelf, now);
    get(shelf, id, now);
    done
}

/// A request from its beginning to its end.
fn serve(shelf: &mut Shelf<u32>, id: &str, now: Instant) -> Vec<String> {
    let done = hold(shelf, id, now);
    shelf.release(id, now);
    done
}

#[test]
fn the_model_that_was_not_used_for_longest_makes_room() {
    let now = Instant::now();
    let mut shelf = shelf(at_most(2), &["a", "b", "c"], now);
    assert_eq!(serve(&mut shelf, "a", now), ["+a"]);
    assert_eq!(serve(&mut shelf, "b", now + Duration::from_secs(1)), ["+b"]);
    assert_eq!(serve(&mut shelf, "c", now + Duration::from_secs(2)), ["-a", "+c"]);
}

#[test]
fn a_model_in_use_leaves_after_its_last_request_and_takes_no_new_ones() {
    let now = Instant::now();
    let mut shelf = shelf(at_most(1), &["a", "b"], now);
    hold(&mut shelf, "a", now);
    wait(&mut shelf, "b", now);
    assert!(settle(&mut shelf, now).is_empty());
    wait(&mut shelf, "a", now);
    shelf.release("a", now);
    assert_eq!(settle(&mut shelf, now), ["-a", "+b"]);
    get(&mut shelf, "b", now);
    shelf.release("b", now);
    assert!(matches!(shelf.ask("a", now), Asked::Wait));
    assert_eq!(settle(&mut shelf, now), ["-b", "+a"]);
}

#[test]
fn a_model_stays_if_nobody_waits_for_its_room_any_more() {
    let now = Instant::now();
    let mut shelf = shelf(at_most(1), &["a", "b"], now);
    hold(&mut shelf, "a", now);
    wait(&mut shelf, "b", now);
    settle(&mut shelf, now);
    shelf.part("b");
    shelf.release("a", now);
    assert!(settle(&mut shelf, now).is_empty());
    wait(&mut shelf, "b", now);
    shelf.part("b");
    shelf.join("a");
    get(&mut shelf, "a", now);
}

#[test]
fn models_leave_when_nobody_asks_for_them() {
    let now = Instant::now();
    let mut shelf = shelf(Room::default(), &["a", "b"], now);
    serve(&mut shelf, "a", now);
    serve(&mut shelf, "b", now);
    shelf.keep("b", KeepAlive::Always);
    assert_eq!(shelf.deadline(), Some(now + MINUTE));
    assert!(settle(&mut shelf, now + MINUTE / 2).is_empty());
    assert_eq!(settle(&mut shelf, now + MINUTE), ["-a"]);
    assert_eq!(shelf.deadline(), None);
    shelf.unload("b").unwrap();
    assert_eq!(settle(&mut shelf, now), ["-b"]);
    assert_eq!(shelf.unload("b").unwrap_err().kind, Kind::Invalid);
}

#[test]
fn models_that_stay_leave_no_room_and_the_error_says_so() {
    let now = Instant::now();
    let mut shelf = shelf(at_most(1), &["a", "b"], now);
    serve(&mut shelf, "a", now);
    shelf.keep("a", KeepAlive::Always);
    wait(&mut shelf, "b", now);
    assert!(matches!(shelf.next(now), Some(Step::Tell)), "somebody waits");
    assert!(settle(&mut shelf, now).is_empty());
    let Asked::Refused(error) = shelf.ask("b", now) else { panic!("there is no room") };
    assert_eq!(error.kind, Kind::Memory);
    assert!(error.message.contains("room for 1 models"), "{}", error.message);
    let mut shelf = self::shelf(Room { n_model: None, n_byte: Some(25) }, &["a", "b", "c"], now);
    serve(&mut shelf, "a", now);
    serve(&mut shelf, "b", now);
    assert_eq!(serve(&mut shelf, "c", now), ["-a", "+c"]);
}

#[test]
fn the_memory_of_devices_makes_others_leave_but_is_no_limit() {
    let now = Instant::now();
    let at = |seconds| now + Duration::from_secs(seconds);
    let mut shelf = shelf(Room::default(), &["a", "b", "c", "d"], now);
    assert_eq!(shelf.budget(), None, "no device is known");
    assert_eq!(serve(&mut shelf, "a", now), ["+a"]);
    shelf.know([("gpu 0".to_owned(), 15), ("gpu 1".to_owned(), 10)]);
    shelf.know([("gpu 1".to_owned(), 10)]);
    assert_eq!(shelf.budget(), Some(Budget::Devices(25)));
    assert_eq!(serve(&mut shelf, "b", at(1)), ["+b"]);
    assert_eq!(serve(&mut shelf, "c", at(2)), ["-a", "+c"], "the one that was not used for longest");
    // Those that stay do, and the device is asked.
    shelf.keep("b", KeepAlive::Always);
    assert_eq!(serve(&mut shelf, "d", at(3)), ["-c", "+d"]);
    shelf.keep("d", KeepAlive::Always);
    assert_eq!(serve(&mut shelf, "a", at(4)), ["+a"]);
    // Models on a CPU take nothing of it.
    let mut shelf = self::shelf(Room::default(), &["a", "b"], now);
    shelf.know([("gpu".to_owned(), 15)]);
    wait(&mut shelf, "a", now);
    let Some(Step::Load(_)) = shelf.next(now) else { panic!("a is loaded") };
    shelf.loaded("a", 0, Size { n_device: 0, ..TEN }, now);
    get(&mut shelf, "a", now);
    shelf.release("a", now);
    assert_eq!(serve(&mut shelf, "b", at(1)), ["+b"]);
}

#[test]
fn a_budget_of_the_operator_holds_whatever_devices_have() {
    let now = Instant::now();
    let mut shelf = shelf(Room { n_model: None, n_byte: Some(15) }, &["a", "b"], now);
    shelf.know([("gpu".to_owned(), 100)]);
    assert_eq!(shelf.budget(), Some(Budget::Fixed(15)));
    serve(&mut shelf, "a", now);
    assert_eq!(serve(&mut shelf, "b", now), ["-a", "+b"]);
    shelf.keep("b", KeepAlive::Always);
    wait(&mut shelf, "a", now);
    assert!(settle(&mut shelf, now).is_empty());
    assert!(matches!(shelf.ask("a", now), Asked::Refused(error) if error.kind == Kind::Memory));
}

#[test]
fn models_that_are_larger_than_their_weights_keep_to_the_budget() {
    let now = Instant::now();
    let at = |seconds| now + Duration::from_secs(seconds);
    let mut shelf = shelf(Room { n_model: None, n_byte: Some(25) }, &["a", "b"], now);
    let load = |shelf: &mut Shelf<u32>, id: &str, now| {
        wait(shelf, id, now);
        let mut done = Vec::new();
        while let Some(step) = shelf.next(now) {
            match step {
                Step::Load(offer) => {
                    done.push(format!("+{}", offer.id));
                    shelf.loaded(&offer.id, 0, Size { n_byte: 14, n_device: 14 }, now);
                }
                Step::End(id, _) => {
                    done.push(format!("-{id}"));
                    shelf.ended(&id);
                }
                Step::Tell => {}
            }
        }
        done
    };
    assert_eq!(load(&mut shelf, "a", now), ["+a"]);
    get(&mut shelf, "a", now);
    // By its weights there is room, by its caches there is none: the one that works goes when it is free.
    assert_eq!(load(&mut shelf, "b", at(1)), ["+b"]);
    get(&mut shelf, "b", at(1));
    assert!(shelf.next(at(1)).is_none(), "both work");
    shelf.release("a", at(2));
    assert_eq!(settle(&mut shelf, at(2)), ["-a"]);
    shelf.release("b", at(3));
    assert!(settle(&mut shelf, at(3)).is_empty(), "one alone stays");
    // From now on its size is known.
    assert_eq!(load(&mut shelf, "a", at(4)), ["-b", "+a"]);
    get(&mut shelf, "a", at(4));
    shelf.release("a", at(4));
    // One that is being freed makes room already: no other leaves for it.
    shelf.offer(["a", "b", "c"].map(|id| offer(id, 5)).into(), now);
    assert_eq!(load(&mut shelf, "c", at(5)), ["+c", "-a"]);
}

#[test]
fn missing_memory_makes_others_leave_and_then_fails() {
    let now = Instant::now();
    let mut shelf = shelf(Room::default(), &["a", "b"], now);
    serve(&mut shelf, "a", now);
    wait(&mut shelf, "b", now);
    let Some(Step::Load(_)) = shelf.next(now) else { panic!("b is loaded") };
    let full = LoadError::Memory("no memory".into());
    shelf.failed("b", &full, now);
    let Some(Step::End(id, _)) = shelf.next(now) else { panic!("a makes room") };
    shelf.ended(&id);
    let Some(Step::Load(_)) = shelf.next(now) else { panic!("b is tried again") };
    shelf.failed("b", &full, now);
    assert!(shelf.next(now).is_none());
    let later = now + Duration::from_secs(29);
    let Asked::Refused(error) = shelf.ask("b", later) else { panic!("it failed") };
    assert_eq!((error.kind, error.retry_after), (Kind::Memory, Some(30)));
    assert!(matches!(shelf.ask("b", now + Duration::from_secs(30)), Asked::Wait));
}

#[test]
fn offers_change_while_models_are_in_use() {
    let now = Instant::now();
    let mut shelf = shelf(Room::default(), &["a", "b"], now);
    wait(&mut shelf, "a", now);
    wait(&mut shelf, "b", now);
    assert_eq!(settle(&mut shelf, now), ["+a", "+b"]);
    get(&mut shelf, "a", now);
    get(&mut shelf, "b", now);
    let changed = Offer { stamp: 7, ..offer("b", 10) };
    shelf.offer(vec![changed, offer("c", 10)], now);
    assert!(settle(&mut shelf, now).is_empty());
    shelf.release("a", now);
    shelf.release("b", now);
    assert_eq!(settle(&mut shelf, now), ["-a", "-b"]);
    let ids: Vec<_> = shelf.entries().iter().map(|e| (e.offer.id.as_str(), e.offer.stamp)).collect();
    assert_eq!(ids, [("b", 7), ("c", 0)]);
}

#[test]
fn models_that_were_added_are_no_offers() {
    let now = Instant::now();
    let mut shelf = shelf(Room::default(), &["a"], now);
    let added = Offer { keep_alive: KeepAlive::Always, ..offer("own", 10) };
    shelf.put(added, 7, TEN, now);
    shelf.offer(vec![Offer { stamp: 9, ..offer("own", 10) }], now);
    assert!(settle(&mut shelf, now).is_empty());
    assert!(matches!(shelf.ask("own", now), Asked::Ready(model) if *model == 7));
    assert_eq!(shelf.entries().len(), 1);
}

#[test]
fn changes_are_told_once() {
    let now = Instant::now();
    let mut shelf = shelf(Room::default(), &["a", "b"], now);
    let mut news = News::default();
    assert!(news.next(shelf.entries()).is_empty(), "it begins with what is there");
    wait(&mut shelf, "a", now);
    assert!(matches!(shelf.next(now), Some(Step::Load(_))));
    shelf.progress("a", 0.507);
    let events = news.next(shelf.entries());
    let [event] = &*events else { panic!("{events:?}") };
    assert_eq!((&event["model"], &event["event"]), (&json!("a"), &json!("model_status")));
    assert_eq!(
        (&event["data"]["status"], &event["data"]["progress"]["value"]),
        (&json!("loading"), &json!(0.5))
    );
    shelf.progress("a", 0.509);
    assert!(news.next(shelf.entries()).is_empty(), "no more than a hundred");
    shelf.failed("a", &LoadError::Other("broken".into()), now);
    assert_eq!(news.next(shelf.entries())[0]["data"]["failed"], true);
    shelf.offer(vec![offer("a", 10), offer("c", 10)], now);
    let events: Vec<Value> =
        news.next(shelf.entries()).iter().map(|event| json!([event["model"], event["event"]])).collect();
    let expected =
        [json!(["b", "model_remove"]), json!(["*", "models_reload"]), json!(["c", "model_status"])];
    assert_eq!(events, expected);
}

/// The next event of a random course.
#[derive(Clone, Debug)]
enum Event {
    Ask(usize),
    /// A request that waits goes, or one that is served ends.
    Leave(usize),
    Work,
    Fail,
    Unload(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..4usize).prop_map(Event::Ask),
        4 => (0..8usize).prop_map(Event::Leave),
        6 => Just(Event::Work),
        1 => Just(Event::Fail),
        1 => (0..4usize).prop_map(Event::Unload),
        1 => (0..90u64).prop_map(Event::Pass),
    ]
}

const IDS: [&str; 4] = ["a", "b", "c", "d"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever happens: no model in use is freed, no more models have a place than there are, and everybody who waits
    /// is served in the end.
    #[test]
    fn everybody_is_served(events in prop::collection::vec(event(), 0..60), n_model in 1..4usize) {
        let mut now = Instant::now();
        let mut shelf = shelf(at_most(n_model), &IDS, now);
        // Requests: the model, and true once it is served.
        let mut requests: Vec<(usize, bool)> = Vec::new();
        let mut in_work: Vec<Step<u32>> = Vec::new();
        let poll = |shelf: &mut Shelf<u32>, requests: &mut Vec<(usize, bool)>, now| {
            requests.retain_mut(|(model, is_served)| {
                if *is_served {
                    return true;
                }
                match shelf.ask(IDS[*model], now) {
                    Asked::Ready(_) => *is_served = true,
                    Asked::Wait => return true,
                    Asked::Refused(_) => {}
                }
                shelf.part(IDS[*model]);
                *is_served
            });
        };
        let work = |shelf: &mut Shelf<u32>, in_work: &mut Vec<Step<u32>>, fails: bool, now| {
            match in_work.pop() {
                Some(Step::Load(offer)) if fails => shelf.failed(&offer.id, &LoadError::Memory("full".into()), now),
                Some(Step::Load(offer)) => shelf.loaded(&offer.id, 0, TEN, now),
                Some(Step::End(id, _)) => shelf.ended(&id),
                Some(Step::Tell) | None => {}
            }
        };
        for event in events {
            match event {
                Event::Ask(model) => {
                    shelf.join(IDS[model]);
                    requests.push((model, false));
                }
                Event::Leave(i) if i < requests.len() => match requests.swap_remove(i) {
                    (model, true) => shelf.release(IDS[model], now),
                    (model, false) => shelf.part(IDS[model]),
                },
                Event::Leave(_) => {}
                Event::Work => work(&mut shelf, &mut in_work, false, now),
                Event::Fail => work(&mut shelf, &mut in_work, true, now),
                Event::Unload(model) => drop(shelf.unload(IDS[model])),
                Event::Pass(seconds) => now += Duration::from_secs(seconds),
            }
            poll(&mut shelf, &mut requests, now);
            while let Some(step) = shelf.next(now) {
                if let Step::End(id, _) = &step {
                    let is_used = requests.iter().any(|(model, is_served)| *is_served && IDS[*model] == id);
                    prop_assert!(!is_used, "{id} is in use");
                }
                in_work.push(step);
            }
            poll(&mut shelf, &mut requests, now);
            let n_place = shelf.entries().iter().filter(|entry| {
                matches!(entry.state, State::Loaded(_) | State::Loading(_) | State::Leaving { .. } | State::Ending { .. })
            });
            prop_assert!(n_place.count() <= n_model);
        }
        for _ in 0..100 {
            while !in_work.is_empty() {
                work(&mut shelf, &mut in_work, false, now);
            }
            poll(&mut shelf, &mut requests, now);
            if let Some(i) = requests.iter().position(|(_, is_served)| *is_served) {
                shelf.release(IDS[requests.swap_remove(i).0], now);
            }
            in_work.extend(std::iter::from_fn(|| shelf.next(now)));
        }
        prop_assert!(requests.is_empty(), "{requests:?}");
    }
}
