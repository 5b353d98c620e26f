//! Calls functions of the environment.

use super::args::Args;
use super::fault::Result;
use super::given::{Arguments, Function, Given};
use super::run::Run;
use super::value::Value;

impl Run<'_> {
    /// Calls a function of the environment.
    pub(super) fn call_custom(
        &mut self,
        function: Function,
        value: Option<Value>,
        args: Args,
    ) -> Result<Value> {
        let positional =
            value.iter().chain(&args.positional).map(|v| self.given(v)).collect::<Result<_>>()?;
        let named = args.named.iter().map(|(name, v)| Ok((name.clone(), self.given(v)?)));
        let named = named.collect::<Result<_>>()?;
        let result = function(Arguments { positional, named })?;
        self.taken(result)
    }

    fn given(&mut self, value: &Value) -> Result<Given> {
        Ok(match value {
            Value::Undefined(_) => Given::Undefined,
            Value::None => Given::None,
            Value::Bool(b) => Given::Bool(*b),
            Value::Int(n) => Given::Int(*n),
            Value::Float(x) => Given::Float(*x),
            Value::Str(text) => Given::Text(text.to_string()),
            Value::List(_) | Value::Tuple(_) | Value::View(..) | Value::Range(_) => {
                let items = self.iterate(value)?;
                Given::List(items.iter().map(|item| self.given(item)).collect::<Result<_>>()?)
            }
            other => Given::Other(self.str(other)?.as_str().unwrap_or_default().to_owned()),
        })
    }

    fn taken(&self, given: Given) -> Result<Value> {
        Ok(match given {
            Given::Undefined => Value::Undefined(None),
            Given::None => Value::None,
            Given::Bool(b) => Value::Bool(b),
            Given::Int(n) => Value::Int(n),
            Given::Float(x) => Value::Float(x),
            Given::Text(text) | Given::Other(text) => Value::text(&self.meter, text)?,
            Given::List(items) => {
                let items = items.into_iter().map(|item| self.taken(item)).collect::<Result<_>>()?;
                Value::list(&self.meter, items)?
            }
        })
    }
}
