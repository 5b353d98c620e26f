//! The notations of model families for reasoning and tool calls: one row each, detected from the chat
//! template.

use super::harmony;
use crate::tokenizer::{TokenKind, Tokenizer};

/// The notation of a model family for the parts of an answer.
#[derive(Debug)]
pub struct AnswerSyntax {
    /// Its name.
    name: &'static str,
    /// Texts that are all contained in the chat templates of this family.
    signs: &'static [&'static str],
    pub(super) calls: Calls,
}

/// The notation of tool calls.
#[derive(Debug)]
pub(super) struct Calls {
    /// Marker before one or more calls; empty if only an answer without any other text is a call.
    pub(super) open: &'static str,
    /// Marker after them; empty if there is none.
    pub(super) close: &'static str,
    pub(super) form: Form,
}

/// The notation of one call.
#[derive(Debug)]
pub(super) enum Form {
    /// Calls are not supported, or unknown.
    None,
    /// A JSON object, or a list of objects: `{"name": "f", "arguments": {}}`, with these keys.
    Object {
        name: &'static str,
        arguments: &'static str,
        /// Another field that models may write before these, with its comma, as a regular expression.
        first: &'static str,
        /// True if an answer that begins with such an object is a call, without `open`.
        alone: bool,
    },
    /// A JSON object, or a list of objects: `{"f": {}}`.
    NameIsKey,
    /// `open`, the tool's name, `name_end`, attributes and `head_end` if there is one, the arguments,
    /// `close`.
    Named {
        open: &'static str,
        name_end: &'static str,
        head_end: &'static str,
        extras: Extras,
        arguments: Arguments,
        close: &'static str,
    },
    /// Python: `f(x=1)`, or a list of such calls.
    Python,
    /// Messages to channels and recipients (gpt-oss); the content is such a message too.
    Harmony,
}

/// Text in a call's head that models write and the parser skips: regular expressions, empty for none.
#[derive(Debug)]
pub(super) struct Extras {
    pub(super) before_name: &'static str,
    pub(super) after_name: &'static str,
    /// Between `name_end` and `head_end`.
    pub(super) attributes: &'static str,
}

const NO_EXTRAS: Extras = Extras { before_name: "", after_name: "", attributes: "" };

/// The notation of the arguments after the tool's name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arguments {
    /// As a JSON object.
    Json,
    /// Each argument between tags.
    Tagged(&'static Tags),
    /// `{key:<|"|>text<|"|>,other:[1,2]}`.
    Gemma,
}

/// The delimiter of strings in Gemma's notation.
pub(super) const GEMMA_QUOTE: &str = "<|\"|>";

/// `open`, the key, `key_end`, attributes, `value`, the value, `close`.
#[derive(Debug)]
pub(super) struct Tags {
    pub(super) open: &'static str,
    pub(super) key_end: &'static str,
    /// Attributes of strings and of other values, as regular expressions; empty if models write none.
    pub(super) attributes: [&'static str; 2],
    pub(super) value: &'static str,
    /// `{}` is replaced by the key.
    pub(super) close: &'static str,
}

const NO_ATTRIBUTES: [&str; 2] = ["", ""];

const NO_CALLS: Calls = Calls { open: "", close: "", form: Form::None };

const fn object(open: &'static str, close: &'static str) -> Calls {
    Calls {
        open,
        close,
        form: Form::Object { name: "name", arguments: "arguments", first: "", alone: false },
    }
}

/// `<function=f><parameter=x>1</parameter></function>`.
const FUNCTION_IS: Form = Form::Named {
    open: "<function=",
    name_end: ">",
    head_end: "",
    extras: NO_EXTRAS,
    arguments: Arguments::Tagged(&Tags {
        open: "<parameter=",
        key_end: ">",
        attributes: NO_ATTRIBUTES,
        value: "",
        close: "</parameter>",
    }),
    close: "</function>",
};

/// All syntaxes; the first row whose signs are all in a template is used, so more specific rows come first.
static SYNTAXES: &[AnswerSyntax] = &[
    AnswerSyntax {
        name: "harmony",
        signs: &["<|channel|>", "<|message|>", "<|call|>"],
        calls: Calls { open: "", close: "", form: Form::Harmony },
    },
    AnswerSyntax {
        name: "kimi-k3",
        signs: &["<|open|>", "<|close|>", "<|sep|>"],
        calls: Calls {
            open: "<|open|>tools<|sep|>",
            close: "<|close|>tools<|sep|>",
            form: Form::Named {
                open: "<|open|>call tool=\"",
                name_end: "\"",
                head_end: "<|sep|>",
                extras: Extras { attributes: " index=\"[0-9]{1,2}\"", ..NO_EXTRAS },
                arguments: Arguments::Tagged(&Tags {
                    open: "<|open|>argument key=\"",
                    key_end: "\"",
                    attributes: [" type=\"string\"", " type=\"(number|boolean|null|array|object)\""],
                    value: "<|sep|>",
                    close: "<|close|>argument<|sep|>",
                }),
                close: "<|close|>call<|sep|>",
            },
        },
    },
    AnswerSyntax {
        name: "kimi-k2",
        signs: &["<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"],
        calls: Calls {
            open: "<|tool_calls_section_begin|>",
            close: "<|tool_calls_section_end|>",
            form: Form::Named {
                open: "<|tool_call_begin|>",
                name_end: "<|tool_call_argument_begin|>",
                head_end: "",
                extras: Extras { before_name: r"functions\.", after_name: ":[0-9]{1,3}", attributes: "" },
                arguments: Arguments::Json,
                close: "<|tool_call_end|>",
            },
        },
    },
    AnswerSyntax {
        name: "deepseek-v3.2",
        signs: &["｜DSML｜", "function_calls>"],
        calls: Calls { open: "<｜DSML｜function_calls>", close: "</｜DSML｜function_calls>", form: DSML },
    },
    AnswerSyntax {
        name: "deepseek-v4",
        signs: &["｜DSML｜", "tool_calls>"],
        calls: Calls { open: "<｜DSML｜tool_calls>", close: "</｜DSML｜tool_calls>", form: DSML },
    },
    AnswerSyntax {
        name: "deepseek-r1",
        signs: &["<｜tool▁calls▁begin｜>", "```json"],
        calls: Calls {
            open: "<｜tool▁calls▁begin｜>",
            close: "<｜tool▁calls▁end｜>",
            form: Form::Named {
                open: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                name_end: "```json",
                head_end: "",
                extras: Extras { after_name: r"\n", ..NO_EXTRAS },
                arguments: Arguments::Json,
                close: "```<｜tool▁call▁end｜>",
            },
        },
    },
    AnswerSyntax {
        name: "deepseek-v3.1",
        signs: &["<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"],
        calls: Calls {
            open: "<｜tool▁calls▁begin｜>",
            close: "<｜tool▁calls▁end｜>",
            form: Form::Named {
                open: "<｜tool▁call▁begin｜>",
                name_end: "<｜tool▁sep｜>",
                head_end: "",
                extras: NO_EXTRAS,
                arguments: Arguments::Json,
                close: "<｜tool▁call▁end｜>",
            },
        },
    },
    AnswerSyntax {
        name: "gemma4",
        signs: &["<|tool_call>", "<tool_call|>"],
        calls: Calls {
            open: "<|tool_call>",
            close: "<tool_call|>",
            form: Form::Named {
                open: "call:",
                name_end: "{",
                head_end: "",
                extras: NO_EXTRAS,
                arguments: Arguments::Gemma,
                close: "",
            },
        },
    },
    AnswerSyntax {
        name: "minimax-m3",
        signs: &["]<]minimax[>["],
        calls: Calls {
            open: "]<]minimax[>[<tool_call>",
            close: "]<]minimax[>[</tool_call>",
            form: Form::Named {
                open: "]<]minimax[>[<invoke name=\"",
                name_end: "\">",
                head_end: "",
                extras: NO_EXTRAS,
                arguments: Arguments::Tagged(&Tags {
                    open: "]<]minimax[>[<",
                    key_end: ">",
                    attributes: NO_ATTRIBUTES,
                    value: "",
                    close: "]<]minimax[>[</{}>",
                }),
                close: "]<]minimax[>[</invoke>",
            },
        },
    },
    AnswerSyntax {
        name: "minimax-m2",
        signs: &["<minimax:tool_call>", "<invoke name="],
        calls: Calls { open: "<minimax:tool_call>", close: "</minimax:tool_call>", form: INVOKE },
    },
    AnswerSyntax {
        name: "minimax-m1",
        signs: &["<beginning_of_sentence>", "<tool_calls>"],
        calls: object("<tool_calls>", "</tool_calls>"),
    },
    AnswerSyntax {
        name: "seed-oss",
        signs: &["<seed:tool_call>"],
        calls: Calls { open: "<seed:tool_call>", close: "</seed:tool_call>", form: FUNCTION_IS },
    },
    AnswerSyntax {
        name: "glm",
        signs: &["<tool_call>", "<arg_key>", "<arg_value>"],
        calls: Calls {
            open: "<tool_call>",
            close: "</tool_call>",
            form: Form::Named {
                open: "",
                name_end: "",
                head_end: "",
                extras: NO_EXTRAS,
                arguments: Arguments::Tagged(&Tags {
                    open: "<arg_key>",
                    key_end: "</arg_key>",
                    attributes: NO_ATTRIBUTES,
                    value: "<arg_value>",
                    close: "</arg_value>",
                }),
                close: "",
            },
        },
    },
    AnswerSyntax {
        name: "qwen3-coder",
        signs: &["<tool_call>", "<function=", "<parameter="],
        calls: Calls { open: "<tool_call>", close: "</tool_call>", form: FUNCTION_IS },
    },
    AnswerSyntax {
        name: "functionary",
        signs: &["<function=", "</function>"],
        calls: Calls {
            open: "<function=",
            close: "</function>",
            form: Form::Named {
                open: "",
                name_end: ">",
                head_end: "",
                extras: NO_EXTRAS,
                arguments: Arguments::Json,
                close: "",
            },
        },
    },
    AnswerSyntax { name: "nemotron-v2", signs: &["<TOOLCALL>"], calls: object("<TOOLCALL>", "</TOOLCALL>") },
    AnswerSyntax {
        name: "command-r",
        signs: &["<|START_ACTION|>"],
        calls: Calls {
            open: "<|START_ACTION|>",
            close: "<|END_ACTION|>",
            form: Form::Object {
                name: "tool_name",
                arguments: "parameters",
                first: r#""tool_call_id": "[0-9]{1,3}", "#,
                alone: false,
            },
        },
    },
    AnswerSyntax {
        name: "apertus",
        signs: &["<|tools_prefix|>"],
        calls: Calls { open: "<|tools_prefix|>", close: "<|tools_suffix|>", form: Form::NameIsKey },
    },
    AnswerSyntax {
        name: "gigachat3.1",
        signs: &["<|function_call|>"],
        calls: object("<|function_call|>", ""),
    },
    AnswerSyntax {
        name: "gigachat3",
        signs: &["<|role_sep|>", "`function call` role"],
        calls: object("<|message_sep|>\n\nfunction call<|role_sep|>\n", ""),
    },
    AnswerSyntax {
        name: "mistral-v11",
        signs: &["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"],
        calls: Calls {
            open: "[TOOL_CALLS]",
            close: "",
            form: Form::Named {
                open: "",
                name_end: "[CALL_ID]",
                head_end: "[ARGS]",
                extras: Extras { attributes: "[a-zA-Z0-9]{9}", ..NO_EXTRAS },
                arguments: Arguments::Json,
                close: "",
            },
        },
    },
    AnswerSyntax {
        name: "mistral",
        signs: &["[TOOL_CALLS]", "[ARGS]"],
        calls: Calls {
            open: "[TOOL_CALLS]",
            close: "",
            form: Form::Named {
                open: "",
                name_end: "[ARGS]",
                head_end: "",
                extras: NO_EXTRAS,
                arguments: Arguments::Json,
                close: "",
            },
        },
    },
    AnswerSyntax { name: "mistral-v3", signs: &["[TOOL_CALLS]"], calls: object("[TOOL_CALLS]", "") },
    AnswerSyntax {
        name: "phi4-mini",
        signs: &["<|/tool_call|>"],
        calls: object("<|tool_call|>", "<|/tool_call|>"),
    },
    AnswerSyntax { name: "granite3", signs: &["<|tool_call|>"], calls: object("<|tool_call|>", "") },
    AnswerSyntax { name: "apriel", signs: &["<tool_calls>"], calls: object("<tool_calls>", "</tool_calls>") },
    AnswerSyntax { name: "hermes", signs: &["<tool_call>"], calls: object("<tool_call>", "</tool_call>") },
    AnswerSyntax {
        name: "lfm2",
        signs: &["<|tool_call_start|>"],
        calls: Calls { open: "<|tool_call_start|>", close: "<|tool_call_end|>", form: Form::Python },
    },
    AnswerSyntax {
        name: "lfm2",
        signs: &["<|tool_list_start|>"],
        calls: Calls { open: "<|tool_call_start|>", close: "<|tool_call_end|>", form: Form::Python },
    },
    AnswerSyntax {
        name: "llama3",
        signs: &["<|start_header_id|>", "ipython", "\"parameters\""],
        calls: Calls {
            open: "<|python_tag|>",
            close: "",
            form: Form::Object {
                name: "name",
                arguments: "parameters",
                first: r#""type": "function", "#,
                alone: true,
            },
        },
    },
    AnswerSyntax { name: "plain", signs: &[], calls: NO_CALLS },
    // Behind the row that fits every template: only `or_object` chooses it.
    AnswerSyntax {
        name: "object",
        signs: &[],
        calls: Calls {
            open: "",
            close: "",
            form: Form::Object { name: "name", arguments: "arguments", first: "", alone: true },
        },
    },
];

/// `<｜DSML｜invoke name="f">`, and so on.
const DSML: Form = Form::Named {
    open: "<｜DSML｜invoke name=\"",
    name_end: "\">",
    head_end: "",
    extras: NO_EXTRAS,
    arguments: Arguments::Tagged(&Tags {
        open: "<｜DSML｜parameter name=\"",
        key_end: "\"",
        attributes: [" string=\"true\"", " string=\"false\""],
        value: ">",
        close: "</｜DSML｜parameter>",
    }),
    close: "</｜DSML｜invoke>",
};

/// `<invoke name="f">`, and so on.
const INVOKE: Form = Form::Named {
    open: "<invoke name=\"",
    name_end: "\">",
    head_end: "",
    extras: NO_EXTRAS,
    arguments: Arguments::Tagged(&Tags {
        open: "<parameter name=\"",
        key_end: "\"",
        attributes: NO_ATTRIBUTES,
        value: ">",
        close: "</parameter>",
    }),
    close: "</invoke>",
};

/// Markers around reasoning.
#[derive(Debug)]
pub(super) struct Reasoning {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
}

/// All notations of reasoning; an answer may use any of them.
pub(super) static REASONINGS: &[Reasoning] = &[
    Reasoning { open: "<think>", close: "</think>" },
    Reasoning { open: "<seed:think>", close: "</seed:think>" },
    Reasoning { open: "<mm:think>", close: "</mm:think>" },
    Reasoning { open: "[THINK]", close: "[/THINK]" },
    Reasoning { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
    Reasoning { open: "<|inner_prefix|>", close: "<|inner_suffix|>" },
    Reasoning { open: "<|channel>thought\n", close: "<channel|>" },
    Reasoning { open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>" },
    PROSE,
];

/// Opened by plain words, so only in a prompt.
const PROSE: Reasoning =
    Reasoning { open: "Here are my reasoning steps:\n", close: "[BEGIN FINAL RESPONSE]" };

impl Reasoning {
    /// True if an answer may open it; a prompt always may.
    pub(super) fn opens_in_answer(&self) -> bool {
        self.open != PROSE.open
    }

    /// The reasoning opened by the end of `prompt`, if any.
    pub(super) fn opened_by(prompt: &str) -> Option<&'static Reasoning> {
        let prompt = prompt.trim_end();
        REASONINGS.iter().find(|reasoning| prompt.ends_with(reasoning.open.trim_end()))
    }
}

/// Markers around the text of an answer that are not part of it.
pub(super) static FRAMES: &[&str] = &[
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
    "<|START_TEXT|>",
    "<|END_TEXT|>",
    "<|open|>response<|sep|>",
    "<|close|>response<|sep|>",
    "<|close|>message<|sep|>",
];

impl AnswerSyntax {
    /// Detects the syntax from a chat template; `plain` (reasoning, but no calls) if no signs match.
    pub fn of_template(template: &str) -> &'static AnswerSyntax {
        let fits = |syntax: &&AnswerSyntax| syntax.signs.iter().all(|sign| template.contains(sign));
        SYNTAXES.iter().find(fits).expect("a row without signs fits")
    }

    /// The syntax with this name.
    pub fn by_name(name: &str) -> Option<&'static AnswerSyntax> {
        SYNTAXES.iter().find(|syntax| syntax.name == name)
    }

    /// This syntax if it has calls; otherwise `object`, in which an answer that is only the object
    /// `{"name": "f", "arguments": {}}` is a call. Models without a notation of their own write it if a grammar
    /// makes them ([`Self::call_grammar`]).
    pub fn or_object(&'static self) -> &'static AnswerSyntax {
        match self.calls.form {
            Form::None => Self::by_name("object").expect("the table has this row"),
            _ => self,
        }
    }

    /// True if the notation has calls.
    pub fn has_calls(&self) -> bool {
        !matches!(self.calls.form, Form::None)
    }

    /// All names, without duplicates.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let mut names: Vec<_> = SYNTAXES.iter().map(|syntax| syntax.name).collect();
        names.dedup();
        names.into_iter()
    }

    /// Control tokens whose texts form the markers of this syntax. They render as nothing by default, so a
    /// generation whose text goes to an [`super::AnswerParser`] must render them (`GenerateOptions::shown`).
    pub fn marker_tokens(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        let marks = self.marks();
        let is_marker = |id: &u32| {
            let text = tokenizer.token_text(*id).unwrap_or_default();
            tokenizer.kind(*id) == Some(TokenKind::Control) && marks.iter().any(|mark| mark.contains(text))
        };
        (0..tokenizer.n_vocab() as u32).filter(is_marker).collect()
    }

    /// All fixed texts of the syntax.
    pub(super) fn marks(&self) -> Vec<&'static str> {
        let mut marks = vec![self.calls.open, self.calls.close];
        match self.calls.form {
            Form::Named { open, name_end, head_end, arguments, close, .. } => {
                marks.extend([open, name_end, head_end, close]);
                match arguments {
                    Arguments::Tagged(tags) => {
                        marks.extend([tags.open, tags.key_end, tags.value, tags.close])
                    }
                    Arguments::Gemma => marks.push(GEMMA_QUOTE),
                    Arguments::Json => {}
                }
            }
            Form::Harmony => {
                marks.extend([harmony::CHANNEL, harmony::MESSAGE, harmony::CONSTRAIN]);
                marks.extend(harmony::ENDS);
            }
            Form::None | Form::Object { .. } | Form::NameIsKey | Form::Python => {}
        }
        marks.extend(REASONINGS.iter().flat_map(|reasoning| [reasoning.open, reasoning.close]));
        marks.extend(FRAMES);
        marks
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}
