//! Models by name, against a server that behaves like the hub.

#[allow(dead_code, reason = "the tests of the hub itself use all of it")]
#[path = "../../../hub/tests/hub/fake.rs"]
pub(crate) mod fake;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use fake::{FakeHub, Faults, TOKEN, sha256};
use serde_json::Value;

use crate::{GOLDEN, chaski, err, fixture, json, out};

pub(crate) const NAME: &str = "hf:org/story-GGUF:Q4_K_M";
pub(crate) const FILE: &str = "storyteller-Q4_K_M.gguf";

/// A hub with the embedded model, and folders of a user.
pub(crate) struct Place {
    pub(crate) hub: FakeHub,
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let story = std::fs::read(fixture()).unwrap();
        let hub =
            FakeHub::start().with("org/story-GGUF", &[(FILE, story), ("README.md", b"# Stories\n".to_vec())]);
        Place { hub, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = chaski(args);
        command
            .env("HF_ENDPOINT", self.hub.endpoint())
            .env("HF_HOME", self.folder.path())
            .env("HOME", self.folder.path())
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .env("XDG_DATA_HOME", self.folder.path().join("data"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.folder.path().join("hub/models--org--story-GGUF/blobs")
    }

    pub(crate) fn n_storage(&self) -> usize {
        self.hub.take_log().iter().filter(|l| l.is_storage()).count()
    }
}

/// Lines of JSON on stdout.
fn events(o: &Output) -> Vec<Value> {
    out(o).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_model_is_pulled_once_and_then_runs_without_a_network() {
    let place = Place::new();
    let o = place.run(&["pull", NAME]);
    let path = PathBuf::from(out(&o).trim());
    assert!(path.ends_with(FILE) && std::fs::read(&path).unwrap() == std::fs::read(fixture()).unwrap());
    assert!(err(&o).contains("download: 100 % of") && err(&o).contains(", verified"), "{}", err(&o));
    assert_eq!(place.n_storage(), 1);
    let o = place.run(&["pull", NAME]);
    assert!(out(&o).trim() == path.to_str().unwrap() && err(&o).is_empty(), "{}", err(&o));
    assert_eq!(place.n_storage(), 0);
    let greedy = ["--device", "cpu", "-n", "8", "--temp", "0", "-q", "-p", "Once upon a time"];
    let line: Vec<&str> = ["run", NAME, "--offline"].into_iter().chain(greedy).collect();
    assert!(out(&place.run(&line)).starts_with(GOLDEN));
    // llama.cpp's spelling; and a name needs no request once it is here.
    let line: Vec<&str> = ["run", "-hf", "org/story-GGUF"].into_iter().chain(greedy).collect();
    assert!(out(&place.run(&line)).starts_with(GOLDEN));
    let tokens = place.run(&["tokenize", "hf.co/org/story-GGUF:Q4_K_M", "Hello"]);
    assert!(!out(&tokens).is_empty());
    assert!(place.hub.take_log().is_empty());
}

#[test]
fn a_model_is_fetched_when_a_command_needs_it() {
    let place = Place::new();
    let o = place.run(&[
        "run",
        "hf:org/story-GGUF",
        "--device",
        "cpu",
        "-n",
        "8",
        "--temp",
        "0",
        "-p",
        "Once upon a time",
    ]);
    assert!(out(&o).starts_with(GOLDEN), "{}", err(&o));
    assert!(err(&o).contains("downloading hf:org/story-GGUF: 1 file"), "{}", err(&o));
}

#[test]
fn programs_get_events() {
    let place = Place::new();
    let o = place.run(&["pull", NAME, "--dry-run", "-o", "json"]);
    let plan = &events(&o)[0];
    let size = std::fs::metadata(fixture()).unwrap().len();
    assert!(
        plan["event"] == "resolve" && plan["missing"] == size && plan["files"][0]["path"] == FILE,
        "{plan}"
    );
    assert!(out(&place.run(&["pull", NAME, "--dry-run"])).contains("to fetch"));
    assert!(!place.blobs().exists());
    let all = events(&place.run(&["pull", NAME, "-o", "json", "-q"]));
    let kinds: Vec<&str> = all.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[1]), ("resolve", "download"), "{kinds:?}");
    assert_eq!(kinds[kinds.len() - 3..], ["verify", "done", "result"]);
    let digest = sha256(&std::fs::read(fixture()).unwrap());
    assert_eq!(all[all.len() - 3]["digest"], digest);
    assert!(Path::new(all[all.len() - 1]["path"].as_str().unwrap()).exists());
}

#[test]
fn failures_have_codes_and_say_what_to_do() {
    let place = Place::new();
    for (args, code, says) in [
        (&["run", "hf:org/none", "-p", "x"][..], 3, "no repository `org/none`"),
        (&["pull", "hf:org/story-GGUF:Q8_0"], 3, "storyteller-Q4_K_M.gguf ("),
        (&["pull", NAME, "--offline"], 3, "the network is off"),
        (&["pull", NAME, "--revision", "v9"], 3, "no revision `v9`"),
        (&["pull", "hf:org"], 2, "owner/name"),
        (&["pull", NAME, "--hf-file", "x.gguf"], 2, "beside --hf-file"),
        (&["pull"], 2, "which model?"),
        (&["rm", "ollama:x"], 2, "`ollama rm` removes it"),
        (&["rm", "hf:org/none", "-y"], 3, "not in the cache"),
        (&["rm", NAME], 2, "--yes"),
        (&["verify", "hf:org/none"], 3, "not in the cache"),
        (&["run", "ollama:none", "-p", "x"], 3, "ollama pull"),
        (&["run", "none.gguf", "-p", "x"], 3, "`hf:ORG/REPO` names a model"),
    ] {
        let o = place.run(args);
        assert_eq!(o.status.code(), Some(code), "{args:?}: {}", err(&o));
        assert!(err(&o).contains(says), "{args:?}: {}", err(&o));
    }
    let o = place.command(&["pull", NAME]).env("HF_ENDPOINT", "http://127.0.0.1:1").output().unwrap();
    assert!(o.status.code() == Some(1) && err(&o).contains("cannot be reached"), "{}", err(&o));
    place.hub.change("org/story-GGUF", |repo| repo.is_gated = true);
    let o = place.command(&["pull", NAME]).env("HF_TOKEN", "hf_wrong").output().unwrap();
    assert!(o.status.code() == Some(3) && err(&o).contains("accept its terms"), "{}", err(&o));
    assert!(!err(&o).contains("hf_wrong"));
    place.hub.set(Faults { checks_tokens: true, ..Faults::default() });
    let o = place.command(&["pull", NAME]).env("HF_TOKEN", "hf_wrong").output().unwrap();
    assert!(o.status.code() == Some(3) && err(&o).contains("renew or unset HF_TOKEN"), "{}", err(&o));
    let address = format!("{}/cdn/org/story-GGUF/none.gguf", place.hub.endpoint());
    let o = place.run(&["pull", &address]);
    assert!(o.status.code() == Some(3) && err(&o).contains("status 404"), "{}", err(&o));
    // The list of the commit was kept; this one is of another size.
    std::fs::remove_dir_all(place.blobs().with_file_name("trees")).unwrap();
    place.hub.set(Faults { claimed: Some(1 << 60), ..Faults::default() });
    let o = place.run(&["pull", NAME, "--hf-token", TOKEN]);
    assert!(o.status.code() == Some(4) && err(&o).contains("lack"), "{}", err(&o));
    place.hub.set(Faults::default());
    std::fs::write(place.folder.path().join("token"), TOKEN).unwrap();
    out(&place.run(&["pull", NAME]));
}

#[test]
fn models_are_listed_verified_repaired_and_removed() {
    let place = Place::new();
    place.hub.change("org/story-GGUF", |repo| drop(repo.files.insert("a.gguf".into(), vec![7; 2_000_000])));
    let o = place.run(&["list"]);
    assert!(out(&o).is_empty() && err(&o).contains("no models in ~/hub"), "{}", err(&o));
    out(&place.run(&["pull", NAME]));
    let list = out(&place.run(&["list"]));
    assert!(list.lines().nth(1).unwrap().starts_with(&format!("hf:org/story-GGUF/{FILE}  ")), "{list}");
    let all = json(&place.run(&["list", "-o", "json"]));
    assert_eq!(all[0]["revisions"][0]["files"][0]["path"], FILE);
    assert_eq!(all[0]["revisions"][0]["refs"][0], "main");
    assert!(out(&place.run(&["verify"])).starts_with("1 of 1 file intact"));
    let digest = sha256(&std::fs::read(fixture()).unwrap());
    let blob = place.blobs().join(&digest);
    let size = std::fs::metadata(&blob).unwrap().len() as usize;
    std::fs::write(&blob, vec![0; size]).unwrap();
    let o = place.run(&["verify", NAME]);
    assert_eq!(o.status.code(), Some(1), "{}", err(&o));
    let text = String::from_utf8_lossy(&o.stdout);
    assert!(text.contains("damaged  hf:org/story-GGUF") && text.contains(&digest), "{text}");
    assert!(place.run(&["verify", "--repair"]).status.success());
    assert!(out(&place.run(&["verify"])).contains("1 of 1 file intact"));
    // Of several files, all are counted.
    out(&place.run(&["pull", "hf:org/story-GGUF/a.gguf"]));
    for (digest, size) in [(digest, size), (sha256(&vec![7; 2_000_000]), 2_000_000)] {
        std::fs::write(place.blobs().join(digest), vec![0; size]).unwrap();
    }
    let told = err(&place.run(&["verify", "--repair"]));
    let n = format!("downloaded {:.2} MB", (size + 2_000_000) as f64 / 1e6);
    assert!(told.contains(&n) && told.contains(", verified") && told.contains("repaired 2 files"), "{told}");
    out(&place.run(&["rm", "hf:org/story-GGUF/a.gguf", "--yes"]));
    std::fs::write(place.blobs().join("ab".repeat(32)), "x").unwrap();
    assert!(out(&place.run(&["prune"])).starts_with("0 files"));
    assert!(
        out(&place.run(&["prune", "--older-than", "0", "--dry-run"]))
            .contains("1 file, 1 B would be removed")
    );
    assert!(out(&place.run(&["prune", "--older-than", "0"])).contains("1 file, 1 B removed"));
    let o = place.run(&["rm", NAME, "--yes"]);
    assert!(o.status.success() && err(&o).contains("removed 1 file"), "{}", err(&o));
    assert!(!place.blobs().exists());
}

#[test]
fn a_model_that_is_not_here_is_described_by_its_header() {
    let place = Place::new();
    let whole = std::fs::metadata(fixture()).unwrap().len() as usize;
    let text = out(&place.run(&["show", NAME]));
    for part in
        ["\nMetadata\n", "\nDownload\n", "it fits on the disk", "of main memory here", "chat template"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.starts_with("hf:org/story-GGUF:Q4_K_M\n"));
    let log = place.hub.take_log();
    let n: usize = log.iter().filter(|l| l.is_storage()).map(|l| l.n_byte).sum();
    assert!(
        0 < n && n < whole && log.iter().all(|l| !l.is_storage() || l.header("range").is_some()),
        "{n} of {whole}"
    );
    assert!(!place.blobs().exists());
    let object = json(&place.run(&["show", NAME, "--json"]));
    assert!(object["download"]["missing"] == whole && object["download"]["fits_disk"] == true, "{object}");
    out(&place.run(&["pull", NAME]));
    let text = out(&place.run(&["show", NAME, "--offline"]));
    assert!(!text.contains("\nDownload\n") && text.contains("snapshots"), "{text}");
}

#[test]
fn the_configuration_gives_names_to_models() {
    let place = Place::new();
    let config = place.folder.path().join("c.toml");
    std::fs::write(&config, format!("[aliases]\nstory = \"{NAME}\"\n")).unwrap();
    let with = |args: &[&str]| place.command(args).env("CHASKI_CONFIG", &config).output().unwrap();
    assert!(out(&with(&["pull", "story"])).trim().ends_with(FILE));
    let o =
        with(&["run", "story", "--device", "cpu", "-n", "8", "--temp", "0", "-q", "-p", "Once upon a time"]);
    assert!(out(&o).starts_with(GOLDEN), "{}", err(&o));
    std::fs::write(&config, "hf-token = \"hf_hidden\"\n").unwrap();
    let shown = out(&with(&["config"]));
    assert!(shown.contains("(secret)") && !shown.contains("hf_hidden"), "{shown}");
    std::fs::write(&config, "[aliases]\nstory = \"hf:x\"\n").unwrap();
    let o = with(&["run", "story", "-p", "x"]);
    assert!(o.status.code() == Some(2) && err(&o).contains("line 2: `hf:x`"), "{}", err(&o));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_came() {
    use std::os::unix::process::ExitStatusExt as _;
    let place = Place::new();
    place.hub.set(Faults { slow: Some((50_000, Duration::from_millis(20))), ..Faults::default() });
    let child = place.command(&["pull", NAME]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    // Some of it was flushed by then.
    while place.hub.n_sent() < 300_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let o = child.wait_with_output().unwrap();
    assert_eq!((o.status.code(), o.status.signal()), (Some(130), None), "{}", err(&o));
    assert!(err(&o).contains("goes on where it stopped"), "{}", err(&o));
    let o = place.run(&["list"]);
    assert!(out(&o).contains("incomplete"), "{}", out(&o));
    place.hub.set(Faults::default());
    place.hub.take_log();
    assert!(err(&place.run(&["pull", NAME])).contains("are here"));
    let log = place.hub.take_log();
    let resumed = log.iter().find(|l| l.is_storage()).unwrap();
    assert!(resumed.header("range").is_some() && resumed.header("if-range").is_some(), "{resumed:?}");
}

#[test]
fn models_of_ollama_run_where_they_lie() {
    #[cfg(unix)]
    use std::io::{BufRead as _, BufReader};
    let place = Place::new();
    let folder = place.folder.path().join(".ollama/models");
    let story = std::fs::read(fixture()).unwrap();
    std::fs::create_dir_all(folder.join("blobs")).unwrap();
    let layer = |kind: &str, contents: &[u8]| {
        let digits = sha256(contents);
        std::fs::write(folder.join("blobs").join(format!("sha256-{digits}")), contents).unwrap();
        let kind = format!("application/vnd.ollama.image.{kind}");
        serde_json::json!({ "mediaType": kind, "digest": format!("sha256:{digits}"), "size": contents.len() })
    };
    let layers = [layer("model", &story), layer("params", br#"{"temperature":0,"num_predict":8}"#)];
    let manifest = folder.join("manifests/registry.ollama.ai/library/story/latest");
    std::fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    std::fs::write(&manifest, serde_json::json!({ "layers": layers }).to_string()).unwrap();
    let o = place.run(&["run", "ollama:story", "--device", "cpu", "-q", "-p", "Once upon a time"]);
    assert!(out(&o).starts_with(GOLDEN) && out(&o).len() < 60, "{} {}", out(&o), err(&o));
    assert!(out(&place.run(&["list", "--all"])).contains("ollama:story:latest"));
    // A server calls it by its name, too, and not by the digest of its file.
    #[cfg(unix)]
    {
        use std::io::Read as _;
        let line = ["serve", "ollama:story", "--device", "cpu", "--port", "0"];
        let mut child = place.command(&line).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let (mut stderr, url) = (BufReader::new(child.stderr.take().unwrap()), &mut String::new());
        stderr.read_line(url).unwrap();
        let address = url.trim().rsplit('/').next().unwrap().to_owned();
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let request = format!("GET /v1/models HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(answer.contains("\"id\":\"story:latest\""), "{answer}");
    }
}

/// The embedded model, as a server offers it under the name of a preset.
#[cfg(unix)]
#[test]
fn presets_of_a_server_name_models() {
    use std::io::{BufRead as _, BufReader};
    let place = Place::new();
    let presets = place.folder.path().join("models.toml");
    std::fs::write(&presets, format!("[tales]\nmodel = \"{NAME}\"\n")).unwrap();
    let line = ["serve", "--device", "cpu", "--port", "0", "--models-preset", presets.to_str().unwrap()];
    let mut child = place.command(&line).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let is_there =
        lines.any(|line| line.contains("\"model\": \"tales\"") || line.starts_with("listening on"));
    assert!(is_there && place.n_storage() == 1);
    // A server that has downloaded something still ends as others do.
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Sends a request, and gives status line, headers and body of the answer.
#[cfg(unix)]
fn asked(address: &str, method: &str, path: &str, body: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let n = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {n}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The storage holds the second model back until the test asks for it, too.
#[cfg(unix)]
#[test]
fn new_presets_are_fetched_beside_a_running_server() {
    use std::io::{BufRead as _, BufReader};
    let place = Place::new();
    let story = std::fs::read(fixture()).unwrap();
    let other = [story, vec![0; 32]].concat();
    let hub = place.hub.clone().with("org/other-GGUF", &[("other-Q4_K_M.gguf", other)]);
    let presets = place.folder.path().join("models.toml");
    let tales = format!("[tales]\nmodel = \"{NAME}\"\nmodel-draft = \"{NAME}\"\n");
    std::fs::write(&presets, &tales).unwrap();
    let line = ["serve", "--device", "cpu", "--port", "0", "--models-preset", presets.to_str().unwrap()];
    let mut child = place.command(&line).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("listening on http://")?.to_owned())).unwrap();
    // The draft is found by its name.
    let ask = "{\"model\": \"tales\", \"prompt\": \"Once\", \"max_tokens\": 4}";
    let answer = asked(&address, "POST", "/v1/completions", ask);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    hub.set(Faults { together: Some(2), ..Faults::default() });
    hub.take_log();
    let more = "[more]\nmodel = \"hf:org/other-GGUF:Q4_K_M\"\n";
    std::fs::write(&presets, format!("{more}[last]\nmodel = \"{NAME}\"\n")).unwrap();
    Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
    assert!(lines.any(|line| line.contains("`more`: `hf:org/other-GGUF:Q4_K_M` is fetched")));
    // The list has the others at once.
    let list = || asked(&address, "GET", "/v1/models", "");
    while !list().contains("\"id\":\"last\"") {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!list().contains("\"id\":\"more\"") && !hub.was_waited_for());
    let storage = format!("127.0.0.1:{}", hub.port());
    let mut stream = std::net::TcpStream::connect(&storage).unwrap();
    let path = "/cdn/org/other-GGUF/other-Q4_K_M.gguf";
    let request = format!("GET {path} HTTP/1.1\r\nHost: {storage}\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    assert!(lines.any(|line| line.contains("`more`: `hf:org/other-GGUF:Q4_K_M` is here")));
    while !list().contains("\"id\":\"more\"") {
        std::thread::sleep(Duration::from_millis(50));
    }
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A server with a certificate of an authority that only a file of the user knows, as in a company.
#[cfg(unix)]
#[test]
fn certificates_of_the_system_can_be_trusted() {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use std::io::{BufRead as _, BufReader};
    let place = Place::new();
    let file = |name: &str| place.folder.path().join(name).to_str().unwrap().to_owned();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let cert =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    std::fs::write(file("ca.pem"), authority.pem()).unwrap();
    std::fs::write(file("cert.pem"), cert.pem()).unwrap();
    std::fs::write(file("key.pem"), key.serialize_pem()).unwrap();
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let line = ["serve", "--device", "cpu", "--port", "0", "--tls-cert", &cert, "--tls-key", &key];
    let mut child = place.command(&line).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut first).unwrap();
    let port = first.trim().rsplit(':').next().unwrap();
    // The server has no such file, which it says only to those that trust it.
    let name = format!("https://localhost:{port}/a.gguf");
    let pull = |args: &[&str], roots: bool| {
        let mut command = place.command(&["pull", &name]);
        if roots {
            command.env("SSL_CERT_FILE", file("ca.pem"));
        }
        command.args(args).output().unwrap()
    };
    let (stranger, known) = (pull(&[], false), pull(&[], true));
    let built_in = pull(&["--tls-roots", "built-in"], true);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(err(&known).contains("status 404"), "{}", err(&known));
    for o in [stranger, built_in] {
        assert!(o.status.code() == Some(1) && err(&o).contains("certificate"), "{}", err(&o));
        assert!(!err(&o).contains("trying again"), "{}", err(&o));
    }
}
