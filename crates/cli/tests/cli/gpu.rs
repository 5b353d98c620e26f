//! Tests that need a GPU or a software driver.

use serde_json::Value;

use crate::{GOLDEN, chaski, err, full_run, json, out, run, skip};

#[test]
fn devices_are_listed() {
    assert!(out(&run(&["devices"])).contains("cpu:"));
    let listed = json(&run(&["devices", "-o", "json"]));
    let (cpu, gpus) = listed.as_array().unwrap().split_last().unwrap();
    assert_eq!((&cpu["device"], &cpu["name"]), (&"cpu".into(), &"CPU".into()));
    for (i, a) in gpus.iter().enumerate() {
        assert_eq!(a["device"], i.to_string());
        assert!(a["limits"]["max_binding_bytes"].as_u64().unwrap() > 0, "{a}");
    }
}

/// True if there is a GPU, a software one included; `cargo xtask test` installs one.
pub(crate) fn has_gpu() -> bool {
    let found = json(&run(&["devices", "-o", "json"])).as_array().unwrap().len() > 1;
    if !found {
        skip("a GPU");
    }
    found
}

/// Vulkan's loader, if a command loads it, says a lot with this setting.
#[test]
#[cfg(target_os = "linux")]
fn no_driver_is_loaded_unless_a_gpu_is_asked_for() {
    let loads = |args: &[&str], device: &str| {
        let mut command = chaski(args);
        command.env("VK_LOADER_DEBUG", "all").env_remove("XDG_RUNTIME_DIR");
        if !device.is_empty() {
            command.env("CHASKI_DEVICE", device);
        }
        let said = err(&command.output().unwrap());
        assert!(!said.contains("XDG_RUNTIME_DIR is invalid"), "{args:?}: {said}");
        said.contains("LAYER:") || said.contains("DRIVER:")
    };
    let story = ["run", "-q", "-n", "1", "-p", "Once"];
    for (args, device) in [
        (&["show"][..], ""),
        (&["show"], "cpu"),
        (&["show", "--device", "cpu"], ""),
        (&["tokenize", "a"], ""),
        (&["embed", "--pooling", "mean", "-p", "a"], "cpu"),
        (&story, "cpu"),
    ] {
        assert!(!loads(args, device), "{args:?} with {device:?}");
    }
    if has_gpu() {
        assert!(loads(&["devices"], "") && loads(&["show", "--device", "gpu"], ""));
        assert!(loads(&["show"], "gpu"));
    }
}

/// Drivers of a machine without a GPU take longer to load than the model.
#[test]
#[cfg(target_os = "linux")]
fn a_machine_without_a_gpu_is_known_at_the_next_start() {
    let caches = tempfile::tempdir().unwrap();
    let says_with = |more: &[&str], variable: (&str, &str)| {
        let mut command = chaski(&["run", "--temp", "0", "-n", "8", "-p", "Once upon a time"]);
        command.args(more).env("XDG_CACHE_HOME", caches.path()).env("VK_LOADER_DEBUG", "all");
        command.env(variable.0, variable.1);
        let o = command.output().unwrap();
        assert!(out(&o).starts_with(GOLDEN), "{}", err(&o));
        let lines = err(&o);
        let note = lines.lines().find(|line| line.contains("running on the CPU")).map(str::to_owned);
        (lines.contains("DRIVER:") || lines.contains("LAYER:"), note)
    };
    let says = |more: &[&str]| says_with(more, ("CHASKI_TEST", "1"));
    let (loads, note) = says(&[]);
    let Some(note) = note.filter(|_| loads) else {
        skip("a machine without a GPU");
        return;
    };
    assert_eq!(says(&[]), (false, Some(note.clone())));
    // Nothing is known without the cache, or if a GPU need not pass its test.
    for option in ["--no-warm-cache", "--no-self-test"] {
        assert_eq!(says(&[option]), (true, Some(note.clone())), "{option}");
    }
    // A machine whose drivers are set up differently is another one.
    assert_eq!(says_with(&[], ("LD_LIBRARY_PATH", "/nowhere")), (true, Some(note)));
}

#[test]
fn the_memory_that_show_names_is_that_of_the_device() {
    let shown =
        |device: &[&str]| json(&chaski(&["show", "--json"]).args(device).output().unwrap())["memory"].clone();
    let (any, cpu) = (shown(&[]), shown(&["--device", "cpu"]));
    assert_eq!((&any["device"], &cpu["device"]), (&"a GPU".into(), &"the CPU".into()));
    let total = |memory: &Value| memory["need"]["total"].as_u64().unwrap();
    assert!(total(&any) > total(&cpu), "{any} {cpu}");
    let o = run(&["show", "--device", "no such GPU"]);
    assert!(!o.status.success() && err(&o).contains("no GPU adapter"), "{}", err(&o));
}

#[test]
fn a_gpu_tells_the_same_story_in_the_memory_that_show_names() {
    if !has_gpu() {
        return;
    }
    let args = ["run", "--device", "gpu", "--temp", "0", "-n", "24", "-c", "128", "--kv", "f32", "--json"];
    let o = json(&chaski(&args).args(["-q", "-p", "Once upon a time"]).output().unwrap());
    assert!(o["text"].as_str().unwrap().starts_with(GOLDEN), "{o}");
    assert!(o["stats"]["dispatches_per_layer"].as_f64().unwrap() <= 6.0, "{o}");
    let shown = json(&run(&["show", "--json", "-c", "128", "--kv", "f32", "--device", "gpu"]));
    assert_eq!(shown["memory"]["need"], o["stats"]["memory"]);
}

#[test]
fn bench_and_profile_run_on_a_gpu() {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let args = ["bench", "--device", "gpu", "-p", "8", "-n", "7", "-d", "0,5", "--interval", "3", "-r", "2"];
    let more = ["-q", "-o", "json", "--profile", "--trace", trace.to_str().unwrap()];
    let o = chaski(&args).args(more).output().unwrap();
    let results = json(&o);
    let names: Vec<_> = results.as_array().unwrap().iter().map(|r| (&r["n_depth"], &r["n_gen"])).collect();
    assert_eq!(names.len(), 4, "{results}");
    for r in results.as_array().unwrap() {
        assert!(r["avg_ts"].as_f64().unwrap() > 0.0 && r["peak_gpu_bytes"].as_u64().unwrap() > 0, "{r}");
    }
    // A device without timestamps has no profile, and says so.
    let events: Value = serde_json::from_str(&std::fs::read_to_string(trace).unwrap()).unwrap();
    let measured = !events["traceEvents"].as_array().unwrap().is_empty();
    for r in results.as_array().unwrap() {
        let profiles = r["profiles"].as_array().unwrap();
        assert_eq!(profiles.len(), usize::from(measured), "{r}");
        for p in profiles {
            let rows = p["rows"].as_array().unwrap();
            assert!(rows.iter().any(|r| r["part"] == "gate_up"), "{p}");
            for row in rows {
                assert!(row["bytes"].as_u64().unwrap() > 0, "{row}");
                assert!(row["percent_of_bound"].as_f64().unwrap() > 0.0, "{row}");
            }
        }
        // Tokens are sent, whether or not one waits for them.
        assert_eq!(r["host_us_per_token"].is_number(), r["n_gen"].as_u64() > Some(0), "{r}");
        assert!(r["upload_ms"].as_f64().unwrap() > 0.0, "{r}");
    }
}

/// CPU offload of experts gives the same text, in the memory that `show` reports; and the fields of `bench`.
#[test]
fn experts_are_offloaded_to_the_cpu() {
    if !has_gpu() || !full_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.gguf").to_str().unwrap().to_owned();
    let o =
        run(&["synth", "-q", "--preset", "tiny-moe", "--layers", "2", "--mix", "q4_k_m", "--out", &model]);
    assert!(o.status.success(), "{}", err(&o));
    let told = |more: &[&str]| {
        let args =
            ["run", &model, "--device", "gpu", "--temp", "0", "-n", "6", "-c", "64", "--raw", "--json"];
        let o = chaski(&args).args(["-q", "-p", "Once upon a time"]).args(more).output().unwrap();
        assert!(o.status.success(), "{}", err(&o));
        json(&o)
    };
    let (all, some) = (told(&[]), told(&["-ncmoe", "99", "--expert-slots", "6"]));
    assert_eq!(some["text"], all["text"]);
    assert!(all["stats"]["experts"].is_null(), "{all}");
    let e = &some["stats"]["experts"];
    assert!(e["wanted"].as_u64() >= e["read"].as_u64() && e["read_bytes"].as_u64() > Some(0), "{some}");
    assert!(some["stats"]["memory"]["total"].as_u64() < all["stats"]["memory"]["total"].as_u64(), "{some}");
    let args = ["show", &model, "--json", "--device", "gpu", "-c", "64", "--experts-on-cpu", "99"];
    let shown = json(&chaski(&args).args(["--expert-slots", "6"]).output().unwrap());
    assert_eq!(shown["memory"]["need"], some["stats"]["memory"]);

    let args = ["bench", &model, "--device", "gpu", "-p", "8", "-n", "4", "-r", "1", "-q", "-o", "jsonl"];
    let more = ["--experts-on-cpu", "0,2", "--expert-slots", "4,32", "--profile"];
    let text = out(&chaski(&args).args(more).output().unwrap());
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let slots: Vec<_> = lines.iter().map(|l| l["expert_slots"].as_u64().unwrap()).collect();
    assert_eq!(slots, [0, 0, 4, 4, 32, 32]);
    for l in &lines {
        match l["experts_on_cpu"].as_u64().unwrap() {
            0 => assert!(l["expert_hits"].is_null() && l["expert_bytes_per_token"].is_null(), "{l}"),
            _ => {
                let hits = l["expert_hits"].as_f64().unwrap();
                assert!((0.0..=1.0).contains(&hits) && l["profiles"] == serde_json::json!([]), "{l}");
                // Every token uses 4 of a layer's experts, of a prompt of 8 each counts once.
                let wanted = l["experts_wanted_per_token"].as_f64().unwrap();
                let expected = if l["n_gen"] == 4 { 8.0..=8.0 } else { 1.0..=8.0 };
                assert!(expected.contains(&wanted), "{l}");
                // After a warm-up there is room for all.
                let n_byte = l["expert_bytes_per_token"].as_f64().unwrap();
                assert_eq!(n_byte == 0.0, hits == 1.0, "{l}");
                assert!(l["expert_slots"] != 32 || hits > 0.5, "{l}");
            }
        }
    }
    let o = run(&["tune", &model, "--device", "gpu", "--experts-on-cpu", "1"]);
    assert!(!o.status.success() && err(&o).contains("all experts on the device"), "{}", err(&o));
    let o = run(&["run", "--device", "cpu", "--experts-on-cpu", "1", "-p", "a"]);
    assert!(!o.status.success() && err(&o).contains("no experts"), "{}", err(&o));
}

/// Layers on two devices: the same text, and every option that names them. Left for full runs: the engine's tests
/// (`stages`, `after_cpu`) have devices by name, and their texts and memory.
#[test]
fn a_model_is_shared_by_several_devices() {
    if !has_gpu() || !full_run() {
        return;
    }
    let told = |more: &[&str]| {
        let args = ["run", "--temp", "0", "-n", "12", "-c", "64", "--json", "-q", "-p", "Once upon a time"];
        let o = chaski(&args).args(more).output().unwrap();
        assert!(o.status.success(), "{}", err(&o));
        let o = json(&o);
        (o["text"].clone(), o["stats"]["memory"].clone())
    };
    let (expected, _) = told(&["--device", "0"]);
    let (found, memory) = told(&["--devices", "0,0"]);
    assert_eq!(found, expected);
    // By device, as `show` has it before.
    let shown = json(&run(&["show", "--json", "-c", "64", "--device", "0,0"]))["memory"].clone();
    assert_eq!(shown["need"]["total"], memory["total"]);
    let parts = |memory: &Value| -> Vec<u64> {
        let devices = memory["devices"].as_array().unwrap();
        devices.iter().map(|device| device["total"].as_u64().unwrap()).collect()
    };
    assert_eq!(parts(&shown["need"]), parts(&memory));
    assert_eq!(parts(&memory).iter().sum::<u64>(), memory["total"].as_u64().unwrap());
    let o = out(&run(&["show", "-c", "64", "--device", "0,0", "-ts", "1,3"]));
    assert!(o.contains("Memory on 2 devices") && o.contains("device 1, "), "{o}");
    // The CPU is one of the devices, in either words.
    for args in [&["--device", "0,cpu", "-ts", "3,1"][..], &["--device", "0", "-ngl", "2"]] {
        let (found, memory) = told(args);
        assert_eq!(found, expected, "{args:?}");
        let shown =
            json(&chaski(&["show", "--json", "-c", "64"]).args(args).output().unwrap())["memory"].clone();
        assert_eq!(parts(&shown["need"]), parts(&memory), "{args:?}");
        assert!(shown["device"].as_str().unwrap().starts_with("the CPU, "), "{shown}");
    }
    let o = out(&run(&["show", "-c", "64", "--device", "0,cpu"]));
    assert!(o.contains("device 0, the CPU") && o.contains("weights and KV cache (CPU)"), "{o}");
    let told = |more: &[&str]| told(more).0;
    assert_eq!(told(&["--device", "0,no such GPU", "-sm", "none"]), expected);
    assert_eq!(told(&["--device", "0,0", "-ts", "2,1"]), expected);
    assert_eq!(told(&["-dev", "0,0", "--regex", "(?s:.*)"]), expected);
    let args = ["bench", "--device", "0,0/0", "-p", "8", "-n", "2", "-r", "1", "-q", "-o", "jsonl"];
    let o = chaski(&args).args(["-ts", "3/1,1/1", "--profile"]).output().unwrap();
    let lines: Vec<Value> = out(&o).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let shares: Vec<_> = lines.iter().map(|l| l["tensor_split"].as_str().unwrap()).collect();
    assert_eq!(shares, ["0.00", "0.00", "3.00/1.00", "3.00/1.00", "1.00/1.00", "1.00/1.00"]);
    assert!(lines.iter().all(|l| l["avg_ts"].as_f64() > Some(0.0)), "{lines:?}");
    assert!(lines[2..].iter().all(|l| l["profiles"] == serde_json::json!([])), "{lines:?}");
    for (args, said) in [
        (&["tune", "--device", "0,0"][..], "needs all layers on one device"),
        (&["run", "--device", "0,0", "-ts", "1", "-p", "a"], "has 1 shares, but --device names 2 devices"),
        (&["run", "--device", "0", "-ts", "1,1", "-p", "a"], "has 2 shares, but --device names 1 device"),
        (&["bench", "--device", "0/0", "-ts", "1/1/1"], "has 3 shares, but --device names 2 devices"),
        (&["run", "--device", "0,auto", "-p", "a"], "`auto` is neither the name or index of a GPU nor cpu"),
        (&["run", "--device", "cpu,0,cpu", "-p", "a"], "cpu is in the list twice"),
        (&["run", "-ngl", "few", "-p", "a"], "`few` is not a number of layers, nor all"),
    ] {
        let o = run(args);
        assert!(!o.status.success() && err(&o).contains(said), "{}", err(&o));
    }
}

#[test]
fn a_measured_device_is_kept_for_profiles() {
    if !has_gpu() || !full_run() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| chaski(args).env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    let measured = json(&run(&["devices", "--measure", "-o", "json"]));
    // How much it is depends on what else the machine does.
    assert!(measured["read_bytes_per_s"].as_f64().unwrap() > 0.0, "{measured}");
    assert!(measured["operations_per_s"]["f32"].as_f64().unwrap() > 0.0, "{measured}");
    if cfg!(target_os = "linux") {
        let folder = cache.path().join("chaski/peaks");
        let file = std::fs::read_dir(folder).unwrap().next().expect("a file").unwrap().path();
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(kept, measured);
        let o = run(&["bench", "--device", "gpu", "-p", "0", "-n", "1", "-r", "1", "--profile"]);
        assert!(!err(&o).contains("measuring"), "{}", err(&o));
        assert!(out(&o).contains("bound by"), "{}", out(&o));
    }
    // With formats it is a report of the device.
    let report = json(&run(&["devices", "--measure", "--formats", "q4_K,f16", "-o", "json"]));
    assert_eq!(report["device"]["name"], report["peaks"]["adapter"], "{report}");
    let formats: Vec<&str> =
        report["formats"].as_array().unwrap().iter().map(|f| f["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["q4_K", "f16"]);
    let o = run(&["devices", "--measure", "--device", "cpu"]);
    assert_eq!(o.status.code(), Some(2), "{}", err(&o));
}

#[test]
fn formats_are_measured_by_themselves() {
    let wrong = run(&["devices", "--formats", "q4_K,q9"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err(&wrong).contains("`q9`") && err(&wrong).contains("q4_K"), "{}", err(&wrong));
    assert_eq!(run(&["devices", "--formats", "--device", "cpu"]).status.code(), Some(2));
    if !has_gpu() {
        return;
    }
    let found = json(&run(&["devices", "--formats", "f16,Q4_K", "-o", "json"]));
    let of = |i: usize, key: &str| found["formats"][i][key].as_f64().unwrap_or_default();
    assert_eq!([0, 1].map(|i| found["formats"][i]["format"].clone()), ["f16", "q4_K"]);
    for i in [0, 1] {
        // Of 256 values of q4_K there are 144 bytes.
        let bits = of(i, "bytes_per_second") * 8.0 / of(i, "weights_per_second");
        assert!((bits - [16.0, 4.5][i]).abs() < 1e-6, "{bits}");
    }
    assert!(found["formats"][0]["bytes_per_second_i8"].is_null() && of(1, "bytes_per_second_i8") > 0.0);
    let table = out(&run(&["devices", "--formats", "f16,q4_K"]));
    assert!(table.contains("| f16 ") && table.contains("100.0 %"), "{table}");
}
