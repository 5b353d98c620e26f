//! Selection: the files of a repository that a name means.

mod folder;
mod projector;
mod split;
mod tag;

use crate::error::HubError;
use crate::listing::Listing;
use crate::name::{HubName, Pick};
use crate::tree::TreeFile;

pub use projector::projector;
pub use split::Split;
use split::parts;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use split::with_parts;
pub(crate) use tag::{Fit, fit};

/// Tags that are tried in this order where none is given.
pub(crate) const USUAL_TAGS: [&str; 4] = ["Q4_K_M", "Q4_K_XL", "Q4_0", "Q8_0"];

/// Kind of a selection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A GGUF file, or all files of a split set.
    Gguf,
    /// Files of a checkpoint of Hugging Face: config.json, safetensors, tokenizer.
    Checkpoint,
    /// Files of a model compiled for MLC: mlc-chat-config.json, shards, tokenizer.
    Mlc,
    /// Another file that was named.
    File,
}

impl Form {
    /// True if the model is a folder rather than a file.
    pub fn is_folder(self) -> bool {
        matches!(self, Form::Checkpoint | Form::Mlc)
    }
}

/// Selected files: indices into the tree, the one to open first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Their kind.
    pub form: Form,
    /// The files.
    pub files: Vec<usize>,
}

/// Parts of names of GGUF files that are no models, in lower case.
const NO_MODELS: [&str; 2] = ["mmproj", "imatrix"];
/// The same at the beginning of a word.
const NO_MODELS_WORDS: [&str; 4] = ["mtp-", "eagle3-", "dflash-", "dspark-"];

/// True for a GGUF file that can be chosen: a model, and of a split set the first part.
pub fn is_candidate(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let begins_word =
        |word: &str| name.match_indices(word).any(|(at, _)| at == 0 || name[..at].ends_with(['-', '.', '_']));
    name.ends_with(".gguf")
        && !NO_MODELS.iter().any(|word| name.contains(word))
        && !NO_MODELS_WORDS.iter().any(|word| begins_word(word))
        && Split::of(path).is_none_or(|split| split.part == 1)
}

/// Selects the files that a name means.
///
/// # Errors
/// [`HubError::NoFile`], [`HubError::NoTag`], [`HubError::ManyFiles`], [`HubError::NoModel`],
/// [`HubError::MissingPart`].
pub fn select(name: &HubName, tree: &[TreeFile]) -> Result<Selection, HubError> {
    let candidates: Vec<usize> = (0..tree.len()).filter(|i| is_candidate(&tree[*i].path)).collect();
    let first = match &name.pick {
        Pick::File(path) => {
            let found = tree.iter().position(|file| file.path == *path);
            let found =
                found.ok_or_else(|| HubError::NoFile { name: name.to_string(), path: path.clone() })?;
            let form = if path.to_ascii_lowercase().ends_with(".gguf") { Form::Gguf } else { Form::File };
            return Ok(Selection { form, files: parts(found, tree)? });
        }
        Pick::Tag(tag) => match by_tag(tag, tree, &candidates)[..] {
            [one] => one,
            [] => {
                let files = listing(tree, &candidates);
                return Err(HubError::NoTag { name: name.to_string(), tag: tag.clone(), files });
            }
            ref many => {
                return Err(HubError::ManyFiles { name: name.to_string(), files: listing(tree, many) });
            }
        },
        Pick::Usual => match usual(tree, &candidates)[..] {
            [one] => one,
            [] => return folder::select(name, tree),
            ref many => {
                return Err(HubError::ManyFiles { name: name.to_string(), files: listing(tree, many) });
            }
        },
    };
    Ok(Selection { form: Form::Gguf, files: parts(first, tree)? })
}

/// Files of a tree, for a message.
fn listing(tree: &[TreeFile], files: &[usize]) -> Listing {
    Listing(files.iter().map(|i| (tree[*i].path.clone(), tree[*i].size)).collect())
}

/// The candidates that fit a tag best.
fn by_tag(tag: &str, tree: &[TreeFile], candidates: &[usize]) -> Vec<usize> {
    let fits: Vec<(Fit, usize)> =
        candidates.iter().filter_map(|i| Some((fit(&tree[*i].path, tag)?, *i))).collect();
    let best = fits.iter().map(|(fit, _)| *fit).min();
    fits.iter().filter(|(fit, _)| Some(*fit) == best).map(|(_, i)| *i).collect()
}

/// The candidates of the first usual tag that has some, else all.
fn usual(tree: &[TreeFile], candidates: &[usize]) -> Vec<usize> {
    let tagged = USUAL_TAGS.iter().map(|tag| by_tag(tag, tree, candidates));
    tagged.into_iter().find(|found| !found.is_empty()).unwrap_or_else(|| candidates.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    pub(super) fn tree(paths: &[&str]) -> Vec<TreeFile> {
        let file = |(i, path): (usize, &&str)| TreeFile {
            path: path.to_string(),
            size: 1000 * (i as u64 + 1),
            digest: None,
            oid: String::new(),
            xet_hash: None,
        };
        paths.iter().enumerate().map(file).collect()
    }

    /// Paths of the selected files, or the message.
    fn chosen(name: &str, paths: &[&str]) -> Result<Vec<String>, String> {
        let tree = tree(paths);
        let name = HubName::parse(&format!("org/repo{name}")).unwrap();
        let selection = select(&name, &tree).map_err(|e| e.to_string())?;
        Ok(selection.files.iter().map(|i| tree[*i].path.clone()).collect())
    }

    #[test]
    fn tags_choose_whole_words_at_the_end_first() {
        let rows: &[(&str, &[&str], &str)] = &[
            (":F16", &["a-BF16.gguf", "a-F16.gguf"], "a-F16.gguf"),
            (":q4_xs", &["a-IQ4_XS.gguf", "a-Q4_XS.gguf"], "a-Q4_XS.gguf"),
            (":Q4_K_M", &["a-Q4_K_M-imat.gguf", "a-Q4_K_M.gguf"], "a-Q4_K_M.gguf"),
            (":Q4_K_XL", &["a-UD-Q4_K_XL.gguf", "a-Q4_K_XL.gguf"], "a-Q4_K_XL.gguf"),
            (":Q4_K_XL", &["a-UD-Q4_K_XL.gguf", "a-Q8_0.gguf"], "a-UD-Q4_K_XL.gguf"),
            (":UD-Q4_K_XL", &["a-UD-Q4_K_XL.gguf", "a-Q4_K_XL.gguf"], "a-UD-Q4_K_XL.gguf"),
            (":Q8_0", &["mmproj-Q8_0.gguf", "a.Q8_0.gguf"], "a.Q8_0.gguf"),
            (":Q8_0", &["a/Q8_0/model.gguf", "b.txt"], "a/Q8_0/model.gguf"),
            ("", &["a-Q8_0.gguf", "a-Q4_K_M.gguf", "a-F16.gguf"], "a-Q4_K_M.gguf"),
            ("", &["a-Q8_0.gguf", "a-Q4_0.gguf"], "a-Q4_0.gguf"),
            ("", &["mmproj-a-f16.gguf", "a-Q2_K.gguf", "README.md"], "a-Q2_K.gguf"),
            ("/b/x.gguf", &["a/x.gguf", "b/x.gguf"], "b/x.gguf"),
            ("/imatrix.dat", &["imatrix.dat", "b.gguf"], "imatrix.dat"),
        ];
        for (name, paths, path) in rows {
            assert_eq!(chosen(name, paths), Ok(vec![path.to_string()]), "{name} {paths:?}");
        }
    }

    #[test]
    fn several_or_none_are_an_error_with_the_files() {
        let error = chosen(":Q5_K_M", &["a-Q4_K_M.gguf", "a-Q8_0.gguf"]).unwrap_err();
        assert!(error.contains("`Q5_K_M`") && error.contains("a-Q8_0.gguf (2.00 kB)"), "{error}");
        let error = chosen(":Q4_K_M", &["a-Q4_K_M.gguf", "b-Q4_K_M.gguf", "c-Q8_0.gguf"]).unwrap_err();
        assert!(error.contains("b-Q4_K_M.gguf") && !error.contains("c-Q8_0"), "{error}");
        let error = chosen("", &["a-Q6_K.gguf", "b-Q6_K.gguf"]).unwrap_err();
        assert!(error.contains("a-Q6_K.gguf") && error.contains("b-Q6_K.gguf"), "{error}");
        let error = chosen("/no.gguf", &["a.gguf"]).unwrap_err();
        assert!(error.contains("no.gguf"), "{error}");
        let error = chosen("", &["README.md", "pytorch_model.bin"]).unwrap_err();
        assert!(error.contains("no model"), "{error}");
    }

    #[test]
    fn split_sets_are_whole() {
        let all = [
            "Q8_0/a-Q8_0-00001-of-00002.gguf",
            "Q8_0/a-Q8_0-00002-of-00002.gguf",
            "a-Q4_0-00001-of-00002.gguf",
        ];
        assert_eq!(chosen(":Q8_0", &all).unwrap(), all[..2]);
        assert_eq!(chosen("/Q8_0/a-Q8_0-00002-of-00002.gguf", &all).unwrap(), all[..2]);
        let error = chosen(":Q4_0", &all).unwrap_err();
        assert!(error.contains("a-Q4_0-00002-of-00002.gguf"), "{error}");
    }

    #[test]
    fn weights_have_the_names_of_their_index() {
        let index = "model.safetensors.index.json";
        let rows: &[(&[&str], &[&str])] = &[
            (
                &[
                    "model.safetensors-00001-of-00002.safetensors",
                    "model.safetensors-00002-of-00002.safetensors",
                ],
                &[],
            ),
            (&["pytorch_model-00001-of-00001.safetensors"], &["consolidated-00001-of-00001.safetensors"]),
            (&["weights.00.safetensors", "weights.01.safetensors"], &["adapter_model.safetensors"]),
        ];
        for (weights, others) in rows {
            let all = [&["config.json", index][..], weights, others].concat();
            let expected = [&["config.json", index][..], weights].concat();
            assert_eq!(chosen("", &all).unwrap(), expected);
            // Without the index, loading finds model.safetensors alone.
            let error = chosen("", &[&["config.json"][..], weights].concat()).unwrap_err();
            assert!(error.contains("no model"), "{error}");
        }
        let error =
            chosen("", &["config.json", index, "model.safetensors-00001-of-00002.safetensors"]).unwrap_err();
        assert!(error.contains("model.safetensors-00002-of-00002.safetensors"), "{error}");
    }

    #[test]
    fn a_named_part_of_a_checkpoint_is_no_gguf_file() {
        let tree = tree(&["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]);
        let name = HubName::parse("org/repo/model-00001-of-00002.safetensors").unwrap();
        let selection = select(&name, &tree).unwrap();
        assert_eq!((selection.form, selection.files), (Form::File, vec![0, 1]));
    }

    #[test]
    fn folders_have_the_files_that_loading_needs() {
        let hf = [
            "README.md",
            "config.json",
            "consolidated.safetensors",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "original/params.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "additional_chat_templates/tool.jinja",
            "pytorch_model.bin",
        ];
        let files = chosen("", &hf).unwrap();
        assert_eq!(files, [hf[1], hf[3], hf[4], hf[5], hf[7], hf[8], hf[9]]);
        let mlc = [
            "mlc-chat-config.json",
            "ndarray-cache.json",
            "params_shard_0.bin",
            "tokenizer.model",
            "logs.txt",
        ];
        assert_eq!(chosen("", &mlc).unwrap(), mlc[..4]);
        let tree = tree(&mlc);
        let name = HubName::parse("org/repo").unwrap();
        assert_eq!(select(&name, &tree).unwrap().form, Form::Mlc);
    }
}
