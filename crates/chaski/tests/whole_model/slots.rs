//! States of slots of a service: a model with windows, restored in another service.

use chaski::serve::Request;
use chaski::{DeviceChoice, Engine, EngineBuilder, Handle, Source};
use chaski_models::KvType;

use crate::archs::Fixture;
use crate::common::{Timed, block_on, build, greedy};
use crate::serve::{Outcome, outcome};

fn ask(handle: &Handle, prompt: &[u32], n: usize, slot: u32) -> Outcome {
    let request = Request { slot: Some(slot), ..Request::new(prompt.to_vec(), greedy(n)) };
    outcome(handle.generate_tokens(request).expect("a request that fits"))
}

fn cached(found: &Outcome) -> usize {
    found.finish.as_ref().map_or(0, |(_, stats)| stats.n_cached)
}

#[test]
fn slots_of_a_model_with_windows_come_back_in_another_service() {
    let _t = Timed::new("slots");
    let name = "gpt-oss-moe";
    let f = Fixture::load(name);
    let bytes: &'static [u8] = f.gguf(false, &|_, _| {}).leak();
    let builder = || -> EngineBuilder {
        let builder = Engine::builder(Source::Bytes { name: "fixture.gguf".into(), bytes });
        builder.device(DeviceChoice::Cpu).context(512).chunk(16).sequences(2).kv(KvType::F32)
    };
    let prompt: Vec<u32> = f.tokens.iter().cycle().take(300).copied().collect();
    let first = build(builder()).spawn().expect("a thread");
    let found = ask(&first, &prompt, 8, 1);
    // Another request keeps its sequence and its text.
    let beside = Request { slot: Some(0), ..Request::new(f.tokens[..9].to_vec(), greedy(120)) };
    let beside = first.generate_tokens(beside).expect("a request that fits");
    let state = block_on(first.save_slot(1)).expect("a state");
    let beside = outcome(beside).tokens;
    assert!(state.n_token > 200, "{name}: {} tokens", state.n_token);
    assert!(state.bytes.len() as u64 <= first.max_slot_bytes(), "{name}");

    let second = build(builder()).spawn().expect("a thread");
    let running = Request { slot: Some(0), ..Request::new(f.tokens[..9].to_vec(), greedy(120)) };
    let running = second.generate_tokens(running).expect("a request that fits");
    let n = block_on(second.restore_slot(1, None, state.bytes.clone())).expect("the same model");
    assert_eq!(n, state.n_token, "{name}");
    let again = ask(&second, &prompt, 8, 1);
    assert_eq!(again.tokens, found.tokens, "{name}");
    assert!(cached(&again) > 200, "{name}: {} cached", cached(&again));
    assert_eq!(outcome(running).tokens, beside, "{name}");
    // Pages that are known already are not written again, and the state is the same.
    block_on(second.restore_slot(0, None, state.bytes.clone())).expect("the same model");
    let once_more = block_on(second.save_slot(0)).expect("a state");
    assert_eq!(once_more.n_token, state.n_token, "{name}");
    assert!(once_more.bytes == state.bytes, "{name}: another state");
    let (slot_0, slot_1) = (block_on(second.erase_slot(0)), block_on(second.erase_slot(1)));
    assert!(slot_0.expect("a number") == n && slot_1.expect("a number") > n - 20, "{name}");
    // The other request begins with the same nine tokens.
    assert!(cached(&ask(&second, &prompt, 1, 1)) <= 9, "{name}");
    first.join();
    second.join();
}
