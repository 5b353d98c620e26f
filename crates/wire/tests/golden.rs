//! Frames that `golden/make.py` wrote without this crate: each is read as the message it should be, and written again.

use chaski_wire::{
    Answer, Assembler, Assign, Blob, Body, Challenge, Control, Digest, Drain, Dtype, Fail, FailCode, Frame,
    Handshake, Have, Hello, Hex, Limits, PageCaps, Pair, Place, Proof, Refuse, RefuseCode, Role, Rows, Run,
    Span, State, Task, TensorParts, Token, Trim, Unit, UnitKind, Welcome,
};

/// Frames of the golden folder that have a checksum.
const WITH_CRC: [&str; 7] = ["task-sum", "result", "cancel", "pong", "assign", "hello-page", "welcome-page"];

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn digest(byte: u8) -> Digest {
    Hex([byte; 32])
}

fn rows(width: u32, values: &[f32], dtype: Dtype) -> Rows {
    let rows = Rows::encode(width, values, dtype).unwrap();
    assert_eq!(rows.dtype(), dtype);
    rows
}

/// Columns 0 and 1 for expert 3, column 1 for expert 9.
fn task(dtype: Dtype, answer: Dtype) -> Task {
    Task {
        runs: vec![Run { expert: 3, n: 2 }, Run { expert: 9, n: 1 }],
        pairs: vec![Pair { column: 0, slot: 0 }, Pair { column: 1, slot: 1 }, Pair { column: 1, slot: 0 }],
        weights: None,
        rows: rows(3, &[0.5, -1.0, 2.0, 0.0, 1.5, -0.25], dtype),
        answer,
        budget: 0,
        step_columns: 2,
    }
}

fn single(expert: u16, slot: u16, rows: Rows, answer: Dtype) -> Task {
    let (runs, pairs) = (vec![Run { expert, n: 1 }], vec![Pair { column: 0, slot }]);
    Task { runs, pairs, weights: None, rows, answer, budget: 0, step_columns: 1 }
}

fn answer(rows: Rows, queue: u8, queued: u32, running: u32) -> Answer {
    Answer { rows, queue, queued, running }
}

fn q8_values() -> Vec<f32> {
    let block = (-16..16).map(|code| 0.5 * code as f32);
    block.chain([254.0, -254.0]).collect()
}

fn data() -> Vec<(&'static str, Frame)> {
    let at = |task, epoch, layer, body| Frame { task, epoch, layer, body };
    let summed = Task {
        weights: Some(vec![0.75, 0.5, 0.25]),
        budget: 1500,
        step_columns: 64,
        ..task(Dtype::F16, Dtype::F32)
    };
    let places = vec![Place { sequence: 1, position: 10 }, Place { sequence: 4, position: 0 }];
    let values = rows(2, &[1.0, 2.0, 3.0, 4.0], Dtype::F32);
    let span = Span { places, rows: values.clone(), answer: Dtype::F32, budget: 0, step_columns: 2 };
    let six = rows(2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Dtype::F32);
    let three = rows(3, &[1.0, -2.0, 0.5], Dtype::F16);
    vec![
        ("task", at(7, 2, 5, Body::Task(task(Dtype::F32, Dtype::F16)))),
        ("task-sum", at(8, 2, 5, Body::Task(summed))),
        (
            "task-bf16",
            at(9, 0, 65535, Body::Task(single(0, 0, rows(1, &[9.969_21e37], Dtype::Bf16), Dtype::Bf16))),
        ),
        ("result", at(7, 2, 5, Body::Result { answer: answer(six, 1, 250, 1250), sum: false })),
        ("result-sum", at(8, 2, 5, Body::Result { answer: answer(three, 0, 0, 1), sum: true })),
        ("fail", at(7, 2, 5, Body::Fail(Fail::new(FailCode::BUSY, 2000, "queue füll")))),
        ("fail-frame", Frame::plain(Body::Fail(Fail::new(FailCode::BAD_FRAME, 0, "")))),
        ("cancel", Frame::plain(Body::Cancel(vec![7, 8, 1 << 40]))),
        (
            "state",
            Frame::plain(Body::State(State { visible: true, throttled: false, queue: 3, free_mib: 4096 })),
        ),
        ("ping", Frame::plain(Body::Ping(123_456_789))),
        ("pong", Frame::plain(Body::Pong(123_456_789))),
        ("span", at(11, 1, 16, Body::Span(span))),
        ("span-result", at(11, 1, 16, Body::SpanResult(answer(values, 0, 0, 0)))),
        ("trim", at(0, 1, 16, Body::Trim(Trim { sequence: 4, from: 100 }))),
    ]
}

fn control() -> Vec<(&'static str, Control)> {
    let handshake = handshake();
    let limits = Limits::default();
    let experts = Unit::Experts { layer: 0, experts: vec![0, 3] };
    let skeleton = Blob { path: "/swarm/skeleton".into(), length: 100_000, sha256: digest(0xab) };
    let tensor = TensorParts {
        name: "blk.0.ffn_up_exps.weight".into(),
        file: 0,
        offset: 4096,
        stride: 1024,
        length: 1024,
        parts: vec![0, 3],
        sha256: vec![digest(1), digest(2)],
    };
    let plan = Blob { path: "/swarm/plan".into(), length: 200_000, sha256: digest(0xef) };
    let welcome = Welcome {
        worker: 3,
        model: digest(0xab),
        skeleton,
        block: 8,
        key: Hex([0x44; 16]),
        limits,
        epoch: 1,
        plan: None,
    };
    assert_eq!([tensor.offset_of(0), tensor.offset_of(1)], [4096, 7168]);
    vec![
        ("hello", Control::Hello(hello())),
        (
            "challenge",
            Control::Challenge(Challenge {
                nonce: handshake.hub,
                proof: Some(handshake.prove(&token(), Role::Hub)),
            }),
        ),
        ("proof", Control::Proof(Proof { proof: Some(handshake.prove(&token(), Role::Worker)) })),
        ("welcome", Control::Welcome(welcome.clone())),
        ("hello-page", Control::Hello(Hello { page: Some(page()), ..hello() })),
        ("welcome-page", Control::Welcome(Welcome { plan: Some(plan), ..welcome })),
        (
            "refuse",
            Control::Refuse(Refuse { code: RefuseCode::Token, text: "the proof does not fit".into() }),
        ),
        (
            "assign",
            Control::Assign(Assign {
                epoch: 1,
                more: false,
                units: vec![experts.clone(), Unit::Span { first: 1, end: 4 }],
                files: vec!["/swarm/file/0".into()],
                tensors: vec![tensor],
            }),
        ),
        ("have", Control::Have(Have { epoch: 1, units: vec![experts], canary: digest(0xcd) })),
        ("drain", Control::Drain(Drain { text: "bye".into() })),
    ]
}

fn hello() -> Hello {
    Hello {
        build: "0.1.0".into(),
        id: Hex([0x55; 16]),
        name: "attic".into(),
        features: vec!["q8".into()],
        units: vec![UnitKind::Experts, UnitKind::Span],
        device: "cpu".into(),
        class: digest(0x33),
        memory: 4 << 30,
        cores: 8,
        limits: Limits::default(),
        nonce: digest(0x11),
        page: None,
    }
}

fn page() -> PageCaps {
    PageCaps {
        f16: true,
        subgroup: Some([16, 32]),
        max_bindings: 10,
        max_buffer_bytes: 4 << 30,
        ..PageCaps::LEAST
    }
}

fn token() -> Token {
    "000102030405060708090a0b0c0d0e0f\n".parse().unwrap()
}

fn handshake() -> Handshake {
    let hello = golden("hello.frame");
    Handshake::new(digest(0x22), digest(0x11), &hello[chaski_wire::HEADER..])
}

#[test]
fn frames_are_those_of_the_tables() {
    let limits = Limits::default();
    let control = control().into_iter().map(|(name, control)| (name, Frame::plain(Body::Control(control))));
    let all: Vec<(&str, Frame)> = data().into_iter().chain(control).collect();
    let n_file = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).unwrap();
    let n_file = n_file.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "frame"));
    // The frame of q8 has a test of its own: its values have another encoding, too.
    assert_eq!(n_file.count(), all.len() + 1);
    for (name, frame) in all {
        let bytes = golden(&format!("{name}.frame"));
        assert_eq!(Frame::decode(&bytes, &limits).as_ref(), Ok(&frame), "{name}");
        assert_eq!(frame.encode(&limits, WITH_CRC.contains(&name)), Ok(vec![bytes]), "{name}");
    }
}

#[test]
fn a_page_has_at_least_what_webgpu_guarantees() {
    let decode = |page: PageCaps| {
        let hello = Frame::plain(Body::Control(Control::Hello(Hello { page: Some(page), ..hello() })));
        let bytes = hello.encode(&Limits::default(), true).unwrap().swap_remove(0);
        Frame::decode(&bytes, &Limits::default()).map(|found| assert_eq!(found, hello))
    };
    let least = PageCaps::LEAST;
    decode(least).unwrap();
    decode(PageCaps { subgroup: Some([4, 128]), ..page() }).unwrap();
    let wrong = [
        PageCaps { max_threads: 255, ..least },
        PageCaps { max_workgroup_bytes: 0, ..least },
        PageCaps { max_groups: 65534, ..least },
        PageCaps { max_bindings: 7, ..least },
        PageCaps { max_binding_bytes: (128 << 20) - 1, ..least },
        PageCaps { max_buffer_bytes: 1, ..least },
        PageCaps { subgroup: Some([32, 16]), ..least },
        PageCaps { subgroup: Some([24, 32]), ..least },
        PageCaps { subgroup: Some([2, 32]), ..least },
        PageCaps { subgroup: Some([32, 256]), ..least },
    ];
    for page in wrong {
        let expected = if page.subgroup.is_some() { "powers of two" } else { "WebGPU guarantees" };
        let error = decode(page).unwrap_err().to_string();
        assert!(error.contains(expected), "{page:?}: {error}");
    }
}

#[test]
fn blocks_of_q8_are_codes_times_a_scale() {
    let Ok(Frame { body: Body::Task(task), .. }) =
        Frame::decode(&golden("task-q8.frame"), &Limits::default())
    else {
        panic!("expected a task");
    };
    assert_eq!((task.rows.dtype(), task.answer, task.runs[0].expert), (Dtype::Q8, Dtype::Q8, 65535));
    assert_eq!(task.rows.to_f32(), q8_values());
    assert_eq!(task.rows.as_bytes().len(), 68);
}

#[test]
fn fragments_let_a_ping_pass() {
    let bytes = golden("fragments.frames");
    let mut assembler = Assembler::new(Limits::default());
    let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (message, after) = after.split_at(u16::from_le_bytes(*length).into());
        found.push(assembler.push(message).unwrap());
        rest = after;
    }
    let [task, ping] = ["task", "ping"]
        .map(|name| data().into_iter().find(|(found, _)| *found == name).map(|(_, frame)| frame));
    assert_eq!(found, [None, ping, task]);
    assert_eq!(assembler.n_pending_byte(), 0);
}

#[test]
fn proofs_are_of_one_role_one_connection_and_one_token() {
    let (token, handshake) = (token(), handshake());
    let proof = handshake.prove(&token, Role::Worker);
    assert_eq!(handshake.verify(Some(&token), Role::Worker, Some(&proof)), Ok(()));
    assert_eq!(handshake.verify(None, Role::Worker, None), Ok(()));
    let other = Token::new([7; 16]);
    let again = Handshake { hub: digest(0x23), ..handshake };
    let changed = Handshake { hello: digest(0), ..handshake };
    let wrong = [
        handshake.verify(Some(&token), Role::Hub, Some(&proof)),
        handshake.verify(Some(&token), Role::Worker, None),
        handshake.verify(Some(&other), Role::Worker, Some(&proof)),
        again.verify(Some(&token), Role::Worker, Some(&proof)),
        changed.verify(Some(&token), Role::Worker, Some(&proof)),
    ];
    for found in wrong {
        assert!(found.unwrap_err().to_string().contains("does not fit the token"));
    }
    assert_eq!(format!("{token:?}"), "Token(..)");
    assert_eq!(token.reveal(), "000102030405060708090a0b0c0d0e0f");
    let short = "0001".parse::<Token>().unwrap_err();
    assert_eq!(short.to_string(), "expected a token of 32 hexadecimal digits, found 4 characters");
}
