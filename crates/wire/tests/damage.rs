//! Damage by hand: each rule of the decoders has a frame that breaks it.

use chaski_wire::{
    Answer, Assembler, Body, Control, Drain, Dtype, Fail, FailCode, Frame, HEADER, Kind, Limits, MAX_ASSIGN,
    MAX_CONTROL, Pair, Rows, Run, Task, WireError,
};

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/golden/{name}.frame", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The error of a golden frame with other bytes at an offset.
fn error_of(name: &str, at: usize, bytes: &[u8]) -> WireError {
    let mut frame = golden(name);
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    Frame::decode(&frame, &Limits::default()).expect_err(&format!("{name}: {bytes:?} at {at}"))
}

/// A frame of a kind with any payload.
fn framed(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let mut frame = golden("ping");
    frame[5] = kind as u8;
    frame[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.truncate(HEADER);
    frame.extend(payload);
    frame
}

#[test]
fn headers_are_checked() {
    let limits = Limits::default();
    assert_eq!(Frame::decode(b"CHSW", &limits), Err(WireError::Short { found: 4 }));
    assert_eq!(error_of("ping", 0, b"X"), WireError::Magic { found: *b"XHSW" });
    assert_eq!(error_of("ping", 4, &[2]), WireError::Version { found: 2, expected: 1 });
    assert_eq!(error_of("ping", 5, &[0x99]), WireError::Kind { found: 0x99 });
    let flags = |found| WireError::Flags { kind: Kind::Ping, found };
    assert_eq!(error_of("ping", 6, &[8]), flags(8));
    assert_eq!(error_of("ping", 6, &[1]), flags(1));
    assert_eq!(error_of("ping", 6, &[2]), flags(2));
    assert_eq!(error_of("ping", 8, &[7]), WireError::Length { kind: Kind::Ping, expected: 7, found: 8 });
    for (at, field) in [(16, "task"), (24, "epoch"), (28, "layer"), (30, "fragment")] {
        let expected = WireError::Field { kind: Kind::Ping, field, expected: "0", found: 1 };
        assert_eq!(error_of("ping", at, &[1]), expected);
    }
    assert!(matches!(error_of("task", 16, &[0]), WireError::Field { field: "task", .. }));
    assert!(matches!(error_of("ping", 12, &[1]), WireError::Checksum { found: 0, .. }));
    assert!(matches!(error_of("pong", 39, &[1]), WireError::Checksum { .. }));
    assert!(matches!(error_of("task", 6, &[2]), WireError::Fragment { expected: 0, .. }));
    assert!(matches!(error_of("task", 30, &[1]), WireError::Fragment { found: 1, .. }));
}

#[test]
fn lengths_beyond_the_limit_are_refused_before_they_are_read() {
    let found = error_of("task", 8, &u32::MAX.to_le_bytes());
    let (limit, found_bytes) = (4 << 20, u64::from(u32::MAX));
    let expected = WireError::Limit { kind: Kind::Task, of: "bytes in a frame", limit, found: found_bytes };
    assert_eq!(found, expected);
    // Counts whose product exceeds 64 bits.
    for (at, name) in [(32, "task"), (40, "task"), (32, "result"), (36, "result-sum")] {
        let error = error_of(name, at, &u32::MAX.to_le_bytes());
        assert!(!matches!(error, WireError::Limit { .. }), "{error}");
    }
    let mut frame = golden("result-sum");
    frame[32..40].fill(0xff);
    let expected = u64::MAX;
    let error = Frame::decode(&frame, &Limits::default());
    assert_eq!(error, Err(WireError::Length { kind: Kind::Result, expected, found: 28 }));
}

#[test]
fn fields_of_tasks_are_checked() {
    let field = |at: usize, bytes: &[u8]| match error_of("task", at, bytes) {
        WireError::Field { field, found, .. } => (field, found),
        other => panic!("{other}"),
    };
    assert_eq!(field(32, &[0]), ("columns", 0));
    assert_eq!(field(36, &[0]), ("pairs", 0));
    assert_eq!(field(40, &[0]), ("width", 0));
    assert_eq!(field(44, &[4]), ("dtype in", 4));
    assert_eq!(field(45, &[9]), ("dtype out", 9));
    assert_eq!(field(46, &[0]), ("runs", 0));
    assert_eq!(field(52, &[1]), ("columns of the step", 1));
    // Runs: experts 3 and 9 with 2 and 1 pairs.
    assert_eq!(field(60, &[3]), ("expert", 3));
    assert_eq!(field(62, &[0]), ("pairs of an expert", 0));
    assert_eq!(field(62, &[2]), ("sum of the runs", 4));
    // Pairs: columns 0 and 1, then 1.
    assert_eq!(field(64, &[2]), ("column", 2));
    assert_eq!(field(68, &[0]), ("column", 0));
    let infinite = f32::INFINITY.to_le_bytes();
    let expected = WireError::NotFinite { kind: Kind::Task, row: 1, column: 1 };
    assert_eq!(error_of("task", 76 + 16, &infinite), expected);
    assert!(matches!(error_of("task-bf16", 66, &[1]), WireError::Field { field: "padding", .. }));
    let mut weights = golden("task-sum");
    weights[6] = 1;
    weights[12..16].fill(0);
    weights[76..80].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = Frame::decode(&weights, &Limits::default()).unwrap_err();
    assert!(matches!(error, WireError::Field { field: "bits of a weight", .. }), "{error}");
}

#[test]
fn blocks_of_q8_have_one_encoding() {
    // The first block begins behind header, counts, one run and one pair.
    let block = 32 + 24 + 8;
    let field = |at: usize, bytes: &[u8]| match error_of("task-q8", at, bytes) {
        WireError::Field { field, .. } => field,
        other => panic!("{other}"),
    };
    assert_eq!(field(block + 1, &[0xb8]), "sign of a scale");
    assert_eq!(field(block + 2, &[0x80]), "code");
    assert_eq!(field(block + 34 + 2 + 2, &[1]), "code behind a row");
    let infinite = error_of("task-q8", block, &[0, 0x7c]);
    assert_eq!(infinite, WireError::NotFinite { kind: Kind::Task, row: 0, column: 0 });
}

#[test]
fn other_payloads_are_checked() {
    assert!(matches!(error_of("span", 36, &[1]), WireError::Field { field: "pairs", .. }));
    assert!(matches!(error_of("span", 46, &[1]), WireError::Field { field: "runs", .. }));
    assert!(matches!(error_of("span-result", 42, &[1]), WireError::Field { field: "reserved field", .. }));
    assert!(matches!(error_of("fail", 32, &[0]), WireError::Field { field: "code", .. }));
    assert!(matches!(error_of("fail", 34, &[1]), WireError::Length { expected: 9, found: 19, .. }));
    assert_eq!(error_of("fail", 50, &[0xff]), WireError::Utf8 { kind: Kind::Fail, at: 10 });
    assert!(matches!(error_of("state", 32, &[2]), WireError::Field { field: "visible", .. }));
    assert!(matches!(error_of("state", 33, &[3]), WireError::Field { field: "throttled", .. }));
    let limits = Limits::default();
    let cancel = |ids: &[u64]| {
        let payload: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        Frame::decode(&framed(Kind::Cancel, &payload), &limits)
    };
    assert!(cancel(&[3, 4]).is_ok());
    assert!(matches!(cancel(&[]), Err(WireError::Length { expected: 8, found: 0, .. })));
    assert!(matches!(cancel(&[0]), Err(WireError::Field { field: "task", .. })));
    assert!(matches!(cancel(&[4, 4]), Err(WireError::Field { field: "task", .. })));
    let many: Vec<u64> = (1..5000).collect();
    assert!(matches!(cancel(&many), Err(WireError::Limit { of: "tasks", limit: 4096, .. })));
}

#[test]
fn control_messages_have_limits_and_rules() {
    let limits = Limits::default();
    let decode = |kind, text: &str| Frame::decode(&framed(kind, text.as_bytes()), &limits);
    assert!(decode(Kind::Drain, "{\"text\":\"x\",\"later\":[1]}").is_ok());
    assert!(matches!(decode(Kind::Drain, "{}"), Err(WireError::Json { .. })));
    assert!(matches!(decode(Kind::Drain, ""), Err(WireError::Json { .. })));
    let deep = format!("{{\"text\":\"[[[[[[[[[[\",\"a\":{}{}}}", "[".repeat(8), "]".repeat(8));
    let expected = WireError::Limit { kind: Kind::Drain, of: "levels of nesting", limit: 8, found: 9 };
    assert_eq!(decode(Kind::Drain, &deep), Err(expected));
    assert!(decode(Kind::Drain, "{\"text\":\"\\\"[[[[[[[[[[\",\"a\":[[[[[[[0]]]]]]]}").is_ok());
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(MAX_CONTROL as usize));
    assert!(matches!(decode(Kind::Drain, &long), Err(WireError::Limit { limit: 65536, .. })));
    let long = Frame::plain(Body::Control(Control::Drain(Drain { text: "x".repeat(MAX_CONTROL as usize) })));
    assert!(matches!(long.encode(&limits, false), Err(WireError::Limit { limit: 65536, .. })));
    let spaces = " ".repeat(MAX_CONTROL as usize);
    let assign = format!("{{\"epoch\":1,\"more\":false,\"units\":[],\"files\":[],\"tensors\":[]{spaces}}}");
    assert!(decode(Kind::Assign, &assign).is_ok());
    let long = " ".repeat(MAX_ASSIGN as usize + 1);
    assert!(matches!(decode(Kind::Assign, &long), Err(WireError::Limit { limit: 1_048_576, .. })));
}

#[test]
fn assignments_are_checked() {
    let text = String::from_utf8(golden("assign")[HEADER..].to_vec()).unwrap();
    let error = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        Frame::decode(&framed(Kind::Assign, changed.as_bytes()), &Limits::default()).expect_err(to)
    };
    let field = |from: &str, to: &str| match error(from, to) {
        WireError::Field { field, .. } => field,
        other => panic!("{other}"),
    };
    assert_eq!(field("\"experts\":[0,3]", "\"experts\":[3,3]"), "expert");
    assert_eq!(field("\"experts\":[0,3]", "\"experts\":[]"), "experts of a unit");
    assert_eq!(field("\"first\":1", "\"first\":4"), "end of a span");
    assert_eq!(field("\"parts\":[0,3]", "\"parts\":[3,0]"), "part");
    assert_eq!(field("\"parts\":[0,3]", "\"parts\":[0]"), "digests of a tensor");
    assert_eq!(field("\"file\":0", "\"file\":1"), "file of a tensor");
    assert_eq!(field("\"stride\":1024", "\"stride\":9223372036854775807"), "end of a part");
    assert_eq!(field("\"offset\":4096", "\"offset\":9223372036854775807"), "end of a part");
    assert!(matches!(error("0101", "010g"), WireError::Json { .. }));
    assert!(matches!(error("0101", "01"), WireError::Json { .. }));
    let hello = String::from_utf8(golden("hello")[HEADER..].to_vec()).unwrap();
    let small = hello.replace("\"fragment\":262144", "\"fragment\":1");
    let error = Frame::decode(&framed(Kind::Hello, small.as_bytes()), &Limits::default()).unwrap_err();
    assert!(matches!(error, WireError::Field { field: "length of a fragment", found: 1, .. }), "{error}");
}

fn long_task(task: u64, n_col: u32) -> Frame {
    let rows = Rows::encode(256, &vec![0.5; 256 * n_col as usize], Dtype::F32).unwrap();
    let pairs = (0..n_col as u16).map(|column| Pair { column, slot: 0 }).collect();
    let runs = vec![Run { expert: 0, n: n_col as u16 }];
    let work = Task { runs, pairs, weights: None, rows, answer: Dtype::F32, budget: 0, step_columns: n_col };
    Frame { task, epoch: 1, layer: 2, body: Body::Task(work) }
}

#[test]
fn fragments_come_in_order_and_within_their_limits() {
    let limits = Limits {
        fragment: 16 << 10,
        message: 96 << 10,
        pending: 128 << 10,
        n_pending: 2,
        ..Limits::default()
    };
    let long = |task| long_task(task, 64).encode(&Limits { message: 1 << 20, ..limits }, true).unwrap();
    let first = long(1);
    assert_eq!(first.len(), 5);

    let mut assembler = Assembler::new(limits);
    assert_eq!(assembler.push(&first[0]), Ok(None));
    let wrong = WireError::Fragment { kind: Kind::Task, task: 1, expected: 1, found: 2 };
    assert_eq!(assembler.push(&first[2]), Err(wrong));
    let dropped = WireError::Fragment { kind: Kind::Task, task: 1, expected: 0, found: 1 };
    assert_eq!(assembler.push(&first[1]), Err(dropped));
    assert_eq!(assembler.n_pending_byte(), 0);

    // Two messages at once, then a third one that is one too many.
    for message in &first[..4] {
        assert_eq!(assembler.push(message), Ok(None));
    }
    let (second, third) = (long(2), long(3));
    assert_eq!(assembler.push(&second[0]), Ok(None));
    let error = assembler.push(&third[0]).unwrap_err();
    assert!(
        matches!(error, WireError::Limit { of: "unfinished messages", limit: 2, found: 3, .. }),
        "{error}"
    );
    assert_eq!(assembler.push(&first[4]).unwrap(), Some(long_task(1, 64)));
    assembler.forget(2);
    assert_eq!(assembler.n_pending_byte(), 0);

    // Three quarters of two messages exceed the memory of a connection.
    let mut failed = None;
    for i in 0..5 {
        failed = failed.or(assembler.push(&second[i]).err()).or(assembler.push(&third[i]).err());
    }
    assert!(
        matches!(failed, Some(WireError::Limit { of: "bytes of unfinished messages", .. })),
        "{failed:?}"
    );

    let longest = long_task(4, 200).encode(&Limits { message: 1 << 20, ..limits }, true).unwrap();
    let mut assembler = Assembler::new(limits);
    let error = longest.iter().find_map(|message| assembler.push(message).err());
    assert!(matches!(error, Some(WireError::Limit { of: "bytes in a message", .. })), "{error:?}");
    let error = long_task(4, 200).encode(&limits, true).unwrap_err();
    assert!(matches!(error, WireError::Limit { of: "bytes in a message", .. }));
}

#[test]
fn empty_fragments_are_refused() {
    let limits = Limits { fragment: 4 << 10, ..Limits::default() };
    let mut message = long_task(1, 16).encode(&limits, false).unwrap().swap_remove(0);
    message.truncate(HEADER);
    message[8..12].fill(0);
    let error = Assembler::new(limits).push(&message).unwrap_err();
    assert_eq!(error, WireError::Length { kind: Kind::Task, expected: 1, found: 0 });
}

#[test]
fn texts_of_failures_are_cut_between_characters() {
    let fail = Fail::new(FailCode::INTERNAL, 0, &"é".repeat(1000));
    assert_eq!(fail.text.len(), 1024);
    let odd = Fail::new(FailCode::INTERNAL, 0, &format!("x{}", "é".repeat(1000)));
    assert_eq!(odd.text.len(), 1023);
    let frame = Frame { task: 3, epoch: 1, layer: 1, body: Body::Fail(odd) };
    let bytes = frame.encode(&Limits::default(), true).unwrap();
    assert_eq!(Frame::decode(&bytes[0], &Limits::default()), Ok(frame));
}

#[test]
fn answers_of_other_headers_cannot_be_written() {
    let rows = Rows::encode(1, &[1.0], Dtype::F32).unwrap();
    let answer = Answer { rows, queue: 0, queued: 0, running: 0 };
    let frame = Frame::plain(Body::Result { answer, sum: false });
    let error = frame.encode(&Limits::default(), false).unwrap_err();
    assert_eq!(error.to_string(), "Result: task is 0, expected more than 0");
}
