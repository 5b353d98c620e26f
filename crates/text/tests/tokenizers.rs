//! Tokenizers, compared with the ids of the reference implementation.

mod common;

use std::path::Path;
use std::sync::LazyLock;

use chaski_text::{
    AddSpecial, ChatTemplates, Message, ParseSpecial, RenderSpecial, Sampler, SamplerParams, TemplateOptions,
    TextStream, TokenKind, Tokenizer, TokenizerError, TokenizerSpec, strip_added_special,
};
use proptest::prelude::*;

fn load(path: &Path) -> Result<Tokenizer, TokenizerError> {
    Tokenizer::from_metadata(common::read_gguf(path).metadata())
}

/// Vocabularies that discard case, accents and white space; the tests compare their ids, and re-encode the
/// decoded words.
const LOSSY: &[&str] = &["ggml-vocab-bert-bge.gguf"];

#[test]
fn ids_equal_the_reference_for_every_vocabulary() {
    let Some(folder) = common::test_data("vocab") else { return };
    let mut n_file = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gguf") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let tokenizer = load(&path).unwrap();
        let texts = std::fs::read_to_string(path.with_extension("gguf.inp")).unwrap();
        let ids = std::fs::read_to_string(path.with_extension("gguf.out")).unwrap();
        let separator = "\n__ggml_vocab_test__\n";
        let texts = texts.strip_suffix(separator).unwrap_or(&texts);
        let texts: Vec<&str> = texts.split(separator).collect();
        let ids: Vec<Vec<u32>> =
            ids.lines().map(|line| line.split_whitespace().map(|id| id.parse().unwrap()).collect()).collect();
        assert_eq!(texts.len(), ids.len(), "{name}");
        for (text, ids) in texts.iter().zip(&ids) {
            let found = tokenizer.encode(text, AddSpecial::No, ParseSpecial::No).unwrap();
            assert_eq!(&found, ids, "{name}: {text:?}");
            let within = tokenizer.within(ids.len()).encode(text, AddSpecial::No, ParseSpecial::No);
            assert_eq!(&within.unwrap(), ids, "{name}: {text:?}");
            let decoded = tokenizer.decode_lossy(&found, RenderSpecial::Yes);
            if LOSSY.contains(&name.as_str()) {
                let again = tokenizer.encode(&decoded, AddSpecial::No, ParseSpecial::Yes).unwrap();
                assert_eq!(&again, ids, "{name}: {text:?}");
            } else {
                assert_eq!(&decoded, text, "{name}");
            }
        }
        common::say(&format!("{name}: {} texts", texts.len()));
        n_file += 1;
    }
    assert!(n_file > 0, "no vocabulary in {}", folder.display());
}

/// Vocabularies of the golden data that can encode every text, built once.
static REAL: LazyLock<Vec<(String, Tokenizer)>> = LazyLock::new(|| {
    let folder = common::test_data("vocab");
    let names = ["llama-spm", "phi-3", "llama-bpe", "qwen2", "qwen35", "gemma-4", "gpt-2"];
    let load_all = |folder: std::path::PathBuf| {
        let file = |name: &str| folder.join(format!("ggml-vocab-{name}.gguf"));
        names.map(|name| (name.to_owned(), load(&file(name)).unwrap())).into()
    };
    folder.map(load_all).unwrap_or_default()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn real_vocabularies_give_every_text_back(
        text in prop_oneof![any::<String>(), "[a-z >▁<\n\t.,'0-9é你😀</]{0,40}"],
    ) {
        for (name, tokenizer) in &*REAL {
            // In SPM and gemma, a literal `▁` is a space.
            let expected = match name.as_str() {
                "llama-spm" | "phi-3" | "gemma-4" => text.replace('▁', " "),
                _ => text.clone(),
            };
            let ids = plain(tokenizer, &text);
            let within = tokenizer.within(ids.len()).encode(&text, AddSpecial::No, ParseSpecial::No);
            prop_assert_eq!(within.ok(), Some(ids.clone()));
            prop_assert_eq!(tokenizer.decode(&ids, RenderSpecial::Yes), expected.as_bytes(), "{}", name);
        }
    }
}

fn plain(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, AddSpecial::No, ParseSpecial::No).unwrap()
}

/// The tokenizer of the model that ships with the program: byte-level BPE of 2048 tokens.
static STORYTELLER: LazyLock<Tokenizer> = LazyLock::new(|| load(&common::storyteller()).unwrap());

#[test]
fn storyteller_says_what_its_metadata_say() {
    let tokenizer = &*STORYTELLER;
    assert_eq!(tokenizer.n_vocab(), 2048);
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.eot()), (Some(0), Some(1), Some(1)));
    assert_eq!(tokenizer.eog_ids(), [1]);
    assert!(tokenizer.is_eog(1) && !tokenizer.is_eog(0));
    assert!(tokenizer.adds_bos() && !tokenizer.adds_eos() && !tokenizer.adds_space_prefix());
    assert_eq!(tokenizer.kind(0), Some(TokenKind::Control));
    assert_eq!(tokenizer.kind(100), Some(TokenKind::Normal));
    assert_eq!(tokenizer.kind(2048), None);
    assert_eq!(tokenizer.token_text(1), Some("<|end|>"));
    assert_eq!(tokenizer.token_id("<|end|>"), Some(1));
    assert!(tokenizer.token_bytes(2048, RenderSpecial::Yes).is_empty());
}

#[test]
fn special_tokens_are_parsed_and_printed_when_asked() {
    let tokenizer = &*STORYTELLER;
    let text = "<|user|>\nHi<|end|>";
    let parsed = tokenizer.encode(text, AddSpecial::Yes, ParseSpecial::Yes).unwrap();
    assert_eq!((parsed[0], parsed[1], *parsed.last().unwrap()), (0, 2, 1));
    assert_eq!(tokenizer.decode_lossy(&parsed, RenderSpecial::No), "\nHi");
    assert_eq!(tokenizer.decode_lossy(&parsed, RenderSpecial::Yes), "<|begin|><|user|>\nHi<|end|>");
    let unparsed = plain(tokenizer, text);
    assert!(unparsed.iter().all(|&id| id > 3));
    assert_eq!(tokenizer.decode_lossy(&unparsed, RenderSpecial::No), text);
}

#[test]
fn template_bos_is_not_doubled() {
    let gguf = common::read_gguf(&common::storyteller());
    let templates = ChatTemplates::from_metadata(gguf.metadata());
    let template = templates.get(false).unwrap().unwrap();
    let tokenizer = &*STORYTELLER;
    let bos_token = tokenizer.token_text(0).unwrap().to_owned();
    let options = TemplateOptions { bos_token, ..TemplateOptions::default() };
    let prompt = template.render(&[Message::new("user", "Hi")], &options).unwrap();
    assert_eq!(prompt, "<|begin|><|user|>\nHi<|end|>\n<|assistant|>\n");
    let prompt = strip_added_special(&prompt, tokenizer);
    let ids = tokenizer.encode(prompt, AddSpecial::Yes, ParseSpecial::Yes).unwrap();
    assert_eq!(ids.iter().filter(|&&id| id == 0).count(), 1);
}

#[test]
fn dry_breakers_are_spelled_in_tokens() {
    let params = SamplerParams { dry_multiplier: 100.0, ..SamplerParams::greedy() };
    let mut sampler = Sampler::new(params, &STORYTELLER);
    let ids = plain(&STORYTELLER, " cat sat on the cat sat on");
    let repeated = plain(&STORYTELLER, " cat sat on the")[ids.len() / 2];
    let mut logits = vec![0.0; 2048];
    logits[repeated as usize] = 1.0;
    ids.iter().for_each(|&id| sampler.accept(id));
    assert_ne!(sampler.sample(&logits), Ok(repeated), "the penalty must stop the repetition");
    // After a breaker nothing is a repetition any more.
    plain(&STORYTELLER, ":").iter().for_each(|&id| sampler.accept(id));
    assert_eq!(sampler.sample(&logits), Ok(repeated));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn byte_level_bpe_gives_every_text_back(text in any::<String>()) {
        let ids = plain(&STORYTELLER, &text);
        prop_assert_eq!(STORYTELLER.decode(&ids, RenderSpecial::No), text.as_bytes());
    }

    #[test]
    fn text_of_words_and_spaces_comes_back(text in "[a-z'0-9 \n\t.,é你😀]{0,60}") {
        let ids = plain(&STORYTELLER, &text);
        prop_assert_eq!(STORYTELLER.decode_lossy(&ids, RenderSpecial::No), text.as_str());
        let mut stream = TextStream::new();
        let mut streamed = String::new();
        for id in ids {
            streamed.extend(stream.push(&STORYTELLER.token_bytes(id, RenderSpecial::No)));
        }
        prop_assert_eq!(stream.finish(), None);
        prop_assert_eq!(streamed, text);
    }

    #[test]
    fn control_tokens_never_come_from_plain_text(text in "(<\\||end|user|\\|>|a| ){0,12}") {
        prop_assert!(plain(&STORYTELLER, &text).iter().all(|&id| id > 3));
        let parsed = STORYTELLER.encode(&text, AddSpecial::No, ParseSpecial::Yes).unwrap();
        prop_assert_eq!(STORYTELLER.decode_lossy(&parsed, RenderSpecial::Yes), text);
    }
}

/// A vocabulary of `words`, with their types, then all 256 byte tokens.
fn spm(words: &[(&str, f32, i32)], change: impl FnOnce(&mut TokenizerSpec)) -> Tokenizer {
    let mut spec = TokenizerSpec { model: "llama".into(), ..TokenizerSpec::default() };
    for &(word, score, kind) in words {
        spec.tokens.push(word.into());
        spec.scores.push(score);
        spec.token_types.push(kind);
    }
    for byte in 0..=255u8 {
        spec.tokens.push(format!("<0x{byte:02X}>"));
        spec.scores.push(0.0);
        spec.token_types.push(6);
    }
    change(&mut spec);
    Tokenizer::from_spec(spec).unwrap()
}

const SPM: &[(&str, f32, i32)] = &[
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("</s>", 0.0, 3),
    ("▁", -9.0, 1),
    ("a", -9.0, 1),
    ("b", -9.0, 1),
    ("ab", -2.0, 1),
    ("ba", -1.0, 1),
    ("▁ab", -3.0, 1),
    ("<u>", 0.0, 4),
];

#[test]
fn spm_merges_the_best_score_first_and_the_leftmost_of_equals() {
    let tokenizer = spm(SPM, |_| ());
    // "▁aba": "ba" has the best score.
    assert_eq!(plain(&tokenizer, "aba"), [3, 4, 7]);
    assert_eq!(plain(&tokenizer, "ab"), [8]);
    assert_eq!(plain(&tokenizer, ""), [0; 0]);
    let tie = spm(&[("<unk>", 0.0, 2), ("a", 0.0, 1), ("aa", 0.0, 1), ("▁", 0.0, 1)], |_| ());
    assert_eq!(plain(&tie, "aaa"), [3, 2, 1]);
}

#[test]
fn spm_space_prefix_follows_special_tokens_and_is_dropped_again() {
    let tokenizer = spm(SPM, |_| ());
    let ids = tokenizer.encode("ab<s>ab<u>ab", AddSpecial::Yes, ParseSpecial::Yes).unwrap();
    assert_eq!(ids, [1, 8, 1, 8, 9, 8]);
    assert_eq!(tokenizer.decode_lossy(&ids, RenderSpecial::No), "ab ab<u> ab");
    let bare = spm(SPM, |spec| spec.add_space_prefix = Some(false));
    let ids = bare.encode("ab ab", AddSpecial::No, ParseSpecial::No).unwrap();
    assert_eq!(ids, [6, 8]);
    assert_eq!(bare.decode_lossy(&ids, RenderSpecial::No), "ab ab");
}

#[test]
fn spm_spells_unknown_characters_in_bytes() {
    let tokenizer = spm(SPM, |_| ());
    let ids = plain(&tokenizer, "é");
    assert_eq!(ids, [3, 10 + 0xc3, 10 + 0xa9]);
    assert_eq!(tokenizer.decode_lossy(&ids, RenderSpecial::No), "é");
    assert_eq!(tokenizer.kind(10), Some(TokenKind::Byte));
}

#[test]
fn user_defined_tokens_match_in_any_text_and_longer_ones_first() {
    let words = [SPM, &[("<u><u>", 0.0, 4), ("u><", 0.0, 4)]].concat();
    let tokenizer = spm(&words, |spec| spec.add_space_prefix = Some(false));
    // 10 is the longest; then "u><" (11) is as long as "<u>" but has the larger id.
    assert_eq!(plain(&tokenizer, "<u><u>"), [10]);
    assert_eq!(plain(&tokenizer, "a<u>b</s>")[..3], [4, 9, 5]);
    assert_eq!(plain(&tokenizer, "<u><")[0], 9);
    assert_eq!(tokenizer.decode_lossy(&[9, 10], RenderSpecial::No), "<u><u><u>");
}

#[test]
fn phi_3_drops_white_space_after_special_tokens() {
    let words = [SPM, &[("<|end|>", 0.0, 3)]].concat();
    let encode = |name: &str| {
        let tokenizer = spm(&words, |spec| spec.name = Some(name.into()));
        tokenizer.encode("<|end|>\n ab<s> ab", AddSpecial::No, ParseSpecial::Yes).unwrap()
    };
    assert_eq!(encode("Phi-3 mini"), [10, 8, 1, 3, 8]);
    assert_ne!(encode("Other"), encode("Phi-3 mini"));
}

#[test]
fn end_of_generation_is_known_by_id_and_by_text() {
    let with = |words: &[&str], eos: Option<u32>| {
        let words: Vec<(&str, f32, i32)> = words.iter().map(|word| (*word, 0.0, 1)).collect();
        let tokenizer = spm(&words, |spec| spec.eos = eos);
        (tokenizer.eog_ids(), tokenizer)
    };
    let (eog, tokenizer) = with(&["a", "b", "c", "<|im_end|>", "<|endoftext|>", "<fim_pad>"], Some(1));
    assert_eq!(eog, [1, 3, 4, 5]);
    assert_eq!(tokenizer.eot(), Some(3));
    assert_eq!(tokenizer.fim().pad, Some(5));
    assert_eq!(tokenizer.kind(3), Some(TokenKind::Control));
    // gpt-oss: the end of a channel is not the end.
    let harmony = ["a", "<|return|>", "<|call|>", "<|end|>", "<|channel|>"];
    let (eog, tokenizer) = with(&harmony, Some(1));
    assert_eq!(eog, [1, 2]);
    assert_eq!(tokenizer.kind(4), Some(TokenKind::UserDefined));
    // Solar Open: likewise with other tokens; without them it is the end.
    for calls in ["<|call|>", "<|calls|>"] {
        let (eog, tokenizer) = with(&["a", "<|flush|>", calls, "<|end|>"], Some(1));
        assert_eq!(eog, [1, 2], "{calls}");
        assert_eq!(tokenizer.kind(3), Some(TokenKind::UserDefined));
    }
    let (eog, _) = with(&["a", "<|flush|>", "b", "<|end|>"], Some(1));
    assert_eq!(eog, [1, 3]);
    // gemma 4: an HTML tag is not the end, but text.
    let (eog, tokenizer) = with(&["a", "</s>", "<|tool_response>"], Some(0));
    assert_eq!(eog, [0, 2]);
    assert_eq!(tokenizer.kind(1), Some(TokenKind::Normal));
    assert_eq!(tokenizer.decode_lossy(&[1], RenderSpecial::No), "</s>");
}

#[test]
fn control_tokens_called_unused_are_control_tokens() {
    let words = [SPM, &[("<unused94>", 0.0, 3), ("<unused95>", 0.0, 5)]].concat();
    let tokenizer = spm(&words, |spec| spec.add_space_prefix = Some(false));
    let ids = tokenizer.encode("a<unused94>", AddSpecial::No, ParseSpecial::Yes).unwrap();
    assert_eq!(ids, [4, 10]);
    assert_eq!(tokenizer.decode_lossy(&ids, RenderSpecial::Yes), "a<unused94>");
    assert_eq!(tokenizer.decode_lossy(&ids, RenderSpecial::No), "a");
    // Tokens that the file marks as unused render as nothing.
    assert_eq!(tokenizer.decode_lossy(&[11], RenderSpecial::Yes), "");
}

#[test]
fn tokens_recognised_by_their_texts_are_control_tokens() {
    let words =
        [SPM, &[("<|prefix|>", 0.0, 1), ("<|suffix|>", 0.0, 4), ("<|middle|>", 0.0, 1), ("<PRE>", 0.0, 1)]];
    let tokenizer = spm(&words.concat(), |_| {});
    let fim = tokenizer.fim();
    // The first text of the list wins; the other one stays unchanged.
    assert_eq!((fim.prefix, fim.suffix, fim.middle), (Some(13), Some(11), Some(12)));
    let kinds = [10, 11, 12, 13].map(|id| tokenizer.kind(id).unwrap());
    use TokenKind::{Control, Normal};
    assert_eq!(kinds, [Normal, Control, Control, Control]);
    // An id in the file overrides recognition by text.
    let tokenizer = spm(&words.concat(), |spec| spec.fim.prefix = Some(10));
    assert_eq!((tokenizer.fim().prefix, tokenizer.kind(10)), (Some(10), Some(Normal)));
}

#[test]
fn suppressed_and_end_tokens_are_not_sampled_when_told_so() {
    let tokenizer = spm(SPM, |spec| spec.suppress = vec![5]);
    assert_eq!(tokenizer.suppressed(), [5]);
    let params = SamplerParams { ignore_eos: true, ..SamplerParams::greedy() };
    let mut sampler = Sampler::new(params, &tokenizer);
    let mut logits = vec![0.0; tokenizer.n_vocab()];
    (logits[2], logits[5], logits[4]) = (9.0, 8.0, 7.0);
    assert_eq!(sampler.sample(&logits), Ok(4));
}

#[test]
fn models_without_text_take_ids_only() {
    for model in ["test", "none"] {
        let spec = TokenizerSpec { model: model.into(), n_vocab: Some(128), ..TokenizerSpec::default() };
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        assert_eq!(tokenizer.n_vocab(), 128);
        assert!(!tokenizer.has_text());
        let error = tokenizer.encode("Hi", AddSpecial::Yes, ParseSpecial::Yes).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("this model has no text vocabulary (tokenizer model `{model}`): use token ids")
        );
        assert!(tokenizer.decode(&[1, 2, 500], RenderSpecial::Yes).is_empty());
    }
}

#[test]
fn broken_metadata_are_refused_with_the_reason() {
    let error = |change: fn(&mut TokenizerSpec)| {
        let mut spec = TokenizerSpec {
            model: "gpt2".into(),
            tokens: vec!["a".into(), "b".into(), "ab".into()],
            merges: vec!["a b".into()],
            ..TokenizerSpec::default()
        };
        change(&mut spec);
        Tokenizer::from_spec(spec).unwrap_err().to_string()
    };
    assert_eq!(
        error(|spec| spec.model = "rwkv".into()),
        "tokenizer model `rwkv` is not supported (known: llama, gpt2, gemma4, bert, t5, test, none)"
    );
    assert_eq!(error(|spec| spec.merges.clear()), "tokenizer metadata `tokenizer.ggml.merges` is missing");
    assert_eq!(
        error(|spec| spec.merges.push("ab".into())),
        "merge 1 is \"ab\": expected two parts separated by a space"
    );
    assert_eq!(error(|spec| spec.tokens[2] = "a".into()), "tokens 0 and 2 have the same text \"a\"");
    assert_eq!(
        error(|spec| spec.token_types.push(1)),
        "tokenizer metadata `tokenizer.ggml.token_type`: expected 3 entries, one per token, found 1"
    );
    assert!(error(|spec| spec.pre = Some("x".into())).starts_with("unknown pre-tokenizer `x`"));
}

#[test]
fn types_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Tokenizer>();
    is_shared::<ChatTemplates>();
    is_shared::<Sampler>();
    is_shared::<TextStream>();
}

/// Byte-level BPE over the letters of a few words, with one merge.
fn letters(change: impl FnOnce(&mut TokenizerSpec)) -> Result<Tokenizer, TokenizerError> {
    let mut spec = TokenizerSpec {
        model: "gpt2".into(),
        tokens: ["a", "b", "ab", "Ã", "©", "e", "Ì", "ģ", "<x>"].map(str::to_owned).to_vec(),
        token_types: vec![1, 1, 1, 1, 1, 1, 1, 1, 3],
        merges: vec!["a b".into()],
        pre: Some("gpt-2".into()),
        ..TokenizerSpec::default()
    };
    change(&mut spec);
    Tokenizer::from_spec(spec)
}

#[test]
fn a_model_may_bring_its_own_expressions_and_form_of_unicode() {
    let usual = letters(|_| {}).unwrap();
    assert_eq!(plain(&usual, "abe\u{301}"), [2, 5, 6, 7]);
    let own = letters(|spec| {
        spec.pre_expressions = vec!["a".into(), r"\w+|\s+(?!\S)|\s+".into()];
        spec.normalizer = Some("nfc".into());
        spec.eog = vec![8, 4000];
    });
    let own = own.unwrap();
    assert_eq!(plain(&own, "abe\u{301}"), [0, 1, 3, 4]);
    assert!(own.is_eog(8) && !usual.is_eog(8) && own.eog_ids() == [8]);
}

#[test]
fn expressions_and_forms_that_are_not_known_are_refused() {
    for many in [vec!["a".to_owned(); 17], vec!["a".repeat(40 << 10); 2]] {
        let error = letters(|spec| spec.pre_expressions = many.clone()).unwrap_err().to_string();
        assert!(error.contains("at most 16 expressions of 65536 bytes together"), "{error}");
    }
    let look = letters(|spec| spec.pre_expressions = vec!["(?<=a)b".into()]).unwrap_err();
    assert_eq!(
        look.to_string(),
        "pre-tokenizer expression \"(?<=a)b\": look-around is not supported; name a known pre-tokenizer instead"
    );
    let form = letters(|spec| spec.normalizer = Some("NFC".into())).unwrap_err();
    assert_eq!(form.to_string(), "unknown normalizer `NFC` (known: nfc, nfd, nfkc, nfkd)");
}
