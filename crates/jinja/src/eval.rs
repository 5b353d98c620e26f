//! Evaluates expressions.

use std::sync::Arc;

use super::args::Args;
use super::ast::{Arg, BinaryOp, CompareOp, Expr, ExprKind, Filter};
use super::environment::Dialect;
use super::fault::{Result, fail};
use super::global::Global;
use super::ops::undefined;
use super::run::Run;
use super::value::{DictBuilder, ListBuilder, Seq, Value, seq};
use super::{globals, methods};

impl<'p> Run<'p> {
    pub(super) fn eval(&mut self, expr: &'p Expr) -> Result<Value> {
        self.meter.step(1)?;
        match &expr.kind {
            ExprKind::Const(value) => Ok(value.clone()),
            ExprKind::Name(name) => Ok(self.name(name)),
            _ => self.nested(|run| run.compound(expr)).map_err(|fault| fault.at(expr.pos)),
        }
    }

    fn name(&self, name: &Arc<str>) -> Value {
        match self.lookup(name) {
            Some(value) => value.clone(),
            None => self.global(name),
        }
    }

    fn global(&self, name: &Arc<str>) -> Value {
        match self.env.functions.iter().position(|(found, _)| *found == &**name) {
            Some(id) => Value::Function(id),
            None => Global::find(name, self.now.is_some())
                .map_or_else(|| Value::Undefined(Some(name.clone())), Value::Global),
        }
    }

    /// One call for each kind keeps the frames of the recursion small.
    fn compound(&mut self, expr: &'p Expr) -> Result<Value> {
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Name(_) => self.eval(expr),
            ExprKind::List(items) => self.eval_items(items).map(Value::List),
            ExprKind::Tuple(items) => self.eval_items(items).map(Value::Tuple),
            ExprKind::Dict(entries) => self.eval_dict(entries),
            ExprKind::Unary(op, value) => {
                let value = self.eval(value)?;
                self.unary(*op, &value)
            }
            ExprKind::Binary(first, rest) => self.eval_binary(first, rest),
            ExprKind::Concat(items) => self.eval_concat(items),
            ExprKind::And(items) => self.eval_until(items, false),
            ExprKind::Or(items) => self.eval_until(items, true),
            ExprKind::Compare(first, rest) => self.eval_compare(first, rest),
            ExprKind::If { test, yes, no } => self.eval_if(test, yes, no.as_deref()),
            ExprKind::Attr(value, name) => {
                let value = self.eval(value)?;
                self.attr(&value, name)
            }
            ExprKind::Item(value, key) => self.eval_item(value, key),
            ExprKind::Slice(value, bounds) => self.eval_slice(value, bounds),
            ExprKind::Call(..) => self.call_with(expr, None),
            ExprKind::Filter(value, filter) => {
                let value = self.eval(value)?;
                self.filter(value, filter)
            }
            ExprKind::Test { value, name, args, negated } => self.eval_test(value, name, args, *negated),
        }
    }

    fn eval_items(&mut self, items: &'p [Expr]) -> Result<Arc<Seq>> {
        let meter = self.meter.clone();
        let mut list = ListBuilder::new(&meter)?;
        for item in items {
            list.push(self.eval(item)?)?;
        }
        list.seq()
    }

    fn eval_dict(&mut self, entries: &'p [(Expr, Expr)]) -> Result<Value> {
        let mut dict = DictBuilder::new(&self.meter)?;
        for (key, value) in entries {
            let key = self.eval(key)?;
            dict.insert(key, self.eval(value)?)?;
        }
        dict.finish()
    }

    fn eval_binary(&mut self, first: &'p Expr, rest: &'p [(BinaryOp, Expr)]) -> Result<Value> {
        let mut value = self.eval(first)?;
        for (op, operand) in rest {
            let operand = self.eval(operand)?;
            value = self.binary(*op, &value, &operand)?;
        }
        Ok(value)
    }

    fn eval_concat(&mut self, items: &'p [Expr]) -> Result<Value> {
        let mut out = self.text()?;
        for item in items {
            let value = self.eval(item)?;
            self.write_str(&value, &mut out)?;
        }
        Ok(out.finish())
    }

    /// The first value whose truth is `stop`, or the last one.
    fn eval_until(&mut self, items: &'p [Expr], stop: bool) -> Result<Value> {
        let mut value = Value::None;
        for item in items {
            value = self.eval(item)?;
            if self.is_true(&value)? == stop {
                break;
            }
        }
        Ok(value)
    }

    fn eval_compare(&mut self, first: &'p Expr, rest: &'p [(CompareOp, Expr)]) -> Result<Value> {
        let mut left = self.eval(first)?;
        for (op, right) in rest {
            let right = self.eval(right)?;
            if !self.compare(*op, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn eval_if(&mut self, test: &'p Expr, yes: &'p Expr, no: Option<&'p Expr>) -> Result<Value> {
        let test = self.eval(test)?;
        match (self.is_true(&test)?, no) {
            (true, _) => self.eval(yes),
            (false, Some(no)) => self.eval(no),
            (false, None) if self.dialect == Dialect::Code => Ok(Value::constant("")),
            (false, None) => Ok(Value::Undefined(None)),
        }
    }

    fn eval_item(&mut self, value: &'p Expr, key: &'p Expr) -> Result<Value> {
        let value = self.eval(value)?;
        let key = self.eval(key)?;
        self.item(&value, &key)
    }

    fn eval_slice(&mut self, value: &'p Expr, bounds: &'p [Option<Box<Expr>>; 3]) -> Result<Value> {
        let value = self.eval(value)?;
        let [start, stop, step] = bounds;
        let mut bound = |expr: &'p Option<Box<Expr>>| expr.as_deref().map(|e| self.eval(e)).transpose();
        let bounds = [bound(start)?, bound(stop)?, bound(step)?];
        self.slice(&value, bounds)
    }

    fn eval_test(&mut self, value: &'p Expr, name: &str, args: &'p [Arg], negated: bool) -> Result<Value> {
        let value = self.eval(value)?;
        let args = self.args(args)?;
        Ok(Value::Bool(self.holds(name, &value, args)? != negated))
    }

    pub(super) fn filter(&mut self, value: Value, filter: &'p Filter) -> Result<Value> {
        let args = self.args(&filter.args)?;
        self.apply(&filter.name, value, args).map_err(|fault| fault.at(filter.pos))
    }

    fn args(&mut self, list: &'p [Arg]) -> Result<Args> {
        let mut args = Args::default();
        for arg in list {
            let value = self.eval(arg.expr())?;
            match arg {
                Arg::Positional(_) => args.positional.push(value),
                Arg::Named(name, _) => args.name(&self.meter, name, value)?,
                Arg::Splat(_) => {
                    // More arguments than any function takes are those of `varargs`.
                    let items = self.iterate(&value)?;
                    self.meter.step(items.len() as u64)?;
                    let _charge = self.meter.charge(items.len() * size_of::<Value>())?;
                    args.positional.extend(items.iter().cloned());
                }
                Arg::NamedSplat(_) => {
                    let Value::Dict(dict) = &value else {
                        return fail("argument after ** must be a mapping");
                    };
                    for (key, value) in dict.iter() {
                        let Value::Str(name) = key else { return fail("keywords must be strings") };
                        args.name(&self.meter, name, value.clone())?;
                    }
                }
            }
        }
        Ok(args)
    }

    /// Evaluates a call; `caller` is the body of a `call` block.
    pub(super) fn call_with(&mut self, expr: &'p Expr, caller: Option<Value>) -> Result<Value> {
        let ExprKind::Call(callee, list) = &expr.kind else { return fail("expected a call") };
        // Methods are called without making a value of them.
        if let ExprKind::Attr(object, name) = &callee.kind {
            let object = self.eval(object)?;
            if methods::exists(&object, name) {
                let args = self.args(list)?;
                return methods::call(self, &object, name, args);
            }
            let callee = self.attr(&object, name)?;
            return self.call_args(&callee, list, caller);
        }
        let callee = self.eval(callee)?;
        self.call_args(&callee, list, caller)
    }

    fn call_args(&mut self, callee: &Value, list: &'p [Arg], caller: Option<Value>) -> Result<Value> {
        let args = self.args(list)?;
        self.call(callee, args, caller)
    }

    pub(super) fn call(&mut self, callee: &Value, args: Args, caller: Option<Value>) -> Result<Value> {
        match callee {
            Value::Undefined(name) => undefined(name.as_ref()),
            Value::Global(global) => globals::call(*global, self, args),
            Value::Function(id) => self.call_custom(self.env.functions[*id].1, None, args),
            Value::Method(method) => methods::call(self, &method.0, &method.1, args),
            Value::Macro(id) => self.call_macro(*id, args, caller),
            Value::Loop(id, serial) => {
                let [items] = args.bind("loop", ["iterable"], 1)?;
                self.call_loop(*id, *serial, &items.unwrap_or(Value::None))
            }
            Value::Joiner(id) => {
                let (separator, is_used) = &mut self.joiners[*id];
                let text = if *is_used { separator.clone() } else { Value::constant("") };
                *is_used = true;
                Ok(text)
            }
            _ => fail(format!("'{}' object is not callable", callee.type_name())),
        }
    }

    fn call_macro(&mut self, id: usize, args: Args, caller: Option<Value>) -> Result<Value> {
        let decl = self.macros[id].decl;
        let n_param = decl.params.len();
        let Args { mut positional, named } = args;
        let more = if positional.len() > n_param { positional.split_off(n_param) } else { Vec::new() };
        let mut vars: Vec<(&'p str, Value)> =
            decl.params.iter().map(|(name, _)| &**name).zip(positional).collect();
        let mut kwargs = DictBuilder::new(&self.meter)?;
        let mut caller = caller;
        for (name, value) in named {
            match decl.params.iter().find(|(param, _)| **param == *name) {
                Some((param, _)) if vars.iter().any(|(found, _)| *found == &**param) => {
                    return fail(format!("macro '{}' got multiple values for argument '{param}'", decl.name));
                }
                Some((param, _)) => vars.push((param, value)),
                None if *name == *"caller" && decl.reads.caller => caller = Some(value),
                None if decl.reads.kwargs => kwargs.insert(Value::constant(&name), value)?,
                None => return fail(format!("macro '{}' takes no keyword argument '{name}'", decl.name)),
            }
        }
        if !more.is_empty() && !decl.reads.varargs {
            return fail(format!("macro '{}' takes not more than {n_param} argument(s)", decl.name));
        }
        if decl.reads.varargs {
            vars.push(("varargs", Value::Tuple(seq(&self.meter, more)?)));
        }
        if decl.reads.kwargs {
            vars.push(("kwargs", kwargs.finish()?));
        }
        match caller {
            Some(caller) if decl.reads.caller => vars.push(("caller", caller)),
            Some(_) => {
                return fail(format!("macro '{}' was invoked with two values for the caller", decl.name));
            }
            None if decl.reads.caller => vars.push(("caller", Value::Undefined(Some("caller".into())))),
            None => {}
        }
        self.nested(|run| run.run_macro(id, vars))
    }

    /// The items of a value that can be iterated over.
    pub(super) fn iterate(&mut self, value: &Value) -> Result<Arc<Seq>> {
        match value {
            Value::List(items) | Value::Tuple(items) | Value::View(items, _) => Ok(items.clone()),
            Value::Undefined(_) => {
                self.check(value)?;
                seq(&self.meter, Vec::new())
            }
            Value::Dict(dict) => {
                let mut keys = self.items()?;
                dict.keys().try_for_each(|key| keys.push(key.clone()))?;
                keys.seq()
            }
            Value::Str(text) => {
                let mut chars = self.items()?;
                for (at, c) in text.char_indices() {
                    chars.push(Value::part(&self.meter, text, &text[at..at + c.len_utf8()])?)?;
                }
                chars.seq()
            }
            Value::Range(range) => {
                let mut numbers = self.items()?;
                (0..range.len()).try_for_each(|i| numbers.push(range.get(i)))?;
                numbers.seq()
            }
            Value::Iter(id) => {
                let (items, at) = &mut self.iters[*id];
                let from = std::mem::replace(at, items.len());
                let items = items.clone();
                if from == 0 {
                    return Ok(items);
                }
                let mut rest = self.items()?;
                rest.extend(&items[from..])?;
                rest.seq()
            }
            _ => fail(format!("'{}' object is not iterable", value.type_name())),
        }
    }

    /// A generator over items.
    pub(super) fn generator(&mut self, items: Arc<Seq>) -> Result<Value> {
        self.tables.grow(64)?;
        self.iters.push((items, 0));
        Ok(Value::Iter(self.iters.len() - 1))
    }
}
