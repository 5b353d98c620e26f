//! The system prompt and the options that ollama keeps with a model: what the command line leaves to the model.

use chaski_hub::OllamaModel;
use serde_json::Value;

use super::Args;
use crate::ui::Ui;

/// Fills in what the command line does not say; names unknown here are told to verbose users.
pub(super) fn take(model: &OllamaModel, args: &mut Args, ui: &Ui) {
    if args.answer.system.is_none() {
        args.answer.system = model.system.clone();
    }
    let Some(Value::Object(params)) = &model.params else { return };
    let has_stops = !args.answer.stop.is_empty();
    for (name, value) in params {
        let is_known = match name.as_str() {
            "stop" => {
                let texts: Option<Vec<&str>> = match value {
                    Value::Array(list) => list.iter().map(Value::as_str).collect(),
                    value => value.as_str().map(|text| vec![text]),
                };
                let texts = texts.into_iter().flatten().filter(|_| !has_stops).map(str::to_owned);
                args.answer.stop.extend(texts);
                true
            }
            "num_predict" => {
                args.answer.n_predict = args.answer.n_predict.or(value.as_i64());
                value.is_i64()
            }
            "num_ctx" => {
                let n_ctx = value.as_u64().and_then(|n| u32::try_from(n).ok());
                if args.engine.ctx_size == 0 {
                    args.engine.ctx_size = n_ctx.unwrap_or(0);
                }
                n_ctx.is_some()
            }
            name => args.sampling.fill(name, value),
        };
        if !is_known {
            ui.detail(&format!("the option `{name}` that ollama keeps with the model has no effect"));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::*;

    #[derive(clap::Parser)]
    #[command(no_binary_name = true)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn options_of_the_command_line_come_first() {
        let params =
            json!({ "temperature": 0.25, "top_k": 7, "stop": ["<a>", "<b>"], "num_ctx": 512, "num_gpu": 9 });
        let model = OllamaModel {
            path: "x".into(),
            n_byte: 0,
            projector: None,
            system: Some("Be brief.".into()),
            params: Some(params),
        };
        let taken = |line: &[&str]| {
            let mut args = Line::try_parse_from(line).unwrap().args;
            take(&model, &mut args, &Ui::silent());
            let mut sampler = chaski::SamplerParams::default();
            args.sampling.apply(&mut sampler);
            (sampler.temp, sampler.top_k, args.answer.stop, args.answer.system, args.engine.ctx_size)
        };
        let (temp, top_k, stop, system, n_ctx) = taken(&["m"]);
        assert_eq!((temp, top_k, n_ctx), (0.25, 7, 512));
        assert_eq!((stop, system.as_deref()), (vec!["<a>".to_owned(), "<b>".into()], Some("Be brief.")));
        let (temp, _, stop, system, n_ctx) =
            taken(&["m", "--temp", "1", "--stop", "x", "--system", "y", "-c", "64"]);
        assert_eq!((temp, n_ctx, stop, system.as_deref()), (1.0, 64, vec!["x".to_owned()], Some("y")));
    }
}
