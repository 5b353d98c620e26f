//! Chat templates that models without one of their own are run with, by llama.cpp's names.

/// A chat template: Jinja before the messages, for each of them, and the text that begins an answer. The loop has the
/// variables `role`, `text` and, for what lasts from message to message, `ns`.
struct Builtin {
    name: &'static str,
    before: &'static str,
    each: &'static str,
    answer: &'static str,
}

/// The names of all templates, in alphabetical order.
pub fn builtin_template_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|template| template.name)
}

/// The Jinja source of the template that llama.cpp knows by this name.
///
/// ```
/// use chaski_text::{ChatTemplate, Message, TemplateOptions, builtin_template};
///
/// let template = ChatTemplate::new(&builtin_template("vicuna").expect("a name"))?;
/// let options = TemplateOptions::default();
/// assert_eq!(template.render(&[Message::new("user", "Hi")], &options)?, "USER: Hi\nASSISTANT:");
/// assert!(builtin_template("alpaca").is_none());
/// # Ok::<(), chaski_text::TemplateError>(())
/// ```
pub fn builtin_template(name: &str) -> Option<String> {
    let Builtin { before, each, answer, .. } = BUILTIN.iter().find(|template| template.name == name)?;
    let mut source = format!(
        "{before}{{% for message in messages %}}{{% set role = message.role %}}\
         {{% set text = message.content %}}{each}{{% endfor %}}"
    );
    if !answer.is_empty() {
        source += &format!("{{% if add_generation_prompt %}}{{{{ '{answer}' }}}}{{% endif %}}");
    }
    Some(source)
}

/// A row whose messages need nothing before them.
const fn plain(name: &'static str, each: &'static str, answer: &'static str) -> Builtin {
    Builtin { name, before: "", each, answer }
}

/// A row of the formats of Llama 2 and Mistral: an instruction is open until it is answered.
macro_rules! turns {
    ($name:literal, $before:literal, $open:literal, $system:literal, $user:literal, $answer:literal) => {
        Builtin {
            name: $name,
            before: $before,
            each: concat!(
                "{% if not ns.open %}{{ '",
                $open,
                "' }}{% set ns.open = true %}{% endif %}{% if role == 'system' %}{{ ",
                $system,
                " }}{% elif role == 'user' %}{{ ",
                $user,
                " }}{% else %}{{ ",
                $answer,
                " }}{% set ns.open = false %}{% endif %}"
            ),
            answer: "",
        }
    };
}

/// A row whose messages of the system, the user and the assistant are three expressions; others are left out.
macro_rules! three {
    ($name:literal, $before:literal, $system:literal, $user:literal, $assistant:literal, $answer:literal) => {
        Builtin {
            name: $name,
            before: $before,
            each: concat!(
                "{% if role == 'system' %}{{ ",
                $system,
                " }}{% elif role == 'user' %}{{ ",
                $user,
                " }}{% elif role == 'assistant' %}{{ ",
                $assistant,
                " }}{% endif %}"
            ),
            answer: $answer,
        }
    };
}

/// In the order of names.
const BUILTIN: &[Builtin] = &[
    plain(
        "bailing",
        "{{ '<role>' ~ ('HUMAN' if role == 'user' else role|upper) ~ '</role>' ~ text }}",
        "<role>ASSISTANT</role>",
    ),
    plain(
        "bailing-think",
        "{{ '<role>' ~ ('HUMAN' if role == 'user' else role|upper) ~ '</role>' ~ text }}",
        "<role>ASSISTANT</role><think>",
    ),
    Builtin {
        name: "bailing2",
        before: "{% if not messages or messages[0].role != 'system' %}\
                 {{ '<role>SYSTEM</role>detailed thinking off<|role_end|>' }}{% endif %}",
        each: "{{ '<role>' ~ ('HUMAN' if role == 'user' else role|upper) ~ '</role>' ~ text ~ '<|role_end|>' }}",
        answer: "<role>ASSISTANT</role>",
    },
    Builtin {
        name: "chatglm3",
        before: "[gMASK]sop",
        each: "{{ '<|' ~ role ~ '|>\\n ' ~ text }}",
        answer: "<|assistant|>",
    },
    Builtin {
        name: "chatglm4",
        before: "[gMASK]<sop>",
        each: "{{ '<|' ~ role ~ '|>\\n' ~ text }}",
        answer: "<|assistant|>\\n",
    },
    plain(
        "chatml",
        "{{ '<|im_start|>' ~ role ~ '\\n' ~ text ~ '<|im_end|>\\n' }}",
        "<|im_start|>assistant\\n",
    ),
    three!(
        "command-r",
        "",
        "'<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' ~ text|trim ~ '<|END_OF_TURN_TOKEN|>'",
        "'<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' ~ text|trim ~ '<|END_OF_TURN_TOKEN|>'",
        "'<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' ~ text|trim ~ '<|END_OF_TURN_TOKEN|>'",
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
    ),
    three!(
        "deepseek",
        "",
        "text",
        "'### Instruction:\\n' ~ text ~ '\\n'",
        "'### Response:\\n' ~ text ~ '\\n<|EOT|>\\n'",
        "### Response:\\n"
    ),
    plain("deepseek-ocr", "{{ text }}", ""),
    three!(
        "deepseek2",
        "",
        "text ~ '\\n\\n'",
        "'User: ' ~ text ~ '\\n\\n'",
        "'Assistant: ' ~ text ~ '<｜end▁of▁sentence｜>'",
        "Assistant:"
    ),
    three!(
        "deepseek3",
        "",
        "text ~ '\\n\\n'",
        "'<｜User｜>' ~ text",
        "'<｜Assistant｜>' ~ text ~ '<｜end▁of▁sentence｜>'",
        "<｜Assistant｜>"
    ),
    plain(
        "exaone-moe",
        "{% if role in ['system', 'user', 'assistant', 'tool'] %}\
         {{ '<|' ~ role ~ '|>\\n' ~ text|trim ~ '<|endofturn|>\\n' }}{% endif %}",
        "<|assistant|>\\n",
    ),
    three!(
        "exaone3",
        "",
        "'[|system|]' ~ text|trim ~ '[|endofturn|]\\n'",
        "'[|user|]' ~ text|trim ~ '\\n'",
        "'[|assistant|]' ~ text|trim ~ '[|endofturn|]\\n'",
        "[|assistant|]"
    ),
    plain(
        "exaone4",
        "{% if role in ['system', 'user', 'assistant', 'tool'] %}\
         {{ '[|' ~ role ~ '|]' ~ text|trim ~ ('\\n' if role == 'user' else '[|endofturn|]\\n') }}{% endif %}",
        "[|assistant|]",
    ),
    plain("falcon3", "{{ '<|' ~ role ~ '|>\\n' ~ text ~ '\\n' }}", "<|assistant|>\\n"),
    Builtin {
        name: "gemma",
        before: "{% set ns = namespace(system='') %}",
        each: "{% if role == 'system' %}{% set ns.system = ns.system ~ text|trim %}{% else %}\
               {{ '<start_of_turn>' ~ ('model' if role == 'assistant' else role) ~ '\\n' }}\
               {% if ns.system and role not in ['assistant', 'model'] %}{{ ns.system ~ '\\n\\n' }}\
               {% set ns.system = '' %}{% endif %}{{ text|trim ~ '<end_of_turn>\\n' }}{% endif %}",
        answer: "<start_of_turn>model\\n",
    },
    Builtin {
        name: "gigachat",
        before: "<s>",
        each: "{% if role == 'system' and loop.first %}{{ text ~ '<|message_sep|>' }}{% elif role == 'user' %}\
               {{ 'user<|role_sep|>' ~ text ~ '<|message_sep|>available functions<|role_sep|>[]<|message_sep|>' }}\
               {% elif role == 'assistant' %}{{ 'assistant<|role_sep|>' ~ text ~ '<|message_sep|>' }}{% endif %}",
        answer: "assistant<|role_sep|>",
    },
    plain("glmedge", "{{ '<|' ~ role ~ '|>\\n' ~ text }}", "<|assistant|>"),
    plain(
        "gpt-oss",
        "{{ '<|start|>' ~ role ~ '<|message|>' ~ text ~ ('<|return|>' if role == 'assistant' else '<|end|>') }}",
        "<|start|>assistant",
    ),
    plain(
        "granite",
        "{{ '<|start_of_role|>' ~ role ~ '<|end_of_role|>' ~ ('<|tool_call|>' if role == 'assistant_tool_call') \
         ~ text ~ '<|end_of_text|>\\n' }}",
        "<|start_of_role|>assistant<|end_of_role|>",
    ),
    plain("granite-4.0", GRANITE_4, "<|start_of_role|>assistant<|end_of_role|>"),
    plain("granite-4.1", GRANITE_4, "<|start_of_role|>assistant<|end_of_role|>"),
    three!(
        "grok-2",
        "",
        "'System: ' ~ text|trim ~ '<|separator|>\\n\\n'",
        "'Human: ' ~ text|trim ~ '<|separator|>\\n\\n'",
        "'Assistant: ' ~ text ~ '<|separator|>\\n\\n'",
        "Assistant:"
    ),
    plain(
        "hunyuan-dense",
        "{% if role == 'system' and loop.first %}{{ text ~ '<｜hy_place▁holder▁no▁3｜>' }}\
         {% elif role == 'assistant' %}{{ '<｜hy_Assistant｜>' ~ text ~ '<｜hy_place▁holder▁no▁2｜>' }}\
         {% elif role == 'user' %}{{ '<｜hy_User｜>' ~ text ~ '<｜hy_Assistant｜>' }}{% endif %}",
        "",
    ),
    plain(
        "hunyuan-moe",
        "{% if role == 'system' %}{{ '<|startoftext|>' ~ text ~ '<|extra_4|>' }}\
         {% elif role == 'assistant' %}{{ text ~ '<|eos|>' }}\
         {% else %}{{ '<|startoftext|>' ~ text ~ '<|extra_0|>' }}{% endif %}",
        "",
    ),
    Builtin {
        name: "hunyuan-vl",
        before: "<｜hy_begin▁of▁sentence｜>",
        each: "{% if role == 'system' and loop.first %}{{ text ~ '<｜hy_place▁holder▁no▁3｜>' }}\
               {% elif role == 'user' %}{{ text ~ '<｜hy_User｜>' }}\
               {% elif role == 'assistant' %}{{ text ~ '<｜hy_Assistant｜>' }}{% endif %}",
        answer: "",
    },
    plain(
        "kimi-k2",
        "{% if role in ['system', 'tool'] %}{{ '<|im_system|>' ~ role ~ '<|im_middle|>' }}\
         {% elif role in ['user', 'assistant'] %}{{ '<|im_' ~ role ~ '|>' ~ role ~ '<|im_middle|>' }}{% endif %}\
         {{ text ~ '<|im_end|>' }}",
        "<|im_assistant|>assistant<|im_middle|>",
    ),
    turns!(
        "llama2",
        "{% set ns = namespace(open=true) %}{{ '[INST] ' }}",
        "[INST] ",
        "text ~ '\\n'",
        "text ~ ' [/INST]'",
        "text ~ '</s>'"
    ),
    turns!(
        "llama2-sys",
        "{% set ns = namespace(open=true) %}{{ '[INST] ' }}",
        "[INST] ",
        "'<<SYS>>\\n' ~ text ~ '\\n<</SYS>>\\n\\n'",
        "text ~ ' [/INST]'",
        "text ~ '</s>'"
    ),
    turns!(
        "llama2-sys-bos",
        "{% set ns = namespace(open=true) %}{{ '[INST] ' }}",
        "<s>[INST] ",
        "'<<SYS>>\\n' ~ text ~ '\\n<</SYS>>\\n\\n'",
        "text ~ ' [/INST]'",
        "text ~ '</s>'"
    ),
    turns!(
        "llama2-sys-strip",
        "{% set ns = namespace(open=true) %}{{ '[INST] ' }}",
        "[INST] ",
        "'<<SYS>>\\n' ~ text|trim ~ '\\n<</SYS>>\\n\\n'",
        "text|trim ~ ' [/INST]'",
        "text|trim ~ '</s>'"
    ),
    plain(
        "llama3",
        "{{ '<|start_header_id|>' ~ role ~ '<|end_header_id|>\\n\\n' ~ text|trim ~ '<|eot_id|>' }}",
        "<|start_header_id|>assistant<|end_header_id|>\\n\\n",
    ),
    plain(
        "llama4",
        "{{ '<|header_start|>' ~ role ~ '<|header_end|>\\n\\n' ~ text|trim ~ '<|eot|>' }}",
        "<|header_start|>assistant<|header_end|>\\n\\n",
    ),
    plain(
        "megrez",
        "{{ '<|role_start|>' ~ role ~ '<|role_end|>' ~ text ~ '<|turn_end|>' }}",
        "<|role_start|>assistant<|role_end|>",
    ),
    plain("minicpm", "{{ '<用户>' ~ text|trim ~ '<AI>' if role == 'user' else text|trim }}", ""),
    turns!(
        "mistral-v1",
        "{% set ns = namespace(open=false) %}",
        " [INST] ",
        "text ~ '\\n\\n'",
        "text ~ ' [/INST]'",
        "' ' ~ text ~ '</s>'"
    ),
    turns!(
        "mistral-v3",
        "{% set ns = namespace(open=false) %}",
        "[INST] ",
        "text ~ '\\n\\n'",
        "text ~ '[/INST]'",
        "' ' ~ text|trim ~ '</s>'"
    ),
    turns!(
        "mistral-v3-tekken",
        "{% set ns = namespace(open=false) %}",
        "[INST]",
        "text ~ '\\n\\n'",
        "text ~ '[/INST]'",
        "text ~ '</s>'"
    ),
    plain(
        "mistral-v7",
        "{% if role == 'system' %}{{ '[SYSTEM_PROMPT] ' ~ text ~ '[/SYSTEM_PROMPT]' }}\
         {% elif role == 'user' %}{{ '[INST] ' ~ text ~ '[/INST]' }}{% else %}{{ ' ' ~ text ~ '</s>' }}{% endif %}",
        "",
    ),
    plain(
        "mistral-v7-tekken",
        "{% if role == 'system' %}{{ '[SYSTEM_PROMPT]' ~ text ~ '[/SYSTEM_PROMPT]' }}\
         {% elif role == 'user' %}{{ '[INST]' ~ text ~ '[/INST]' }}{% else %}{{ text ~ '</s>' }}{% endif %}",
        "",
    ),
    plain(
        "monarch",
        "{{ ('' if loop.first else '<s>') ~ role ~ '\\n' ~ text ~ '</s>\\n' }}",
        "<s>assistant\\n",
    ),
    plain(
        "openchat",
        "{{ (text if role == 'system' else 'GPT4 Correct ' ~ role[0]|upper ~ role[1:] ~ ': ' ~ text) \
         ~ '<|end_of_turn|>' }}",
        "GPT4 Correct Assistant:",
    ),
    Builtin {
        name: "orion",
        before: "{% set ns = namespace(system='') %}",
        each: "{% if role == 'system' %}{% set ns.system = ns.system ~ text %}{% elif role == 'user' %}{{ 'Human: ' }}\
               {% if ns.system %}{{ ns.system ~ '\\n\\n' }}{% set ns.system = '' %}{% endif %}\
               {{ text ~ '\\n\\nAssistant: </s>' }}{% else %}{{ text ~ '</s>' }}{% endif %}",
        answer: "",
    },
    Builtin {
        name: "pangu-embedded",
        before: "{% set names = {'system': '系统', 'user': '用户', 'assistant': '助手', 'tool': '工具', 'function': '方法'} %}\
                 {% if messages and messages[0].role != 'system' %}{{ '[unused9]系统：[unused10]' }}{% endif %}",
        each: "{% if role in names %}{{ '[unused9]' ~ names[role] ~ '：' ~ text ~ '[unused10]' }}{% endif %}",
        answer: "[unused9]助手：",
    },
    plain("phi3", "{{ '<|' ~ role ~ '|>\\n' ~ text ~ '<|end|>\\n' }}", "<|assistant|>\\n"),
    plain(
        "phi4",
        "{{ '<|im_start|>' ~ role ~ '<|im_sep|>' ~ text ~ '<|im_end|>' }}",
        "<|im_start|>assistant<|im_sep|>",
    ),
    three!(
        "rwkv-world",
        "",
        "'System: ' ~ text|trim ~ '\\n\\n'",
        "'User: ' ~ text|trim ~ '\\n\\n' ~ ('Assistant:' if loop.last)",
        "'Assistant: ' ~ text|trim ~ '\\n\\n'",
        ""
    ),
    plain(
        "seed_oss",
        "{{ '<seed:bos>' ~ role ~ '\\n' ~ (text|trim if role == 'assistant' else text) ~ '<seed:eos>' }}",
        "<seed:bos>assistant\\n",
    ),
    Builtin {
        name: "smolvlm",
        before: "<|im_start|>",
        each: "{% if role == 'system' %}{{ text ~ '\\n\\n' }}{% else %}\
               {{ ('User: ' if role == 'user' else 'Assistant: ') ~ text ~ '<end_of_utterance>\\n' }}{% endif %}",
        answer: "Assistant:",
    },
    plain("solar-open", "{{ '<|begin|>' ~ role ~ '<|content|>' ~ text ~ '<|end|>' }}", "<|begin|>assistant"),
    three!(
        "vicuna",
        "",
        "text ~ '\\n\\n'",
        "'USER: ' ~ text ~ '\\n'",
        "'ASSISTANT: ' ~ text ~ '</s>\\n'",
        "ASSISTANT:"
    ),
    three!(
        "vicuna-orca",
        "",
        "'SYSTEM: ' ~ text ~ '\\n'",
        "'USER: ' ~ text ~ '\\n'",
        "'ASSISTANT: ' ~ text ~ '</s>\\n'",
        "ASSISTANT:"
    ),
    plain(
        "yandex",
        "{% if role == 'user' %}{{ ' Пользователь: ' ~ text ~ '\\n\\n' }}\
         {% elif role == 'assistant' %}{{ ' Ассистент: ' ~ text ~ '\\n\\n' }}{% endif %}",
        " Ассистент:[SEP]",
    ),
    plain("zephyr", "{{ '<|' ~ role ~ '|>\\n' ~ text ~ '<|endoftext|>\\n' }}", "<|assistant|>\\n"),
];

/// A message of Granite 4.
const GRANITE_4: &str = "{% if role == 'assistant_tool_call' %}\
    {{ '<|start_of_role|>assistant<|end_of_role|><|tool_call|>' }}\
    {% else %}{{ '<|start_of_role|>' ~ role ~ '<|end_of_role|>' }}{% endif %}{{ text ~ '<|end_of_text|>\\n' }}";
