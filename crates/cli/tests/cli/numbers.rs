//! Commands that print numbers: logits, perplexity, embeddings, benchmarks, on the CPU.

use std::path::Path;

use serde_json::Value;

use crate::{GREEDY, chaski, err, fixture, json, out, piped, run};

#[test]
fn logits_are_one_row_a_token() {
    let ids = out(&run(&["tokenize", "-p", "Once upon a time"])).trim().replace(' ', ",");
    let n = ids.split(',').count();
    let base = ["logits", "--device", "cpu", "--kv", "f32", "-q", "--tokens", ids.as_str()];
    let raw = chaski(&base).output().unwrap();
    assert!(raw.status.success(), "{}", err(&raw));
    assert_eq!(raw.stdout.len(), n * 2048 * 4);
    let rows = |extra: &[&str]| -> Vec<Vec<f32>> {
        let text = out(&chaski(&base).args(extra).output().unwrap());
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    let whole = rows(&["--json"]);
    assert_eq!((whole.len(), whole[0].len()), (n, 2048));
    let first = f32::from_le_bytes(raw.stdout[..4].try_into().unwrap());
    assert_eq!(first, whole[0][0]);
    assert_eq!(rows(&["--json", "--chunk", "1"]), whole);
}

#[test]
fn perplexity_prints_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.txt");
    std::fs::write(&file, "Once upon a time, there lived a small, playful boy named Nico. ".repeat(4))
        .unwrap();
    let args =
        ["perplexity", "--device", "cpu", "-c", "16", "--chunks", "2", "-q", "-f", file.to_str().unwrap()];
    let text = out(&run(&args));
    let value: f64 = text.strip_prefix("PPL = ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(value > 1.0 && value < 100.0 && text.contains(" +/- "), "{text}");
}

#[test]
fn bench_measures_the_cpu() {
    let args =
        ["bench", "--device", "cpu", "-p", "4", "-n", "2", "-pg", "3,1", "-r", "2", "-q", "-o", "jsonl"];
    let text = out(&run(&args));
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let tests: Vec<_> = lines.iter().map(|l| (l["n_prompt"].as_u64(), l["n_gen"].as_u64())).collect();
    assert_eq!(tests, [(Some(4), Some(0)), (Some(0), Some(2)), (Some(3), Some(1))]);
    for l in &lines {
        assert!(l["avg_ts"].as_f64().unwrap() > 0.0, "{l}");
        assert_eq!(l["samples_ns"].as_array().unwrap().len(), 2);
        for key in
            ["build_commit", "model_type", "type_k", "stddev_ts", "load_ms", "ttft_ms", "peak_gpu_bytes"]
        {
            assert!(l.get(key).is_some(), "{key}");
        }
    }
}

/// Scripts that read llama-bench's results read these.
#[test]
fn bench_writes_what_llama_bench_writes() {
    let bench =
        ["bench", "--device", "cpu", "-p", "2", "-n", "0", "-r", "1", "-b", "64", "-ctk", "f16", "-q", "-o"];
    let of = |format| out(&chaski(&bench).arg(format).output().unwrap());
    let object: Value = serde_json::from_str(&of("jsonl")).unwrap();
    let names: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    let sql = of("sql");
    let columns = sql.lines().skip(1).take_while(|l| *l != ");");
    let columns: Vec<&str> = columns.map(|l| l.trim().split(' ').next().unwrap()).collect();
    assert_eq!((columns.len(), columns[0], columns[39]), (40, "build_commit", "stddev_ts"));
    assert_eq!(names[..40], columns);
    assert_eq!(names[names.len() - 2..], ["samples_ns", "samples_ts"]);
    assert_eq!(sql.matches("\nINSERT INTO llama_bench (build_commit, ").count(), 1, "{sql}");
    for (name, value) in
        [("flash_attn", Value::from(1)), ("n_batch", 64.into()), ("split_mode", "layer".into())]
    {
        assert_eq!(object[name], value, "{name}");
    }
    assert!(object["model_type"].as_str().unwrap().ends_with(" Q4_K - Medium"), "{object}");
    let table = of("md");
    let titles: Vec<&str> = table.lines().next().unwrap().split('|').map(str::trim).collect();
    let expected = [
        "model", "size", "params", "backend", "threads", "n_batch", "n_ubatch", "type_k", "type_v", "test",
        "t/s",
    ];
    assert_eq!(titles[1..titles.len() - 1], expected, "{table}");
    assert!(table.lines().last().unwrap().starts_with("build: "), "{table}");
    let long = run(&["bench", "--device", "cpu", "-p", "1", "-n", "0", "-r", "1", "-ub", "600", "--profile"]);
    assert!(long.status.success() && !err(&long).contains("trained"), "{}", err(&long));
    assert_eq!(of("none"), "");
}

/// Nothing of llama-bench's becomes a model file, whichever of its spellings is typed.
#[test]
fn bench_takes_the_options_of_llama_bench() {
    let model = fixture();
    let model = model.to_str().unwrap();
    let lines = [
        "-m MODEL -ngl 99 -fa 1 -mmp 0 -ts 1 -b 128 -ub 64 -ctk f16 -ctv f16 -d 0 --progress",
        "--n-gpu-layers 99 --flash-attn on --mmap 1 --tensor-split 1 --batch-size 128 --ubatch-size 64 MODEL",
        "-fa 0,1 -ngl 0,99 -dio 0 -lm mmap -nkvo 0 -embd 0 -nopo 0 --no-host 0 -mg 0 -sm layer -ncmoe 0 MODEL",
        "-C 0x0 --cpu-strict 0 --poll 50 --prio 0 --numa distribute -t 1 --delay 0 -oe none --no-warmup MODEL",
        "--flash_attn 1 --n_gpu_layers 99 --cache_type_k f16 --no-kv-offload 0 --load-mode none --embeddings 0 MODEL",
        "--progress MODEL",
    ];
    for line in lines {
        let words: Vec<&str> = line.split(' ').map(|w| if w == "MODEL" { model } else { w }).collect();
        let args =
            [&["bench", "-dev", "none", "-p", "2", "-n", "0", "-r", "1", "-o", "jsonl"], &words[..]].concat();
        let text = out(&run(&args));
        let found: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        // Numbers of layers on GPUs are compared.
        let n = if line.contains("-ngl 0,99") { 2 } else { 1 };
        assert_eq!(found.len(), n, "{line}: {text}");
        let file = found[0]["model_filename"].as_str().unwrap();
        assert!(file.ends_with("storyteller-Q4_K_M.gguf") && found[0]["backends"] == "CPU", "{line}: {text}");
    }
}

#[test]
fn threads_are_measured_and_used_as_asked_for() {
    let bench = ["bench", "--device", "cpu", "-p", "2", "-n", "0", "-r", "1", "-q", "-o"];
    let text = out(&chaski(&bench).args(["jsonl", "-t", "1,3"]).output().unwrap());
    let of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["n_threads"].as_u64();
    assert_eq!(text.lines().map(of).collect::<Vec<_>>(), [Some(1), Some(3)]);
    let table = out(&chaski(&bench).args(["md", "-t", "3"]).output().unwrap());
    assert!(table.lines().next().unwrap().contains(" threads |"), "{table}");
    let story = |args: &[&str]| {
        let o = chaski(&GREEDY).args(["-p", "Once upon a time"]).args(args).output().unwrap();
        (out(&o), err(&o))
    };
    let (expected, _) = story(&[]);
    assert_eq!(story(&["-t", "1", "-tb", "2"]), (expected.clone(), String::new()));
    assert_eq!(story(&["--threads", "-1"]), (expected, String::new()));
    for command in [&["bench", "-t", "1025"][..], &["run", "-t", "1025"], &["run", "-t", "many"]] {
        assert_eq!(run(command).status.code(), Some(2), "{command:?}");
    }
}

/// A file of a model with recurrent state, of a fixture's shape, all of whose weights are 0.
fn recurrent_model(path: &Path) {
    use ggml_format::{GgmlType, GgufWriter};
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/archs/mamba2-dense.json");
    let spec: Value = serde_json::from_str(&std::fs::read_to_string(fixture).unwrap()).unwrap();
    let mut writer = GgufWriter::new();
    for (key, entry) in spec["kv"].as_object().unwrap() {
        let value = &entry["value"];
        match entry["type"].as_str().unwrap() {
            "string" => writer.set(key, value.as_str().unwrap()).unwrap(),
            "uint32" => writer.set(key, value.as_u64().unwrap() as u32).unwrap(),
            "float32" => writer.set(key, value.as_f64().unwrap() as f32).unwrap(),
            // The vocabulary, which numbers need not have.
            _ => continue,
        };
    }
    let tensors = spec["tensors"].as_array().unwrap().iter();
    let shape = |t: &Value| t["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let tensors: Vec<(&str, Vec<u64>)> = tensors.map(|t| (t["name"].as_str().unwrap(), shape(t))).collect();
    for (name, ne) in &tensors {
        writer.tensor(name, ne, GgmlType::F32).unwrap();
    }
    let mut data = writer.begin(Vec::new()).unwrap();
    for (name, ne) in &tensors {
        data.write(name, &vec![0; 4 * ne.iter().product::<u64>() as usize]).unwrap();
    }
    std::fs::write(path, data.finish().unwrap()).unwrap();
}

#[test]
fn bench_runs_the_tokens_before_a_test_once_whatever_the_model_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recurrent.gguf");
    recurrent_model(&path);
    let model = path.to_str().unwrap();
    let args = ["--device", "cpu", "-p", "4", "-n", "0", "-d", "40", "-r", "3", "--no-warmup"];
    let o = run(&[&["bench", model, "--progress", "json", "-o", "jsonl"][..], &args].concat());
    let last = err(&o).lines().rfind(|l| l.contains("\"bench\"")).map(str::to_owned);
    let last: Value = serde_json::from_str(&last.expect("progress")).unwrap();
    // A copy of the state is restored for the other runs.
    assert_eq!((&last["done"], &last["total"]), (&(40 + 3 * 4).into(), &(40 + 3 * 4).into()), "{last}");
    let result: Value = serde_json::from_str(&out(&o)).unwrap();
    assert_eq!(result["samples_ns"].as_array().unwrap().len(), 3);
}

#[test]
fn bench_measures_several_sequences_at_once() {
    let args =
        |format| ["bench", "--device", "cpu", "-npp", "4", "-ntg", "2", "-npl", "1,3", "-q", "-o", format];
    let results = json(&run(&args("json")));
    let rows = results.as_array().unwrap();
    let sizes: Vec<_> =
        rows.iter().map(|r| ["pp", "tg", "pl", "n_kv"].map(|key| r[key].as_u64().unwrap())).collect();
    assert_eq!(sizes, [[4, 2, 1, 6], [4, 2, 3, 18]]);
    for r in rows {
        let [t_pp, t_tg, t, speed] = ["t_pp", "t_tg", "t", "speed"].map(|key| r[key].as_f64().unwrap());
        assert!(t_pp > 0.0 && t_tg > 0.0 && (t_pp + t_tg - t).abs() < 1e-5 && speed > 0.0, "{r}");
    }
    let table = out(&run(&args("md")));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[0].contains("PP") && lines[0].contains("S_TG t/s"), "{table}");
}

/// The scores and the order of llama.cpp.
#[test]
fn documents_are_sorted_by_the_scores_of_a_reranker() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/encoders");
    let model = folder.join("reranker.gguf");
    let pairs = std::fs::read_to_string(folder.join("reranker.txt")).unwrap();
    let pairs: Vec<Value> = serde_json::from_str(&pairs).unwrap();
    let text = |i: usize, name: &str| pairs[i][name].as_str().unwrap();
    let model = model.to_str().unwrap();
    let common = ["rerank", "--device", "cpu", "-q", model, text(0, "query")];
    let args = |more: &[&'static str]| -> Vec<String> {
        common.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
    };
    let run_owned = |args: Vec<String>| run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let mut with_documents = args(&["--json"]);
    with_documents.extend([1, 0].map(|i| text(i, "document").to_owned()));
    let found = json(&run_owned(with_documents));
    let rows = found.as_array().unwrap();
    for (row, of) in rows.iter().zip([0, 1]) {
        assert_eq!(
            (row["index"].as_u64(), row["document"].as_str()),
            (Some(1 - of), Some(text(of as usize, "document")))
        );
        let expected = pairs[of as usize]["score"].as_f64().unwrap();
        assert!((row["score"].as_f64().unwrap() - expected).abs() < 1e-6, "{row}");
    }
    let lines = format!("{}\n\n{}\n", text(1, "document"), text(0, "document"));
    let best = args(&["-n", "1"]);
    let best = out(&piped(&best.iter().map(String::as_str).collect::<Vec<_>>(), &lines));
    assert_eq!(best, format!("{:.6}\t{}\n", pairs[0]["score"].as_f64().unwrap(), text(0, "document")));
    // Vectors of the same model, and what it does not do.
    let embed = [
        "embed",
        "--device",
        "cpu",
        "-q",
        "--pooling",
        "mean",
        "--embd-normalize",
        "-1",
        model,
        text(0, "document"),
    ];
    let vector: Vec<f64> = out(&run(&embed)).trim().split(' ').map(|v| v.parse().unwrap()).collect();
    for (found, expected) in vector.iter().zip(pairs[0]["mean_of_document"].as_array().unwrap()) {
        assert!((found - expected.as_f64().unwrap()).abs() < 1e-5);
    }
    let refused = run(&["run", "--device", "cpu", "-q", model, "Hi"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        err(&refused).contains("makes embeddings and scores, and no text (`chaski embed`"),
        "{}",
        err(&refused)
    );
    let no_scores = run(&["rerank", "--device", "cpu", "-q", fixture().to_str().unwrap(), "a", "b"]);
    assert!(err(&no_scores).contains("the model has no scores"), "{}", err(&no_scores));
    for usage in [&["rerank"][..], &["rerank", "m.gguf"], &["rerank", "m.gguf", "a", "-n", "x"]] {
        assert_eq!(run(usage).status.code(), Some(2), "{usage:?}");
    }
}

#[test]
fn texts_become_vectors_in_every_format() {
    let args = |more: &[&'static str]| [&["embed", "--device", "cpu", "-q"][..], more].concat();
    let raw = out(&run(&args(&["--pooling", "mean", "-p", "a dog\nA cat", "-p", "a dog"])));
    let lines: Vec<&str> = raw.lines().collect();
    assert_eq!(lines.len(), 3, "{raw}");
    assert_eq!(lines[0], lines[2]);
    assert_ne!(lines[0], lines[1]);
    let numbers: Vec<f64> = lines[0].split(' ').map(|n| n.parse().unwrap()).collect();
    assert_eq!(numbers.len(), 256);
    assert!((numbers.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-5);
    let object = json(&run(&args(&[
        "--pooling",
        "last",
        "--embd-output-format",
        "json",
        "--embd-normalize",
        "0",
        "-p",
        "a dog",
    ])));
    let vector = object["data"][0]["embedding"].as_array().unwrap();
    let largest = vector.iter().map(|v| v.as_f64().unwrap().abs()).fold(0.0, f64::max);
    assert!((largest - 32760.0).abs() < 0.1, "{largest}");
    assert!(object["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
    let unsaid = run(&args(&["-p", "a dog"]));
    assert_eq!(unsaid.status.code(), Some(1));
    assert!(err(&unsaid).contains("`llama.pooling_type`"), "{}", err(&unsaid));
    for wrong in
        [&["-p", "a", "--pooling", "max"][..], &["-p", "a", "--embd-normalize", "-2"], &["-p", ""], &[]]
    {
        assert_eq!(run(&args(wrong)).status.code(), Some(2));
    }
}
