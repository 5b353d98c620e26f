//! Adapts messages to a template, whose capabilities are found by probing.

use serde_json::{Value, json};

use super::{ChatTemplate, Content, LocalTime, Message, TemplateOptions};

/// The capabilities of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// It prints system messages.
    system: bool,
    /// It knows the role `developer`, and distinguishes it from `system`.
    developer: bool,
    /// It prints content that is text.
    text: bool,
    /// It prints content that is a list of typed parts.
    parts: bool,
    /// It prints typed parts in system messages too.
    system_parts: bool,
    /// It prints the arguments of tool calls only if they are an object, not JSON text.
    needs_object_arguments: bool,
}

impl Capabilities {
    /// Renders short conversations and searches the output for their words.
    pub(super) fn probe(template: &ChatTemplate) -> Capabilities {
        // Some templates fail without a date.
        let options = TemplateOptions { now: Some(LocalTime::from_unix(0, 0)), ..TemplateOptions::default() };
        let render = |messages: &[Message]| template.render_exact(messages, &options).unwrap_or_default();
        let parts = |text: &str| Content::Parts(vec![json!({"type": "text", "text": text})]);
        let user = || Message::new("user", "NEEDLE_USER");
        // A template that prints the list as a whole does not support parts.
        let prints_parts = |printed: &str, words: &str| {
            printed.contains(words) && !["'type'", "\"type\""].iter().any(|key| printed.contains(key))
        };

        let text = render(&[user()]).contains("NEEDLE_USER");
        let user_parts = Message { content: Some(parts("NEEDLE_USER")), ..user() };
        let takes_parts = prints_parts(&render(&[user_parts]), "NEEDLE_USER");
        let system_parts = Message { content: Some(parts("NEEDLE_SYSTEM")), ..Message::new("system", "") };
        let system_parts = prints_parts(&render(&[system_parts, user()]), "NEEDLE_SYSTEM");

        let content = |words: &str| if text { Content::Text(words.into()) } else { parts(words) };
        let say =
            |role: &str, words: &str| Message { content: Some(content(words)), ..Message::new(role, "") };
        let system = render(&[say("system", "NEEDLE_SYSTEM"), say("user", "x")]).contains("NEEDLE_SYSTEM");

        let call = |arguments: Value| {
            let mut message = say("assistant", "");
            let call = json!({
                "id": "call00001", "type": "function",
                "function": {"name": "needle_tool", "arguments": arguments},
            });
            message.fields.insert("tool_calls".into(), json!([call]));
            render(&[say("user", "x"), message])
        };
        let arguments = json!({"needle_argument": "needle_value"});
        let as_object = call(arguments.clone());
        let as_text = call(Value::String(arguments.to_string()));
        let prints_text = as_text.contains(&arguments.to_string());
        let prints_object = as_object.contains("needle_argument") && as_object.contains("needle_value");

        Capabilities {
            system,
            developer: template.source().contains("<|channel|>") && template.source().contains("developer"),
            text,
            parts: takes_parts,
            system_parts,
            needs_object_arguments: prints_object && !prints_text,
        }
    }
}

/// Adapts `messages` to a template with `capabilities`.
pub(super) fn prepare(messages: &[Message], capabilities: &Capabilities) -> Vec<Message> {
    let mut prepared: Vec<Message> = Vec::with_capacity(messages.len());
    let mut system_text = String::new();
    for message in messages {
        let mut message = message.clone();
        if message.role == "developer" && !capabilities.developer {
            message.role = "system".into();
        }
        if message.role == "system" && !capabilities.system {
            if !system_text.is_empty() {
                system_text.push('\n');
            }
            system_text.push_str(&message.text());
            continue;
        }
        if !system_text.is_empty() {
            let text = message.text();
            let joined = if text.is_empty() { system_text.clone() } else { format!("{system_text}\n{text}") };
            message.content = Some(Content::Text(joined));
            system_text.clear();
        }
        fit_content(&mut message, capabilities);
        if capabilities.needs_object_arguments {
            parse_arguments(&mut message);
        }
        prepared.push(message);
    }
    if !system_text.is_empty() {
        let mut message = Message::new("user", system_text);
        fit_content(&mut message, capabilities);
        prepared.push(message);
    }
    prepared
}

fn fit_content(message: &mut Message, capabilities: &Capabilities) {
    if matches!(message.content, None | Some(Content::Null)) {
        message.content = Some(Content::Text(String::new()));
    }
    let takes_parts = if message.role == "system" { capabilities.system_parts } else { capabilities.parts };
    match &message.content {
        Some(Content::Text(text)) if !capabilities.text && takes_parts => {
            let part = json!({"type": "text", "text": text});
            message.content = Some(Content::Parts(vec![part]));
        }
        // Parts other than text remain, so that the template can reject them.
        Some(Content::Parts(parts))
            if capabilities.text
                && !takes_parts
                && parts.iter().all(|part| part.get("text").is_some_and(Value::is_string)) =>
        {
            message.content = Some(Content::Text(message.text()));
        }
        _ => {}
    }
}

/// Parses arguments that are JSON text of an object.
fn parse_arguments(message: &mut Message) {
    let Some(Value::Array(calls)) = message.fields.get_mut("tool_calls") else { return };
    for call in calls {
        let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
        if let Value::String(text) = arguments
            && let Ok(object @ Value::Object(_)) = serde_json::from_str(text)
        {
            *arguments = object;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, messages: &[Message]) -> String {
        let options = TemplateOptions { add_generation_prompt: false, ..TemplateOptions::default() };
        ChatTemplate::new(source).unwrap().render(messages, &options).unwrap()
    }

    const NO_SYSTEM: &str = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}\
        {% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
    const ANY: &str = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";

    #[test]
    fn system_text_goes_to_the_next_message_where_there_is_no_system_role() {
        let messages = [Message::new("system", "S"), Message::new("user", "U")];
        assert_eq!(render(NO_SYSTEM, &messages), "[user:S\nU]");
        assert_eq!(render(ANY, &messages), "[system:S][user:U]");
        assert_eq!(render(NO_SYSTEM, &messages[..1]), "[user:S]");
    }

    #[test]
    fn developer_is_system() {
        assert_eq!(render(ANY, &[Message::new("developer", "D")]), "[system:D]");
    }

    #[test]
    fn parts_and_text_become_what_the_template_prints() {
        let parts = [json!({"type": "text", "text": "a"}), json!({"type": "text", "text": "b"})];
        let message = Message { content: Some(Content::Parts(parts.to_vec())), ..Message::new("user", "") };
        assert_eq!(render(ANY, &[message]), "[user:a\nb]");
        let parts_only =
            "{% for m in messages %}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endfor %}";
        assert_eq!(render(parts_only, &[Message::new("user", "a")]), "<a>");
    }

    #[test]
    fn arguments_become_objects_where_the_template_needs_them() {
        let mut message = Message { role: "assistant".into(), ..Message::default() };
        let call = json!({"function": {"name": "f", "arguments": "{\"x\": 1}"}});
        message.fields.insert("tool_calls".into(), json!([call]));
        let items = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}\
            {{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %})\
            {% endfor %}{% endfor %}";
        assert_eq!(render(items, &[Message::new("user", "q"), message.clone()]), "qf(x=1)");
        let verbatim = items.replace(
            "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}",
            "{{ c.function.arguments }}",
        );
        assert_eq!(render(&verbatim, &[Message::new("user", "q"), message]), "qf({\"x\": 1})");
    }
}
