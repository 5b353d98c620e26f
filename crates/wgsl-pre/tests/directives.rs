//! The directive language, case by case: `inputs/*.txt` against `snapshots/`.
//!
//! A case states a fact, the macros of the options and of each call (`A=1; B`), and the files; `main.wgsl` is
//! processed. The snapshot shows each output line with the file and line it came from, or the error.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use wgsl_pre::{Error, Macros, Options, Preprocessor};

#[derive(Default)]
struct Case {
    fact: String,
    options: String,
    calls: Vec<String>,
    files: BTreeMap<String, String>,
}

impl Case {
    fn parse(text: &str) -> Self {
        let mut case = Self::default();
        let mut file = None;
        for line in text.split_inclusive('\n') {
            let Some((key, value)) = line.strip_prefix("--- ").and_then(|line| line.split_once(':')) else {
                let file: &String = file.as_ref().expect("a line belongs to a file");
                case.files.entry(file.clone()).or_default().push_str(line);
                continue;
            };
            let value = value.trim();
            match key {
                "fact" => case.fact = value.to_owned(),
                "options" => case.options = value.to_owned(),
                "call" => case.calls.push(value.to_owned()),
                "file" => {
                    case.files.entry(value.to_owned()).or_default();
                    file = Some(value.to_owned());
                }
                "no newline" => {
                    let text =
                        file.as_ref().and_then(|file| case.files.get_mut(file)).expect("a file with a text");
                    assert_eq!(text.pop(), Some('\n'));
                }
                _ => panic!("unknown key {key}"),
            }
        }
        if case.calls.is_empty() {
            case.calls.push(String::new());
        }
        case
    }

    fn run(&self) -> String {
        let options = match macros(&self.options) {
            Ok(options) => options,
            Err(e) => return format!("error: {e}\n"),
        };
        let preprocessor = Preprocessor::new(Options::default().macros(options).loader(self.files.clone()));
        let mut shown = String::new();
        for call in &self.calls {
            if self.calls.len() > 1 {
                writeln!(shown, "call: {call}").unwrap();
            }
            let result = macros(call).and_then(|macros| preprocessor.process_file("main.wgsl", &macros));
            match result {
                Err(e) => writeln!(shown, "error: {e}").unwrap(),
                Ok(output) => {
                    for (idx, line) in output.text.split_inclusive('\n').enumerate() {
                        let (file, line_in_file) =
                            output.locate(idx as u32 + 1).expect("every line has a place");
                        let place = format!("{file}:{line_in_file}");
                        let end = if line.ends_with('\n') { "" } else { "<no newline>" };
                        let text = line.trim_end_matches('\n').replace('\r', "<cr>").replace('\t', "<tab>");
                        writeln!(shown, "{place:<14}|{text}{end}").unwrap();
                    }
                    let n_line = output.text.split_inclusive('\n').count() as u32;
                    assert_eq!(output.locate(n_line + 1), None);
                    assert_eq!(output.locate(0), None);
                }
            }
        }
        shown
    }
}

fn macros(definitions: &str) -> Result<Macros, Error> {
    Macros::parse(definitions.split(';').map(str::trim).filter(|definition| !definition.is_empty()))
}

#[test]
fn cases_match_their_snapshots() {
    insta::glob!("inputs/*.txt", |path| {
        let case = Case::parse(&std::fs::read_to_string(path).unwrap());
        insta::with_settings!({ description => case.fact.clone(), omit_expression => true }, {
            insta::assert_snapshot!(case.run());
        });
    });
}

#[test]
fn one_definition_cannot_fill_memory() {
    let mut text = String::from("#define M0 x\n");
    for n in 1..40 {
        writeln!(text, "#define M{n} M{0} M{0}", n - 1).unwrap();
    }
    text.push_str("M39\n");
    let error = Preprocessor::default().process("a", &text, &Macros::new()).unwrap_err();
    assert!(error.to_string().ends_with("makes this line too large"), "{error}");
    assert_eq!(error.location().map(|at| (at.line, at.column)), Some((41, Some(1))));
}

#[test]
fn long_chains_and_deep_nesting_are_values_or_errors() {
    let mut text = String::from("#define M0 x\n#define F(a) a\n");
    for n in 1..5000 {
        writeln!(text, "#define M{n} M{}", n - 1).unwrap();
    }
    let chain = text.clone() + "M4999\n";
    assert_eq!(Preprocessor::default().process("a", &chain, &Macros::new()).unwrap().text, "x\n");
    let deep_if = text.clone() + "#if M4999\n#endif\n";
    assert!(Preprocessor::default().process("a", &deep_if, &Macros::new()).is_err());
    let nested = text + &"F(".repeat(5000) + &")".repeat(5000);
    assert!(Preprocessor::default().process("a", &nested, &Macros::new()).is_err());
}

#[test]
fn includes_have_a_deepest_nesting() {
    let files: BTreeMap<String, String> =
        (0..200).map(|n| (format!("f{n}"), format!("#include \"f{}\"\n", n + 1))).collect();
    let preprocessor = Preprocessor::new(Options::default().loader(files));
    let error = preprocessor.process_file("f0", &Macros::new()).unwrap_err();
    assert!(error.to_string().contains("includes are nested deeper than 100"), "{error}");
}

#[test]
fn a_compiler_error_maps_back_to_the_file() {
    let files =
        BTreeMap::from([("lib.wgsl", "#define N 4\n\nfn f() -> u32 {\n    return N + nowhere;\n}\n")]);
    let preprocessor = Preprocessor::new(Options::default().loader(files));
    let text = "#include \"lib.wgsl\"\nfn main() {}\n";
    let output = preprocessor.process("main.wgsl", text, &Macros::new()).unwrap();
    let error = naga::front::wgsl::parse_str(&output.text).unwrap_err();
    let line = error.location(&output.text).expect("a place").line_number;
    assert_eq!(output.locate(line), Some(("lib.wgsl", 4)));
}

/// Random text with every construct of the language, and much that is invalid.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "#",
        "##",
        "if ",
        "ifdef ",
        "ifndef ",
        "elif ",
        "else",
        "endif",
        "define ",
        "undef ",
        "include ",
        "pragma once",
        "error ",
        "\n",
        "\n",
        "\n#",
        "\r\n",
        "\\\n",
        " ",
        "\t",
        "A",
        "B",
        "F",
        "F(",
        "(",
        ")",
        ",",
        "defined",
        "\"",
        "\"f\"",
        "/*",
        "*/",
        "//",
        "0",
        "1",
        "0x",
        "1u",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<<",
        ">>",
        "<",
        "=",
        "==",
        "!",
        "&&",
        "||",
        "é",
        "\u{2028}",
        "𝒳",
        "\0",
    ]);
    prop_oneof![
        3 => prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

proptest! {
    #[test]
    fn any_text_gives_an_output_or_an_error(text in soup(), included in soup()) {
        let files = BTreeMap::from([("f".to_owned(), included)]);
        let preprocessor = Preprocessor::new(Options::default().loader(files).macros(Macros::new().with("A", 2)));
        if let Ok(output) = preprocessor.process("main", &text, &Macros::new()) {
            let n_line = output.text.split_inclusive('\n').count() as u32;
            prop_assert!((1..=n_line).all(|line| output.locate(line).is_some()));
            prop_assert_eq!(output.locate(n_line + 1), None);
        }
    }

    #[test]
    fn text_without_directives_and_macros_stays_as_it_is(text in soup()) {
        let text = text.replace('#', "");
        let output = Preprocessor::default().process("main", &text, &Macros::new()).unwrap();
        prop_assert_eq!(output.text, text);
    }

    #[test]
    fn names_that_only_contain_a_macro_stay_as_they_are(before in "[a-zA-Z_]{0,3}", after in "[a-zA-Z0-9_]{0,3}") {
        let name = format!("{before}MACRO{after}");
        let name = if name == "MACRO" { "MACRO_".to_owned() } else { name };
        let output = Preprocessor::default().process("main", &name, &Macros::new().with("MACRO", "x")).unwrap();
        prop_assert_eq!(output.text, name);
    }

    #[test]
    fn any_template_gives_a_text_or_an_error(source in "(\\{\\{|\\}\\}|\\{%|%\\}|\\{#|#\\}| |if|for|x|1|\\||f32|'|\n|é){0,20}") {
        let mut renderer = wgsl_pre::Renderer::new();
        if renderer.add_template("t", source).is_ok() {
            let _ = renderer.render("t", &());
        }
    }
}
