//! Folders of ollama and LM Studio, which are read and never written.

use std::path::Path;

use chaski_hub::{HubError, ModelName, Place};
use serde_json::json;

use crate::fake::sha256;
use crate::{Client, bytes, tiny};

/// Writes a blob of ollama, and gives its layer.
fn layer(folder: &Path, kind: &str, contents: &[u8]) -> serde_json::Value {
    let digits = sha256(contents);
    std::fs::create_dir_all(folder.join("blobs")).unwrap();
    std::fs::write(folder.join("blobs").join(format!("sha256-{digits}")), contents).unwrap();
    json!({
        "mediaType": format!("application/vnd.ollama.image.{kind}"),
        "digest": format!("sha256:{digits}"),
        "size": contents.len(),
    })
}

fn manifest(folder: &Path, path: &str, layers: &[serde_json::Value]) {
    let path = folder.join("manifests").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, json!({ "schemaVersion": 2, "layers": layers }).to_string()).unwrap();
}

#[test]
fn models_of_ollama_open_in_place() {
    let client = Client::of(&tiny());
    let folder = client.folder().join("ollama");
    let layers = [
        layer(&folder, "model", &bytes(1000, 1)),
        layer(&folder, "system", b"Be brief."),
        layer(&folder, "params", br#"{"temperature":0.5,"stop":["x"]}"#),
        layer(&folder, "template", b"{{ .Prompt }}"),
    ];
    manifest(&folder, "registry.ollama.ai/library/tiny/latest", &layers);
    manifest(&folder, "hf.co/org/repo/Q8_0", &layers[..1]);
    let single = layer(&folder, "tensor", b"x");
    manifest(&folder, "registry.ollama.ai/library/new/latest", &[single]);
    manifest(&folder, "registry.ollama.ai/library/cloud/latest", &[]);
    let wicked =
        json!({ "mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../../etc/passwd" });
    manifest(&folder, "registry.ollama.ai/library/wicked/latest", &[wicked]);
    let client = client.with(|config| config.ollama = vec![config.cache.join("none"), folder.clone()]);
    let found = client.find("ollama:tiny").unwrap();
    assert_eq!(std::fs::read(&found.path).unwrap(), bytes(1000, 1));
    assert!(found.path.starts_with(&folder));
    let ollama = found.ollama.unwrap();
    assert_eq!(ollama.system.as_deref(), Some("Be brief."));
    assert_eq!(ollama.params.unwrap()["temperature"], 0.5);
    assert!(client.find("ollama:hf.co/org/repo:Q8_0").is_some());
    // The same without a request, by way of a plan.
    assert!(client.pull("ollama:tiny:latest").is_ok());
    let error = |name: &str| client.hub().find(&ModelName::parse(name).unwrap()).unwrap_err();
    assert!(matches!(error("ollama:other"), HubError::NotInOllama { .. }));
    assert!(error("ollama:tiny:7b").to_string().contains("ollama pull"));
    assert!(error("ollama:new").to_string().contains("single tensors"));
    assert!(error("ollama:cloud").to_string().contains("no model of its own"));
    assert!(error("ollama:wicked").to_string().contains("digest"));
    let mut names: Vec<String> = client.hub().list(true).into_iter().map(|model| model.name).collect();
    names.sort();
    assert_eq!(names, ["ollama:hf.co/org/repo:Q8_0", "ollama:tiny:latest"]);
    assert!(client.hub().list(false).is_empty());
    assert!(client.hub().remove(&ModelName::parse("ollama:tiny").unwrap(), false).is_err());
}

#[test]
fn models_of_lm_studio_are_found_by_the_names_of_the_hub() {
    let hub = tiny();
    let client = Client::of(&hub);
    let folder = client.folder().join("lm");
    std::fs::create_dir_all(folder.join("org/tiny-GGUF")).unwrap();
    std::fs::write(folder.join("org/tiny-GGUF/tiny-Q8_0.gguf"), bytes(100, 1)).unwrap();
    let client = client.with(|config| config.lm_studio = vec![folder.clone()]);
    let found = client.find("hf:org/tiny-GGUF:Q8_0").unwrap();
    assert_eq!(found.path, folder.join("org/tiny-GGUF/tiny-Q8_0.gguf"));
    // Another choice may be meant.
    assert!(client.find("hf:org/tiny-GGUF").is_none() && client.find("hf:org/tiny-GGUF@main:Q8_0").is_none());
    let models = client.hub().list(true);
    assert_eq!((models.len(), models[0].place), (1, Place::LmStudio));
    assert!(client.hub().list(false).is_empty() && hub.take_log().is_empty());
}
