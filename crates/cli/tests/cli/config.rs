//! Options from the environment and a configuration file.

use crate::{GOLDEN, chaski, err, json, out};

#[test]
fn options_come_from_the_environment_and_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chaski/config.toml");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "device = \"cpu\"\nn-predict = 3\n[run]\nquiet = true\n").unwrap();
    let command = |args: &[&str]| {
        let mut command = chaski(args);
        command.env_remove("CHASKI_CONFIG").env("XDG_CONFIG_HOME", folder.path()).env("CHASKI_TEMP", "0");
        command
    };
    let text = |args: &[&str]| out(&command(args).args(["-p", "Once upon a time"]).output().unwrap());
    // On Linux; other systems have other places.
    if cfg!(target_os = "linux") {
        let three = text(&["run"]);
        assert!(GOLDEN.starts_with(three.trim_end()) && three.trim_end() != GOLDEN, "{three}");
        assert_eq!(out(&command(&["config", "--path"]).output().unwrap()).trim_end(), path.to_str().unwrap());
    }
    let named = ["--config", path.to_str().unwrap()];
    assert!(text(&[&["run", "-n", "8"], &named[..]].concat()).starts_with(GOLDEN));

    let shown = json(&command(&[&["config", "-o", "json"], &named[..]].concat()).output().unwrap());
    let of = |option: &str| {
        let rows = shown["options"].as_array().unwrap().iter();
        rows.filter(|row| row["option"] == option).map(|row| (&row["value"], &row["source"])).next().unwrap()
    };
    assert_eq!(of("temp"), (&"0".into(), &"environment".into()));
    assert_eq!(of("n-predict"), (&"3".into(), &"file".into()));
    assert_eq!(of("chunk"), (&"512".into(), &"default".into()));
    let table = out(&command(&[&["config"], &named[..]].concat()).output().unwrap());
    for part in ["CHASKI_TEMP", "config.toml:2", "default", "file: "] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

#[test]
fn mistakes_of_the_configuration_are_errors_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.toml");
    std::fs::write(&path, "temp = 1\n\ntemprature = 2\n").unwrap();
    let path = path.to_str().unwrap();
    for (args, variable, says) in [
        (
            &["run", "-p", "a", "--config", path][..],
            "",
            "line 3: unknown key `temprature`; is `temperature` meant?",
        ),
        (&["run", "-p", "a"], "warm", "CHASKI_TEMP: `warm` is no value of `temp`: expected a number"),
    ] {
        let o = chaski(args).env("CHASKI_TEMP", variable).output().unwrap();
        assert_eq!(o.status.code(), Some(2), "{}", err(&o));
        assert!(err(&o).contains(says), "{}", err(&o));
    }
    let o = chaski(&["run", "-p", "a", "--config", "no/such.toml"]).output().unwrap();
    assert!(!o.status.success() && err(&o).contains("no/such.toml"), "{}", err(&o));
}
