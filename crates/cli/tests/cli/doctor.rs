//! `chaski doctor`.

use serde_json::Value;

use crate::{chaski, err, json, out, run};

#[test]
fn doctor_finds_the_cpu_well() {
    let home = tempfile::tempdir().unwrap();
    let o = chaski(&["doctor", "-o", "json"])
        .env("CHASKI_DEVICE", "cpu")
        .env("HOME", home.path())
        .env("XDG_CACHE_HOME", home.path().join("caches"))
        .output()
        .unwrap();
    let report = json(&o);
    assert_eq!((&report["ok"], &report["looked_for_gpus"]), (&true.into(), &false.into()));
    let checks = report["checks"].as_array().unwrap();
    let names: Vec<&str> = checks.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["products", "story"]);
    assert!(checks.iter().all(|c| c["ok"] == true && c["device"] == "cpu"), "{report}");
    let cpu = &report["devices"].as_array().unwrap()[..];
    assert!(cpu.len() == 1 && cpu[0]["tokens_per_second"].as_f64().unwrap() > 0.0, "{report}");
    for key in ["version", "commit", "wgpu", "profile", "target"] {
        assert!(!report["build"][key].as_str().unwrap().is_empty(), "{key}");
    }
    let system = &report["system"];
    assert!(!system["os"].as_str().unwrap().is_empty() && !system["cpu"].as_str().unwrap().is_empty());
    assert!(system["memory_bytes"].as_u64() >= system["memory_available_bytes"].as_u64());
    assert!(system["threads"].as_u64().unwrap() > 0);
    assert!(system["variables"].as_array().unwrap().contains(&"CHASKI_DEVICE".into()), "{system}");
    let folders: Vec<&str> =
        report["caches"].as_array().unwrap().iter().map(|c| c["folder"].as_str().unwrap()).collect();
    // A report is pasted in public.
    if cfg!(target_os = "linux") {
        assert!(folders.iter().all(|f| f.starts_with("$XDG_CACHE_HOME/chaski/")), "{folders:?}");
    }
    let text = String::from_utf8(o.stdout).unwrap();
    assert!(!text.contains(home.path().to_str().unwrap()), "{text}");
}

#[test]
fn doctor_says_what_is_wrong_and_exits_with_1() {
    let o = run(&["doctor", "--device", "no such GPU"]);
    let text = String::from_utf8(o.stdout.clone()).unwrap();
    assert_eq!(o.status.code(), Some(1), "{}", err(&o));
    assert!(text.contains("no GPU is called `no such GPU`") && text.ends_with("1 check failed.\n"), "{text}");
    assert!(err(&o).is_empty(), "{}", err(&o));
}

#[test]
#[cfg(target_os = "linux")]
fn doctor_says_what_is_missing_and_slow() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let o = chaski(&["doctor", "--device", "auto", "-o", "json"])
        // No driver, and a folder for caches that is none.
        .env("VK_DRIVER_FILES", "/nonexistent.json")
        .env("VK_ICD_FILENAMES", "/nonexistent.json")
        .env("XDG_CACHE_HOME", file.path())
        .output()
        .unwrap();
    let report = json(&o);
    let advice = report["advice"].as_array().unwrap();
    let said = |words: &str| advice.iter().any(|a| a["what"].as_str().unwrap().contains(words));
    assert!(said("no driver reports a GPU") && said("cannot be written"), "{report}");
    assert_eq!(said("debug build"), cfg!(debug_assertions), "{report}");
    assert!(advice.iter().all(|a| !a["help"].as_str().unwrap().is_empty()), "{report}");
    assert_eq!(report["devices"][0]["is_default"], Value::Bool(true), "{report}");
}

#[test]
fn doctor_tests_a_gpu() {
    if !crate::gpu::has_gpu() {
        return;
    }
    let text = out(&run(&["doctor", "--device", "gpu"]));
    for part in
        ["\nSystem\n", "\nDevices\n", "  0: ", "\nCaches\n", "  ok      0    kernels", "  ok      0    story"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.ends_with("Everything works.\n"), "{text}");
}
