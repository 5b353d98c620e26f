//! Counts the output of the operators `~`, `+` and `*`, which the template engine does not limit: their
//! results go through a filter.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Span, parse};
use minijinja::syntax::SyntaxConfig;

use super::limits::COUNTED;

/// Operators whose results can be longer than their operands.
const GROWING: [BinOpKind; 3] = [BinOpKind::Add, BinOpKind::Mul, BinOpKind::Concat];

/// Rewrites every `a ~ b`, `a + b` and `a * b` as `(a ~ b)|filter`; line numbers do not change. Source that
/// does not parse is returned unchanged, because the engine reports the error.
pub(super) fn counted(source: &str, syntax: SyntaxConfig) -> String {
    let Ok(template) = parse(source, "", syntax) else { return source.to_owned() };
    let mut found = Operators::default();
    found.stmts(&[template]);
    let mut places: Vec<(usize, bool)> = Vec::new();
    for span in &found.spans {
        places.extend([(span.start_offset as usize, false), (span.end_offset as usize, true)]);
    }
    // Where one ends and another begins there is nothing between them: no two operators are adjacent.
    places.sort_unstable();
    let (mut out, mut at) = (String::with_capacity(source.len() + 16 * places.len()), 0);
    for (place, is_end) in places {
        out.push_str(&source[at..place]);
        at = place;
        if is_end {
            out.push_str(")|");
            out.push_str(COUNTED);
        } else {
            out.push('(');
        }
    }
    out.push_str(&source[at..]);
    out
}

/// The positions of the operators in a template.
#[derive(Default)]
struct Operators {
    spans: Vec<Span>,
}

impl Operators {
    fn stmts(&mut self, stmts: &[Stmt<'_>]) {
        for stmt in stmts {
            match stmt {
                Stmt::Template(s) => self.stmts(&s.children),
                Stmt::EmitExpr(s) => self.expr(&s.expr),
                Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
                Stmt::ForLoop(s) => {
                    self.exprs([&s.target, &s.iter].into_iter().chain(&s.filter_expr));
                    self.stmts(&s.body);
                    self.stmts(&s.else_body);
                }
                Stmt::IfCond(s) => {
                    self.expr(&s.expr);
                    self.stmts(&s.true_body);
                    self.stmts(&s.false_body);
                }
                Stmt::WithBlock(s) => {
                    self.exprs(s.assignments.iter().flat_map(|(target, value)| [target, value]));
                    self.stmts(&s.body);
                }
                Stmt::Set(s) => self.exprs([&s.target, &s.expr]),
                Stmt::SetBlock(s) => {
                    self.exprs([&s.target].into_iter().chain(&s.filter));
                    self.stmts(&s.body);
                }
                Stmt::AutoEscape(s) => {
                    self.expr(&s.enabled);
                    self.stmts(&s.body);
                }
                Stmt::FilterBlock(s) => {
                    self.expr(&s.filter);
                    self.stmts(&s.body);
                }
                Stmt::Block(s) => self.stmts(&s.body),
                Stmt::Import(s) => self.expr(&s.expr),
                Stmt::FromImport(s) => self.expr(&s.expr),
                Stmt::Extends(s) => self.expr(&s.name),
                Stmt::Include(s) => self.expr(&s.name),
                Stmt::Macro(s) => {
                    self.exprs(&s.defaults);
                    self.stmts(&s.body);
                }
                Stmt::CallBlock(s) => {
                    self.expr(&s.call.expr);
                    self.args(&s.call.args);
                    self.exprs(&s.macro_decl.defaults);
                    self.stmts(&s.macro_decl.body);
                }
                Stmt::Do(s) => {
                    self.expr(&s.call.expr);
                    self.args(&s.call.args);
                }
            }
        }
    }

    fn exprs<'e, 'a: 'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr<'a>>) {
        exprs.into_iter().for_each(|e| self.expr(e));
    }

    fn args(&mut self, args: &[CallArg<'_>]) {
        for arg in args {
            let (CallArg::Pos(e) | CallArg::Kwarg(_, e) | CallArg::PosSplat(e) | CallArg::KwargSplat(e)) =
                arg;
            self.expr(e);
        }
    }

    fn expr(&mut self, expr: &Expr<'_>) {
        match expr {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(e) => self.exprs([&e.expr].into_iter().chain(&e.start).chain(&e.stop).chain(&e.step)),
            Expr::UnaryOp(e) => self.expr(&e.expr),
            Expr::BinOp(e) => {
                if GROWING.iter().any(|op| std::mem::discriminant(op) == std::mem::discriminant(&e.op)) {
                    self.spans.push(e.span());
                }
                self.exprs([&e.left, &e.right]);
            }
            Expr::Compare(e) => self.exprs([&e.expr].into_iter().chain(e.ops.iter().map(|op| &op.expr))),
            Expr::IfExpr(e) => self.exprs([&e.test_expr, &e.true_expr].into_iter().chain(&e.false_expr)),
            Expr::Filter(e) => {
                self.exprs(&e.expr);
                self.args(&e.args);
            }
            Expr::Test(e) => {
                self.expr(&e.expr);
                self.args(&e.args);
            }
            Expr::GetAttr(e) => self.expr(&e.expr),
            Expr::GetItem(e) => self.exprs([&e.expr, &e.subscript_expr]),
            Expr::Call(e) => {
                self.expr(&e.expr);
                self.args(&e.args);
            }
            Expr::List(e) => self.exprs(&e.items),
            Expr::Tuple(e) => self.exprs(&e.items),
            Expr::Map(e) => self.exprs(e.keys.iter().chain(&e.values)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_operators_go_through_the_filter() {
        let of = |source: &str| counted(source, SyntaxConfig::default()).replace(COUNTED, "n");
        for (source, expected) in [
            ("a {{ 'b' }} {# c ~ d #}{% raw %}{{ x ~ y }}{% endraw %}", ""),
            ("{{ a ~ b ~ c }}", "{{ ((a ~ b)|n ~ c)|n }}"),
            ("{{ a + b * c }}", "{{ (a + (b * c)|n)|n }}"),
            ("{{ (a ~ b) ~ (c) }}", "{{ (((a ~ b)|n) ~ (c))|n }}"),
            ("{{ not a ~ b == c - d }}", "{{ not (a ~ b)|n == c - d }}"),
            (
                "{{ f(a ~ b, k=c ~ d)[e + 1:].g|h(i ~ j) }}",
                "{{ f((a ~ b)|n, k=(c ~ d)|n)[(e + 1)|n:].g|h((i ~ j)|n) }}",
            ),
            (
                "{% set ns.x = -a + b if c ~ d else e ~ f %}",
                "{% set ns.x = (-a + b)|n if (c ~ d)|n else (e ~ f)|n %}",
            ),
            (
                "{% for a in b + c if d ~ e %}é{{ a ~ '}}~' }}{% endfor %}",
                "{% for a in (b + c)|n if (d ~ e)|n %}é{{ (a ~ '}}~')|n }}{% endfor %}",
            ),
            (
                "{%- if a ~ b is string -%}{% elif c ~ d in [e ~ f] %}{% endif %}",
                "{%- if (a ~ b is string)|n -%}{% elif (c ~ d)|n in [(e ~ f)|n] %}{% endif %}",
            ),
            (
                "{% macro m(a, b='x' ~ 'y') %}{{ {'k' ~ a: b ~ c} }}{% endmacro %}",
                "{% macro m(a, b=('x' ~ 'y')|n) %}{{ {('k' ~ a)|n: (b ~ c)|n} }}{% endmacro %}",
            ),
            ("{% call m(a ~ b) %}{{ c ~\nd }}{% endcall %}{{ e ~ }}", ""),
        ] {
            let expected = if expected.is_empty() { source } else { expected };
            assert_eq!(of(source), expected);
        }
    }
}
