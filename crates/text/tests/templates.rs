//! Chat templates of real models, compared with Python's Jinja2.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use chaski_text::{
    ChatTemplate, ChatTemplates, Content, LocalTime, Message, TemplateError, TemplateOptions,
    builtin_template, builtin_template_names,
};
use ggml_format::{Gguf, GgufWriter};
use serde_json::{Value, json};

/// Renderings that differ, as `template/conversation`, with the reason; each is asserted to still differ.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("llama-cpp-deepseek-r1/tools", R1_DIFFERS),
    ("llama-cpp-deepseek-r1/tool_call", R1_DIFFERS),
    ("meetkai-functionary-medium-v3.1/tools", MARKUP_DIFFERS),
    ("meetkai-functionary-medium-v3.1/tool_call", MARKUP_DIFFERS),
];

const R1_DIFFERS: &str = "in Jinja2 `map` gives a generator, which `json.dumps` refuses; here it is a list";
const MARKUP_DIFFERS: &str =
    "in Jinja2 a text marked `safe` escapes what is added to it, even without auto-escaping";

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn local_time(text: &str) -> LocalTime {
    let numbers: Vec<u32> = text.split(['-', 'T', ':']).map(|part| part.parse().unwrap()).collect();
    let &[year, month, day, hour, minute, second] = numbers.as_slice() else {
        panic!("{text} is not a time")
    };
    LocalTime { year: year as i32, month, day, hour, minute, second }
}

fn options(all: &Value, conversation: &Value) -> TemplateOptions {
    let text = |key: &str| all[key].as_str().unwrap().to_owned();
    TemplateOptions {
        add_generation_prompt: conversation["add_generation_prompt"].as_bool().unwrap_or(true),
        bos_token: text("bos_token"),
        eos_token: text("eos_token"),
        enable_thinking: conversation["enable_thinking"].as_bool(),
        tools: conversation["tools"].as_array().cloned().unwrap_or_default(),
        now: Some(local_time(&text("now"))),
        ..TemplateOptions::default()
    }
}

/// The other engine writes these templates as code, and knows no others (`xtask/golden/golden.py templates`).
#[test]
fn builtin_templates_give_what_llama_cpp_gives() {
    let golden = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/templates.json"));
    let message = |m: &Value| Message::new(m["role"].as_str().unwrap(), m["content"].as_str().unwrap());
    let chats: Vec<Vec<Message>> = golden["chats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chat| chat.as_array().unwrap().iter().map(message).collect())
        .collect();
    let templates = golden["templates"].as_object().unwrap();
    assert!(builtin_template_names().eq(templates.keys()), "the names in alphabetical order");
    let mut differences = Vec::new();
    for (name, texts) in templates {
        let template = ChatTemplate::new(builtin_template(name).unwrap()).unwrap();
        for (nth, chat) in chats.iter().enumerate() {
            for (add_generation_prompt, expected) in
                [true, false].into_iter().zip(texts[nth].as_array().unwrap())
            {
                let options = TemplateOptions { add_generation_prompt, ..TemplateOptions::default() };
                let found = template.render_exact(chat, &options).unwrap();
                if Some(&*found) != expected.as_str() {
                    differences.push(format!("{name}, chat {nth}:\n   found {found:?}\nexpected {expected}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn renderings_equal_jinja2_for_every_template() {
    let Some(folder) = common::test_data("templates") else { return };
    let all = read(&folder.join("conversations.json"));
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let (mut n_template, mut n_equal, mut n_both_raise) = (0, 0, 0);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jinja") {
            continue;
        }
        n_template += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let template = ChatTemplate::new(std::fs::read_to_string(&path).unwrap());
        for (key, expected) in read(&path.with_extension("json")).as_object().unwrap() {
            let conversation = &all["conversations"][key];
            let messages = conversation["messages"].as_array().unwrap().iter();
            let messages: Vec<Message> = messages.map(|m| Message::from_json(m.clone()).unwrap()).collect();
            let rendered = match &template {
                Ok(template) => template.render_exact(&messages, &options(&all, conversation)),
                Err(error) => {
                    found.insert(format!("{name}/{key}"), format!("does not parse: {error:?}"));
                    continue;
                }
            };
            match (rendered, expected["text"].as_str()) {
                (Ok(rendered), Some(expected)) if rendered == expected => n_equal += 1,
                (Err(_), None) => n_both_raise += 1,
                (rendered, expected) => {
                    let difference = format!("found {rendered:?}\nexpected {expected:?}");
                    found.insert(format!("{name}/{key}"), difference);
                }
            }
        }
    }
    common::say(&format!(
        "{n_template} templates: {n_equal} renderings equal, {n_both_raise} raise on both sides"
    ));
    assert!(n_template > 0, "no template in {}", folder.display());
    for (name, reason) in EXCEPTIONS {
        assert!(found.remove(*name).is_some(), "{name} no longer differs ({reason}): drop its exception");
    }
    let report: Vec<String> =
        found.iter().map(|(name, difference)| format!("{name}: {difference}")).collect();
    assert!(report.is_empty(), "{} renderings differ:\n{}", report.len(), report.join("\n"));
}

/// All templates of the golden data, by name; `None` if there are none.
fn templates() -> Option<Vec<(String, ChatTemplate)>> {
    let folder = common::test_data("templates")?;
    let paths = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut templates: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "jinja"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, ChatTemplate::new(std::fs::read_to_string(path).unwrap()).unwrap())
        })
        .collect();
    templates.sort_by(|a, b| a.0.cmp(&b.0));
    Some(templates)
}

#[test]
fn prepared_messages_render_as_the_messages_where_these_render() {
    let Some(templates) = templates() else { return };
    let all = read(&common::test_data("templates").unwrap().join("conversations.json"));
    let mut differences = Vec::new();
    for (name, template) in &templates {
        for (key, conversation) in all["conversations"].as_object().unwrap() {
            let messages = conversation["messages"].as_array().unwrap().iter();
            let messages: Vec<Message> = messages.map(|m| Message::from_json(m.clone()).unwrap()).collect();
            let options = options(&all, conversation);
            let Ok(exact) = template.render_exact(&messages, &options) else { continue };
            match template.render(&messages, &options) {
                Ok(prepared) if prepared == exact => {}
                other => differences.push(format!("{name}/{key}: {}\ninstead of {exact:?}", short(&other))),
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn every_template_takes_what_clients_send() {
    let Some(templates) = templates() else { return };
    let parts = |text: &str| Some(Content::Parts(vec![json!({"type": "text", "text": text})]));
    let call = json!([{"id": "call00001", "type": "function",
        "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}]);
    let calling =
        Message::from_json(json!({"role": "assistant", "content": null, "tool_calls": call})).unwrap();
    let result = json!({"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "21"});
    let result = Message::from_json(result).unwrap();
    let conversations: [(&str, Vec<Message>, &[&str]); 5] = [
        (
            "system",
            vec![Message::new("system", "WORDS1"), Message::new("user", "WORDS2")],
            &["WORDS1", "WORDS2"],
        ),
        (
            "developer",
            vec![Message::new("developer", "WORDS1"), Message::new("user", "WORDS2")],
            &["WORDS1", "WORDS2"],
        ),
        ("parts", vec![Message { content: parts("WORDS1"), ..Message::new("user", "") }], &["WORDS1"]),
        (
            "system parts",
            vec![
                Message { content: parts("WORDS1"), ..Message::new("system", "") },
                Message::new("user", "WORDS2"),
            ],
            &["WORDS1", "WORDS2"],
        ),
        ("tool call", vec![Message::new("user", "WORDS1"), calling, result], &["WORDS1"]),
    ];
    let refusals = [
        ("Kimi-K2-Thinking/tool call", "it appends to a list, which Hugging Face forbids as well"),
        ("google-gemma-2-2b-it/tool call", "it wants user and assistant in turn"),
        ("fireworks-ai-llama-3-firefunction-v2", "it wants a variable of its own, `functions`"),
    ];
    let mut failures = Vec::new();
    for (name, template) in &templates {
        for (key, messages, words) in &conversations {
            let now = Some(local_time("2026-11-20T12:30:45"));
            let text = template.render(messages, &TemplateOptions { now, ..TemplateOptions::default() });
            match text {
                Ok(text) if words.iter().all(|words| text.contains(words)) && !text.contains("'type'") => {}
                other => failures.push(format!("{name}/{key}: {}", short(&other))),
            }
        }
    }
    for (case, reason) in refusals {
        let n_before = failures.len();
        failures.retain(|failure: &String| !failure.starts_with(case));
        assert!(failures.len() < n_before, "{case} no longer fails ({reason}): drop its exception");
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// A text in full, or an error with its causes.
fn short(rendered: &Result<String, TemplateError>) -> String {
    let mut text = format!("{:?}", rendered.as_ref().ok());
    let mut cause = rendered.as_ref().err().map(|error| error as &dyn std::error::Error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The templates of a file with these keys.
fn templates_of(keys: &[(&str, &str)]) -> ChatTemplates {
    let mut head = GgufWriter::new();
    for (key, source) in keys {
        head.set(key, *source).unwrap();
    }
    let bytes = head.begin(Vec::new()).unwrap().finish().unwrap();
    let n_byte = bytes.len() as u64;
    ChatTemplates::from_metadata(Gguf::parse(bytes.into(), n_byte).unwrap().metadata())
}

/// As Apriel's template asks for tools: `none` is a value, and one that is missing has a length.
#[test]
fn tools_that_are_not_given_are_none() {
    const SOURCE: &str = "\
        {%- set list = '' -%}\
        {%- if tools is not none and tools|length > 0 -%}\
            {%- set list -%}Tools: {% for tool in tools %}{{ tool.function.name }} {% endfor %}{%- endset -%}\
        {%- endif -%}\
        {%- if messages[0].role != 'system' and tools is not none and tools|length > 0 -%}\
            {{- '<|system|>' + list + documents|string + '<|end|>' -}}\
        {%- endif -%}\
        {%- for message in messages -%}\
            {{- '<|' + message.role + '|>' + message.content -}}\
            {%- if tools is none and documents is none -%}{{- '.' -}}{%- endif -%}\
        {%- endfor -%}";
    let template = ChatTemplate::new(SOURCE).unwrap();
    let prompt = |tools: Value| {
        let tools = tools.as_array().unwrap().clone();
        let options = TemplateOptions { tools, ..TemplateOptions::default() };
        template.render(&[Message::new("user", "Hi")], &options).unwrap()
    };
    assert_eq!(prompt(json!([])), "<|user|>Hi.");
    let tool = json!({"type": "function", "function": {"name": "add", "parameters": {}}});
    assert_eq!(prompt(json!([tool])), "<|system|>Tools: add None<|end|><|user|>Hi");
}

#[test]
fn conversations_with_tools_take_the_template_for_tools() {
    const USUAL: &str = "tokenizer.chat_template";
    const TOOLS: &str = "tokenizer.chat_template.tool_use";
    let source = |templates: &ChatTemplates, has_tools| {
        templates.get(has_tools).map(|found| found.map(|template| template.source().to_owned())).ok()
    };
    let both = templates_of(&[(USUAL, "usual"), (TOOLS, "tools")]);
    assert_eq!(source(&both, false), Some(Some("usual".to_owned())));
    assert_eq!(source(&both, true), Some(Some("tools".to_owned())));
    let usual = templates_of(&[(USUAL, "usual")]);
    assert_eq!(source(&usual, true), Some(Some("usual".to_owned())));
    let none = templates_of(&[]);
    assert_eq!([false, true].map(|has_tools| source(&none, has_tools)), [Some(None), Some(None)]);
    // A broken template only affects those who request it.
    let broken = templates_of(&[(USUAL, "usual"), (TOOLS, "{% if %}")]);
    assert_eq!(source(&broken, false), Some(Some("usual".to_owned())));
    let error = broken.get(true).unwrap_err();
    assert!(matches!(error, TemplateError::Parse { line: 1, .. }), "{error}");
}
