//! The cost model against numbers of a second source (latency_model.py), and the planner's choices.

use chaski_swarm::{
    Available, Choice, Cost, Drafts, ExpertSplit, Link, ModelSize, PlanError, Rates, WorkerRates,
    best_fan_out, phase_time, plan,
};

const ATTENTION: f64 = 2048.0 * 4096.0 * 2.0 + 2.0 * 2048.0 * 512.0;
const RATES: Rates = Rates { hub: 300e9, worker: 200e9, readback: 1.5e-4 };
const DRAFTS: Drafts = Drafts { n: 4, kept: 0.75, seconds: 4.5e-4 };

/// Sizes of a model: layers, those with experts, width, experts, used, then weights.
fn size(counts: [u32; 5], expert: f64, layer: f64, dense: f64, vocabulary: f64, shared: f64) -> ModelSize {
    let [n_layer, n_moe_layer, width, n_expert, n_used] = counts;
    let embeddings = 2.0 * vocabulary * f64::from(width);
    ModelSize {
        n_layer,
        n_moe_layer,
        width,
        n_expert,
        n_used,
        expert,
        layer,
        shared,
        dense,
        embeddings,
        bytes_per_weight: 0.5625,
    }
}

fn qwen3() -> ModelSize {
    size([48, 48, 2048, 128, 8], 3.0 * 2048.0 * 768.0, ATTENTION, 0.0, 151_936.0, 0.0)
}

fn mixtral() -> ModelSize {
    size([32, 32, 4096, 8, 2], 3.0 * 4096.0 * 14336.0, 41.9e6, 0.0, 32_000.0, 0.0)
}

fn gpt_oss() -> ModelSize {
    size([36, 36, 2880, 128, 4], 3.0 * 2880.0 * 2880.0, 26.5e6, 0.0, 201_088.0, 0.0)
}

fn deepseek() -> ModelSize {
    size([61, 58, 7168, 256, 8], 3.0 * 7168.0 * 2048.0, 187e6, 3.0 * 396e6, 129_280.0, 44e6)
}

fn llama() -> ModelSize {
    size([80, 0, 8192, 0, 0], 0.0, 151e6 + 704.6e6, 0.0, 128_256.0, 0.0)
}

fn link(ms: f64, megabit: f64) -> Link {
    Link { rtt: ms * 1e-3, rate: megabit * 1e6 / 8.0 }
}

const fn split(fan_out: u32, value: f64, sum: bool) -> ExpertSplit {
    ExpertSplit { fan_out, value, sum }
}

fn near(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 1e-3, "{what}: {found}, expected {expected}");
}

#[test]
fn phases_of_8_answers_take_the_times_of_eq_18() {
    // Table 1 of MoEx has 51.2, 28.7, 23.1, 20.4 for the same.
    for (h, expected) in [(1, 42.7788), (2, 27.573), (3, 22.3754), (4, 19.6149)] {
        near(phase_time(h, 8, 20.0, 0.5), expected, "eq. 18");
    }
    near(phase_time(1, 1, 20.0, 0.5), 20.0 * 0.125f64.exp(), "mean of a lognormal distribution");
    assert_eq!(format!("{:.0}", phase_time(3, 5, 20.0, 1e-9)), "20", "without spread all is the median");
}

#[test]
fn table_3_counts_a_round_trip_twice() {
    // MoEx: 48 layers of 1.5 ms attention, 0.7 ms experts, 0.2 ms readback; RTT in ms, its value for h = 1.
    let (layers, work): (f64, f64) = (48.0, 2.4);
    for (rtt, printed, right) in
        [(0.5, 163.0, 139.0), (2.0, 307.0, 211.0), (10.0, 1075.0, 595.0), (50.0, 4915.0, 2515.0)]
    {
        let twice = layers * (work + 2.0 * rtt);
        let once = layers * (work + rtt);
        assert!(f64::abs(twice - printed) < 0.5, "RTT {rtt}: {twice}, printed {printed}");
        assert!(f64::abs(once - right) < 0.5, "RTT {rtt}: {once}, expected {right}");
    }
    // The model of this crate has the corrected form.
    let mut model = ModelSize { bytes_per_weight: 0.0, ..qwen3() };
    model.n_layer = 48;
    let rates = Rates { readback: 0.0, ..RATES };
    let unbounded = Link { rtt: 2e-3, rate: f64::INFINITY };
    let cost = model.experts(split(1, 2.0, true), unbounded, rates, 1);
    near(cost.trips, 48.0 * 2e-3, "round trips");
}

/// Tokens per second of a model over a link: spans, with drafts; experts f16 summed at one worker, exact, at 8 workers,
/// with drafts. Zeros for what a dense model does not have.
type Row = (fn() -> ModelSize, f64, f64, u32, [f64; 6]);

/// By latency_model.py, section 8.
const TABLE: [Row; 20] = [
    (qwen3, 0.3, 1e3, 3, [80.8357, 90.8354, 23.9671, 14.95, 16.8677, 41.2552]),
    (qwen3, 0.3, 1e4, 3, [83.2163, 95.8872, 25.7117, 24.1491, 27.2958, 51.0222]),
    (qwen3, 3.0, 200.0, 3, [45.3646, 61.5696, 5.4375, 3.2286, 3.4537, 11.4491]),
    (qwen3, 30.0, 50.0, 3, [9.1792, 19.0625, 0.6548, 0.4925, 0.5094, 1.6964]),
    (mixtral, 0.3, 1e3, 4, [24.8916, 27.3253, 16.8172, 14.738, 20.9193, 21.2571]),
    (mixtral, 0.3, 1e4, 4, [25.4903, 28.5312, 17.9571, 17.6907, 24.8428, 24.476]),
    (mixtral, 3.0, 200.0, 4, [18.1263, 21.2719, 6.1485, 4.888, 5.961, 9.7219]),
    (mixtral, 30.0, 50.0, 4, [5.5898, 9.2431, 0.9178, 0.7953, 0.8639, 2.0442]),
    (gpt_oss, 0.3, 1e3, 9, [46.8262, 45.1971, 25.2079, 18.8889, 23.7727, 32.9994]),
    (gpt_oss, 0.3, 1e4, 9, [50.3459, 50.8171, 27.2598, 26.308, 33.1993, 39.355]),
    (gpt_oss, 3.0, 200.0, 9, [19.1237, 24.4107, 6.6604, 4.619, 5.1989, 11.9169]),
    (gpt_oss, 30.0, 50.0, 9, [3.1233, 6.1958, 0.8533, 0.6957, 0.7335, 2.0658]),
    (deepseek, 0.3, 1e3, 48, [6.7349, 6.7601, 7.2143, 4.0809, 5.5111, 7.5039]),
    (deepseek, 0.3, 1e4, 48, [7.7722, 8.662, 7.8963, 7.2842, 11.6733, 8.7996]),
    (deepseek, 3.0, 200.0, 48, [2.731, 2.9872, 2.87, 1.1356, 1.3093, 3.679]),
    (deepseek, 30.0, 50.0, 48, [0.5019, 0.7687, 0.473, 0.2357, 0.2547, 0.8991]),
    (llama, 0.3, 1e3, 5, [4.9176, 14.1183, 0.0, 0.0, 0.0, 0.0]),
    (llama, 0.3, 1e4, 5, [4.9753, 14.9335, 0.0, 0.0, 0.0, 0.0]),
    (llama, 3.0, 200.0, 5, [4.3988, 10.8178, 0.0, 0.0, 0.0, 0.0]),
    (llama, 30.0, 50.0, 5, [2.4897, 4.9717, 0.0, 0.0, 0.0, 0.0]),
];

#[test]
fn steps_take_the_times_of_the_model() {
    for (model, ms, megabit, n_span, expected) in TABLE {
        let (model, link) = (model(), link(ms, megabit));
        assert_eq!(model.n_span(8e9), n_span);
        let rate = |cost: Cost| 1.0 / cost.seconds();
        let drafted = |cost: Cost| 1.0 / DRAFTS.seconds_per_token(cost.seconds());
        let f = model.n_used.min(8);
        let found = [
            rate(model.spans(n_span, link, RATES, 1)),
            drafted(model.spans(n_span, link, RATES, 5)),
            rate(model.experts(split(1, 2.0, true), link, RATES, 1)),
            rate(model.experts(split(1, 4.0, false), link, RATES, 1)),
            rate(model.experts(split(f, 2.0, true), link, RATES, 1)),
            drafted(model.experts(split(1, 2.0, true), link, RATES, 5)),
        ];
        for (found, expected) in found.into_iter().zip(expected).filter(|(_, e)| *e > 0.0) {
            near(found, expected, &format!("{model:?} over {link:?}"));
        }
    }
    let cost = qwen3().experts(split(1, 2.0, true), link(0.3, 1e3), RATES, 1);
    assert_eq!((cost.n_byte, cost.n_trip), (393_216.0, 48));
    assert_eq!(qwen3().spans(3, link(0.3, 1e3), RATES, 1).n_byte, 49_152.0);
}

#[test]
fn the_hub_alone_takes_the_times_of_the_model() {
    let rates = Rates { readback: 1.5e-4, ..RATES };
    let expected = [
        (qwen3(), [3.7497, 13.2305, 30.9919]),
        (mixtral(), [0.6271, 2.466, 7.3532]),
        (gpt_oss(), [1.9457, 7.3505, 19.847]),
        (deepseek(), [0.343, 1.3155, 3.6815]),
    ];
    for (model, expected) in expected {
        for (rate, expected) in [4e9, 16e9, 50e9].into_iter().zip(expected) {
            near(1.0 / model.alone(rate, rates, 1).seconds(), expected, "alone");
        }
    }
}

#[test]
fn batches_take_the_times_of_the_model() {
    let link = link(0.3, 1e3);
    for (b, experts, spans) in
        [(1, 23.967, 80.836), (4, 61.903, 148.115), (16, 117.373, 243.617), (64, 203.152, 570.035)]
    {
        let rate = |cost: Cost| f64::from(b) / cost.seconds();
        near(rate(qwen3().experts(split(1, 2.0, true), link, RATES, b)), experts, "experts");
        near(rate(qwen3().spans(3, link, RATES, b)), spans, "spans");
    }
}

#[test]
fn slow_experts_are_shared_and_long_round_trips_are_not() {
    // Seconds of a round trip and of an expert; the best fan-out for 8 experts, by latency_model.py, section 7.
    for (rtt, expert, expected) in [
        (3e-4, 1.3e-5, 1),
        (3e-4, 1e-4, 4),
        (3e-4, 5e-4, 8),
        (3e-4, 3e-3, 8),
        (2e-3, 1.3e-5, 1),
        (2e-3, 1e-4, 1),
        (2e-3, 5e-4, 4),
        (2e-3, 3e-3, 8),
        (2e-2, 1.3e-5, 1),
        (2e-2, 1e-4, 1),
        (2e-2, 5e-4, 1),
        (2e-2, 3e-3, 2),
    ] {
        let (found, _) = best_fan_out(8, rtt, 0.5, expert, |_| 0.0);
        assert_eq!(found, expected, "round trip {rtt}, expert {expert}");
    }
}

fn workers(n: usize, memory: f64, link: Link) -> Vec<WorkerRates> {
    vec![WorkerRates { memory, rate: 200e9, link }; n]
}

fn available() -> Available {
    Available {
        memory: 24e9,
        rate: 300e9,
        source: 0.0,
        readback: 1.5e-4,
        replicas: 1,
        exact: true,
        sum: false,
        spans: true,
        drafts: None,
    }
}

#[test]
fn a_model_that_fits_the_hub_needs_no_swarm() {
    let plan = plan(&qwen3(), &workers(8, 16e9, link(0.3, 1e3)), &available()).unwrap();
    assert_eq!(plan.choice, Choice::Alone);
    assert!(plan.reason.starts_with("the hub alone: "), "{}", plan.reason);
    assert!(plan.tried.len() == 3 && plan.tried.is_sorted_by(|a, b| a.1 <= b.1), "{:?}", plan.tried);
}

#[test]
fn spans_win_where_they_are_few_and_experts_where_spans_are_not_to_be_had() {
    let lan = workers(12, 8e9, link(0.3, 1e3));
    let spans = plan(&gpt_oss(), &lan, &available()).unwrap();
    assert!(matches!(spans.choice, Choice::Spans { n_worker: 9 | 10 }), "{}", spans.reason);
    assert!(spans.reason.contains("workers would not make it faster"), "{}", spans.reason);
    let experts = plan(&gpt_oss(), &lan, &Available { spans: false, ..available() }).unwrap();
    let Choice::Experts { split, .. } = experts.choice else { panic!("{}", experts.reason) };
    assert_eq!((split.value, split.sum), (4.0, false), "exact mode: f32, a row an expert");
    let fast =
        plan(&gpt_oss(), &lan, &Available { spans: false, exact: false, sum: true, ..available() }).unwrap();
    let Choice::Experts { split, .. } = fast.choice else { panic!("{}", fast.reason) };
    assert!(split.sum && split.value < 2.0 && fast.seconds < experts.seconds, "{}", fast.reason);
}

#[test]
fn slow_workers_take_no_part() {
    let mut mixed = workers(10, 8e9, link(0.3, 1e3));
    mixed.insert(3, WorkerRates { memory: 64e9, rate: 5e9, link: link(80.0, 10.0) });
    let plan = plan(&gpt_oss(), &mixed, &available()).unwrap();
    assert!(!plan.workers.contains(&3), "{}", plan.reason);
    // No subset in the order of indices is faster.
    let slow = plan.seconds;
    for skip in 0..mixed.len() {
        let mut fewer = mixed.clone();
        fewer.remove(skip);
        if let Ok(other) = chaski_swarm::plan(&gpt_oss(), &fewer, &available()) {
            assert!(other.seconds >= slow * 0.999, "without worker {skip} it is faster");
        }
    }
}

#[test]
fn nothing_is_planned_for_weights_that_fit_nowhere() {
    let error = plan(&deepseek(), &workers(2, 8e9, link(0.3, 1e3)), &available()).unwrap_err();
    let PlanError::Memory { needed, .. } = error else { panic!("{error}") };
    assert!(needed > 300.0, "{error}");
    let with_file = Available { source: 4e9, ..available() };
    let alone = plan(&deepseek(), &workers(2, 8e9, link(0.3, 1e3)), &with_file);
    assert_eq!(alone.unwrap().choice, Choice::Alone);
}
