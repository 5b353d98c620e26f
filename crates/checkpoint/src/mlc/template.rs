//! Chat templates of MLC (`conv_template`) as Jinja.

use std::fmt::Write;

use serde_json::Value;

/// Roles of messages, with the placeholders of their texts.
const ROLES: [(&str, &str); 3] =
    [("user", "{user_message}"), ("assistant", "{assistant_message}"), ("tool", "{tool_message}")];

/// Keys of lists of tokens: before the system message, and at the end of an answer.
const PREFIX: &str = "system_prefix_token_ids";
const STOPS: &str = "stop_token_ids";

/// The placeholder of the system message.
const SYSTEM: &str = "{system_message}";

/// The template as Jinja; `None` for one that is only a name. `texts` are the tokens of the vocabulary.
///
/// # Source
/// `Conversation.as_prompt` of mlc-llm: system text, then for each message role, separator, text and the separator of
/// the turn, which is the second one behind the assistant.
pub(super) fn jinja(template: &Value, texts: &[String]) -> Option<String> {
    let template = template.as_object()?;
    let text = |key: &str| template.get(key).and_then(Value::as_str).unwrap_or_default();
    let of_role =
        |key: &str, role: &str| template.get(key).and_then(|map| map.get(role)).and_then(Value::as_str);
    let seps: Vec<&str> = template.get("seps")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let (first, last) = (*seps.first()?, *seps.last()?);
    let has_role = template.get("add_role_after_system_message").and_then(Value::as_bool).unwrap_or(true);
    let (before, after) = around(text("system_template"), SYSTEM);
    let mut out = String::new();
    let prefix = template.get(PREFIX).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let prefix: String = prefix.iter().filter_map(|id| Some(texts[id_of(id, texts)?].as_str())).collect();
    // Without a message of the user's own the template has one.
    let _ = write!(
        out,
        "{{%- set own = messages and messages[0]['role'] == 'system' -%}}\
         {{%- set system = messages[0]['content'] if own else {} -%}}\
         {{%- set rest = messages[1:] if own else messages -%}}\
         {{%- set head = {} + system + {} -%}}\
         {{{{- {} + head -}}}}{{%- for m in rest -%}}",
        quoted(text("system_message")),
        quoted(before),
        quoted(after),
        quoted(&prefix),
    );
    for (i, (role, placeholder)) in ROLES.into_iter().enumerate() {
        let name = of_role("roles", role).unwrap_or_default();
        let (before, after) = around(of_role("role_templates", role).unwrap_or(placeholder), placeholder);
        let start = quoted(&format!("{name}{}", text("role_content_sep")));
        let start = match has_role {
            true => start,
            false => format!("('' if loop.first and head else {start})"),
        };
        let end = quoted(&format!("{after}{}", if role == "assistant" { last } else { first }));
        let word = if i == 0 { "if" } else { "elif" };
        let _ = write!(
            out,
            "{{%- {word} m['role'] == '{role}' -%}}{{{{- {start} + {} + m['content'] + {end} -}}}}",
            quoted(before)
        );
    }
    let assistant = of_role("roles", "assistant").unwrap_or_default();
    let _ = write!(
        out,
        "{{%- else -%}}{{{{- raise_exception('this model has no role ' + m['role']) -}}}}{{%- endif -%}}{{%- endfor -%}}\
         {{%- if add_generation_prompt -%}}{{{{- {} -}}}}{{%- endif -%}}",
        quoted(&format!("{assistant}{}", text("role_empty_sep")))
    );
    Some(out)
}

/// Tokens that end an answer: `stop_token_ids`, and those whose texts are in `stop_str`; and stop texts that are no
/// tokens.
pub(super) fn ends<'t>(template: &'t Value, texts: &[String]) -> (Vec<u32>, Vec<&'t str>) {
    let list = |key: &str| template.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut ids: Vec<u32> = list(STOPS).iter().filter_map(|id| Some(id_of(id, texts)? as u32)).collect();
    let mut others = Vec::new();
    for stop in list("stop_str").iter().filter_map(Value::as_str).filter(|stop| !stop.is_empty()) {
        match texts.iter().position(|text| text == stop) {
            Some(id) => ids.push(id as u32),
            None => others.push(stop),
        }
    }
    (ids, others)
}

/// Ids of tokens in the template that the vocabulary does not have, or that are no ids, as they stand there.
pub(super) fn unknown_ids(template: &Value, texts: &[String]) -> Vec<String> {
    let lists = [PREFIX, STOPS].into_iter().filter_map(|key| template.get(key)?.as_array());
    lists.flatten().filter(|id| id_of(id, texts).is_none()).map(ToString::to_string).collect()
}

/// The place of a token in the vocabulary.
fn id_of(id: &Value, texts: &[String]) -> Option<usize> {
    usize::try_from(id.as_u64()?).ok().filter(|id| *id < texts.len())
}

/// The texts before and after a placeholder; all of the text is before one that is missing.
fn around<'t>(template: &'t str, placeholder: &str) -> (&'t str, &'t str) {
    template.split_once(placeholder).unwrap_or((template, ""))
}

/// A text as a literal of Jinja.
fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use chaski_text::{ChatTemplate, Message, TemplateOptions};
    use serde_json::json;

    use super::*;

    fn render(template: Value, messages: &[(&str, &str)]) -> String {
        let texts = ["<s>".to_owned(), "<|it's|>".to_owned()];
        let template = ChatTemplate::new(jinja(&template, &texts).unwrap()).unwrap();
        let messages: Vec<Message> = messages.iter().map(|(role, text)| Message::new(*role, *text)).collect();
        template.render(&messages, &TemplateOptions::default()).unwrap()
    }

    #[test]
    fn conversations_are_those_of_mlc() {
        let llama3 = json!({
            "system_template": "<|start_header_id|>system<|end_header_id|>\n\n{system_message}<|eot_id|>",
            "system_message": "You're helpful.", "system_prefix_token_ids": [0, 1, 99],
            "roles": {"user": "<|start_header_id|>user", "assistant": "<|start_header_id|>assistant"},
            "role_templates": {"user": "{user_message}", "assistant": "{assistant_message}"},
            "seps": ["<|eot_id|>"], "role_content_sep": "<|end_header_id|>\n\n", "role_empty_sep": "<|end_header_id|>\n\n"
        });
        assert_eq!(
            render(llama3.clone(), &[("user", "Hi"), ("assistant", "Yo"), ("user", "Bye")]),
            "<s><|it's|><|start_header_id|>system<|end_header_id|>\n\nYou're helpful.<|eot_id|>\
             <|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>\
             <|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
        );
        assert!(
            render(llama3, &[("system", "Be brief."), ("user", "Hi")])
                .contains("\n\nBe brief.<|eot_id|><|start")
        );
    }

    #[test]
    fn the_first_role_may_be_left_out_and_turns_may_end_differently() {
        let llama2 = json!({
            "system_template": "[INST] <<SYS>>\n{system_message}\n<</SYS>>\n\n", "system_message": "S",
            "add_role_after_system_message": false, "roles": {"user": "<s>[INST]", "assistant": "[/INST]"},
            "role_templates": {"user": "<{user_message}>", "assistant": "{assistant_message}"},
            "seps": [" ", " </s>"], "role_content_sep": " ", "role_empty_sep": " "
        });
        assert_eq!(
            render(llama2, &[("user", "a"), ("assistant", "b"), ("user", "c")]),
            "[INST] <<SYS>>\nS\n<</SYS>>\n\n<a> [/INST] b </s><s>[INST] <c> [/INST] "
        );
    }

    #[test]
    fn names_are_no_templates_and_stops_are_tokens_or_texts() {
        assert_eq!(jinja(&json!("llama-2"), &[]), None);
        assert_eq!(jinja(&json!({"seps": []}), &[]), None);
        let template = json!({"stop_token_ids": [1, 9], "stop_str": ["", "a", "User:"]});
        let texts = ["a".to_owned(), "b".to_owned()];
        assert_eq!(ends(&template, &texts), (vec![1, 0], vec!["User:"]));
        let template = json!({"stop_token_ids": [1, 9], "system_prefix_token_ids": [0, -1, "x"]});
        assert_eq!(unknown_ids(&template, &texts), ["-1", "\"x\"", "9"]);
        assert!(unknown_ids(&json!("llama-2"), &texts).is_empty());
    }
}
