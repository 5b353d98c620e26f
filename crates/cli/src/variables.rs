//! Variables of chat templates, as options, and the budget of the reasoning.

use serde_json::{Map, Value};

/// Options that set variables of a chat template.
#[derive(Clone, Debug, Default, clap::Args, serde::Serialize)]
pub(crate) struct VariableArgs {
    /// Ask the chat template for an answer without reasoning
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    no_think: Option<bool>,
    /// Level of reasoning, for chat templates that know levels: low, medium, high ...
    #[arg(long, value_name = "LEVEL")]
    reasoning_effort: Option<String>,
    /// Most tokens of reasoning in an answer, behind which it is ended; 0: no reasoning, -1: any number
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i64).range(-1..))]
    reasoning_budget: Option<i64>,
    /// Variables for the chat template: a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    chat_template_kwargs: Option<Object>,
}

/// Variables of a chat template.
#[derive(Clone, Debug, Default, PartialEq)]
struct Object(Map<String, Value>);

/// As it is written on the command line.
impl serde::Serialize for Object {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&Value::from(self.0.clone()).to_string())
    }
}

fn object(text: &str) -> Result<Object, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Object(object)),
        Ok(_) => Err("expected a JSON object, such as {\"thinking\": false}".into()),
        Err(e) => Err(format!("not JSON: {e}")),
    }
}

impl VariableArgs {
    /// The switch for reasoning, if it is set.
    pub(crate) fn enable_thinking(&self) -> Option<bool> {
        self.no_think.map(|off| !off)
    }

    /// Most tokens of reasoning, if they are limited.
    pub(crate) fn reasoning_budget(&self) -> Option<usize> {
        self.reasoning_budget.and_then(|n| usize::try_from(n).ok())
    }

    /// All other variables.
    pub(crate) fn extra(&self) -> Map<String, Value> {
        let mut extra = self.chat_template_kwargs.clone().unwrap_or_default().0;
        // llama.cpp's word for the level of the template itself.
        if let Some(level) = self.reasoning_effort.as_ref().filter(|level| *level != "default") {
            extra.insert("reasoning_effort".into(), level.as_str().into());
        }
        extra
    }
}
