//! The syntax tree.

use std::sync::Arc;

use super::fault::Pos;
use super::value::Value;

/// An expression. `height` is the number of levels of expressions in it; the parser bounds it.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) pos: Pos,
    pub(super) height: u16,
    pub(super) kind: ExprKind,
}

#[derive(Debug)]
pub(super) enum ExprKind {
    Const(Value),
    Name(Arc<str>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    /// Operators of one precedence, from left to right.
    Binary(Box<Expr>, Vec<(BinaryOp, Expr)>),
    Concat(Vec<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Box<Expr>, Vec<(CompareOp, Expr)>),
    If {
        test: Box<Expr>,
        yes: Box<Expr>,
        no: Option<Box<Expr>>,
    },
    Attr(Box<Expr>, Arc<str>),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, [Option<Box<Expr>>; 3]),
    Call(Box<Expr>, Vec<Arg>),
    Filter(Box<Expr>, Filter),
    Test {
        value: Box<Expr>,
        name: Arc<str>,
        args: Vec<Arg>,
        negated: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnaryOp {
    Not,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    Pow,
}

impl BinaryOp {
    pub(super) fn sign(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::FloorDiv => "//",
            BinaryOp::Rem => "%",
            BinaryOp::Pow => "**",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

/// An argument of a call.
#[derive(Debug)]
pub(super) enum Arg {
    Positional(Expr),
    Named(Arc<str>, Expr),
    Splat(Expr),
    NamedSplat(Expr),
}

impl Arg {
    pub(super) fn expr(&self) -> &Expr {
        match self {
            Arg::Positional(e) | Arg::Named(_, e) | Arg::Splat(e) | Arg::NamedSplat(e) => e,
        }
    }
}

#[derive(Debug)]
pub(super) struct Filter {
    pub(super) name: Arc<str>,
    pub(super) args: Vec<Arg>,
    pub(super) pos: Pos,
}

/// A place that `set`, `for` and `with` assign to.
#[derive(Debug)]
pub(super) enum Target {
    Name(Arc<str>),
    /// An attribute of a namespace.
    Attr(Arc<str>, Arc<str>),
    Tuple(Vec<Target>),
}

#[derive(Debug)]
pub(super) struct Stmt {
    pub(super) pos: Pos,
    pub(super) kind: StmtKind,
}

#[derive(Debug)]
pub(super) enum StmtKind {
    Text(Arc<str>),
    Emit(Expr),
    For(For),
    /// Tests with their bodies, and the body of `else`.
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    Set(Target, Expr),
    SetBlock(Target, Vec<Filter>, Vec<Stmt>),
    With(Vec<(Target, Expr)>, Vec<Stmt>),
    /// A body with a scope of its own.
    Scope(Vec<Stmt>),
    /// A body that templates which extend this one can replace.
    Block(Arc<str>, Vec<Stmt>),
    Include {
        name: Expr,
        /// It is no failure if there is no such template.
        is_optional: bool,
    },
    /// A template as a module of this name.
    Import(Expr, Arc<str>),
    /// Names of a template, and the names that they get here.
    ImportNames(Expr, Vec<(Arc<str>, Arc<str>)>),
    Extends(Expr),
    FilterBlock(Vec<Filter>, Vec<Stmt>),
    Macro(Macro),
    Call(Expr, Macro),
    Do(Expr),
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct For {
    pub(super) target: Target,
    pub(super) iter: Expr,
    pub(super) filter: Option<Expr>,
    pub(super) body: Vec<Stmt>,
    pub(super) otherwise: Vec<Stmt>,
    pub(super) is_recursive: bool,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Arc<str>,
    pub(super) params: Vec<(Arc<str>, Option<Expr>)>,
    pub(super) body: Vec<Stmt>,
    /// The body reads `varargs`, `kwargs` and `caller`.
    pub(super) reads: Reads,
}

/// Special names that a macro reads; only then it takes what they hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reads {
    pub(super) varargs: bool,
    pub(super) kwargs: bool,
    pub(super) caller: bool,
}
