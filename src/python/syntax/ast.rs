//! Our own syntax tree: the Python of mods and factories, with the place of every node.
//!
//! Invariant: every span points into the source of the tree. Must not know ruff's types or any value.

use crate::base::Span;
use std::rc::Rc;

/// An identifier.
pub type Name = Rc<str>;

/// A parsed text.
#[derive(Debug, Default)]
pub struct Module {
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A statement.
#[derive(Debug)]
pub struct Stmt {
    /// Where.
    pub span: Span,
    /// What.
    pub kind: StmtKind,
}

/// Kinds of statements.
#[derive(Debug)]
#[allow(missing_docs)] // Python's own names
pub enum StmtKind {
    Function(Rc<Function>),
    Class(Rc<Class>),
    Return(Option<Expr>),
    Delete(Vec<Expr>),
    Assign {
        targets: Vec<Expr>,
        value: Expr,
    },
    AugAssign {
        target: Expr,
        op: BinOp,
        value: Expr,
    },
    /// `target: annotation = value`
    AnnAssign {
        target: Expr,
        value: Option<Expr>,
    },
    For {
        target: Expr,
        iter: Expr,
        body: Vec<Stmt>,
        orelse: Vec<Stmt>,
    },
    While {
        test: Expr,
        body: Vec<Stmt>,
        orelse: Vec<Stmt>,
    },
    /// `if`, `elif`..., `else` (no test).
    If(Vec<(Option<Expr>, Vec<Stmt>)>),
    With(Rc<With>),
    Raise(Option<Expr>),
    Try {
        body: Vec<Stmt>,
        handlers: Vec<Handler>,
        orelse: Vec<Stmt>,
        finally: Vec<Stmt>,
    },
    Assert {
        test: Expr,
        message: Option<Expr>,
    },
    Match {
        subject: Expr,
        cases: Vec<Case>,
    },
    /// `import a.b as c`: dotted name, and the name it gets.
    Import(Vec<(Name, Option<Name>)>),
    ImportFrom {
        module: Name,
        /// Leading dots.
        level: u32,
        /// Name, the name it gets, and where.
        names: Vec<(Name, Option<Name>, Span)>,
    },
    Global(Vec<Name>),
    Nonlocal(Vec<Name>),
    Expr(Expr),
    Pass,
    Break,
    Continue,
    /// Legal Python that the tracer does not run, in words.
    Unsupported(&'static str),
}

/// `with item as target, ...: body`
#[derive(Debug)]
pub struct With {
    /// The context manager, and the target.
    pub items: Vec<(Expr, Option<Expr>)>,
    /// The body.
    pub body: Vec<Stmt>,
}

/// An `except` clause.
#[derive(Debug)]
pub struct Handler {
    /// The exception classes; None catches all.
    pub class: Option<Expr>,
    /// `as name`
    pub name: Option<Name>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A `case` of a `match`.
#[derive(Debug)]
pub struct Case {
    /// The pattern of the subject.
    pub pattern: Pattern,
    /// `if guard`
    pub guard: Option<Expr>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A pattern of a `case`.
#[derive(Debug)]
pub enum Pattern {
    /// A literal or dotted name: equal to it.
    Value(Expr),
    /// `None`, `True` or `False`: the thing itself.
    Singleton(Expr),
    /// `[a, *rest]`
    Sequence(Vec<Pattern>),
    /// `*rest` in a sequence.
    Star(Option<Name>),
    /// `{key: pattern, **rest}`
    Mapping(Vec<(Expr, Pattern)>, Option<Name>),
    /// `Class(a, name=b)`
    Class(Expr, Vec<Pattern>, Vec<(Name, Pattern)>),
    /// `pattern as name`, `name`, or `_` (neither).
    As(Option<Box<Pattern>>, Option<Name>),
    /// `a | b`
    Or(Vec<Pattern>),
}

/// A `def` or `lambda`.
#[derive(Debug)]
pub struct Function {
    /// `<lambda>` for lambdas.
    pub name: Name,
    /// The place of the name; the whole lambda for lambdas.
    pub name_span: Span,
    /// The whole definition.
    pub span: Span,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The body.
    pub body: Body,
    /// Decorators, outermost first.
    pub decorators: Vec<Expr>,
    /// `-> annotation`
    pub returns: Option<Expr>,
    /// The docstring.
    pub doc: Option<Rc<str>>,
    /// Whether it has a `yield`.
    pub generator: bool,
    /// Whether it is `async`.
    pub is_async: bool,
}

/// A function's body.
#[derive(Debug)]
pub enum Body {
    /// For a `def`.
    Block(Vec<Stmt>),
    /// For a `lambda`.
    Expr(Expr),
}

/// How a parameter takes arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Python's own names
pub enum ParamMode {
    PositionalOnly,
    Plain,
    VarArgs,
    KeywordOnly,
    KwArgs,
}

/// A parameter.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Where it is declared.
    pub span: Span,
    /// How it takes arguments.
    pub mode: ParamMode,
    /// `: annotation`
    pub annotation: Option<Expr>,
    /// `= default`
    pub default: Option<Expr>,
}

impl Function {
    /// Positional parameters without defaults: PyTorch counts them to distinguish masks from scores.
    pub fn required(&self) -> impl Iterator<Item = &Param> {
        let counts = |p: &&Param| matches!(p.mode, ParamMode::PositionalOnly | ParamMode::Plain) && p.default.is_none();
        self.params.iter().filter(counts)
    }
}

/// A `class`.
#[derive(Debug)]
pub struct Class {
    /// Its name.
    pub name: Name,
    /// Base classes.
    pub bases: Vec<Expr>,
    /// `metaclass=` and what `__init_subclass__` takes.
    pub keywords: Vec<(Name, Expr)>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Decorators, outermost first.
    pub decorators: Vec<Expr>,
    /// The whole definition.
    pub span: Span,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// Where, without enclosing parentheses.
    pub span: Span,
    /// What.
    pub kind: ExprKind,
}

/// Kinds of expressions.
#[derive(Debug)]
#[allow(missing_docs)] // Python's own names
pub enum ExprKind {
    None,
    Ellipsis,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    FString(Vec<FPart>),
    Name(Name),
    Attribute(Box<Expr>, Name),
    Subscript(Box<Expr>, Box<Expr>),
    Slice(Box<[Option<Expr>; 3]>),
    Call(Box<Expr>, Vec<Argument>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Box<Expr>, Vec<(CmpOp, Expr)>),
    Lambda(Rc<Function>),
    /// test, then, else
    Ternary(Box<[Expr; 3]>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Set(Vec<Expr>),
    /// `**mapping` has no key.
    Dict(Vec<(Option<Expr>, Expr)>),
    Starred(Box<Expr>),
    Named(Name, Box<Expr>),
    Comprehension(Box<Comprehension>),
    Yield(Option<Box<Expr>>),
    YieldFrom(Box<Expr>),
    /// Legal Python that the tracer does not run, in words.
    Unsupported(&'static str),
}

/// A part of an f-string.
#[derive(Debug)]
pub enum FPart {
    /// Text.
    Text(Rc<str>),
    /// `{value!conversion:spec}`
    Value {
        /// The formatted value.
        value: Expr,
        /// `s`, `r` or `a`.
        conversion: Option<char>,
        /// The format specification, itself of parts.
        spec: Vec<FPart>,
        /// `x=` of `{x=}`.
        debug: Option<Rc<str>>,
    },
}

/// An argument of a call.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Argument {
    Positional(Expr),
    Star(Expr),
    Keyword(Name, Expr),
    DoubleStar(Expr),
}

/// The kind of a comprehension's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Collects {
    List,
    Set,
    Dict,
    Generator,
}

/// `[element for target in iter if test ...]`
#[derive(Debug)]
pub struct Comprehension {
    /// The kind of the result.
    pub collects: Collects,
    /// The element, or the key of a dict.
    pub element: Expr,
    /// The value of a dict.
    pub value: Option<Expr>,
    /// `for target in iter if tests`, outermost first.
    pub loops: Vec<(Expr, Expr, Vec<Expr>)>,
}

/// Operators on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UnaryOp {
    Invert,
    Not,
    Plus,
    Neg,
}

/// Operators on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    MatMul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Shl,
    Shr,
    And,
    Or,
    Xor,
}

impl BinOp {
    /// As written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::MatMul => "@",
            BinOp::Div => "/",
            BinOp::FloorDiv => "//",
            BinOp::Mod => "%",
            BinOp::Pow => "**",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::And => "&",
            BinOp::Or => "|",
            BinOp::Xor => "^",
        }
    }

    /// `__add__` and the like, without underscores.
    pub fn method(self) -> &'static str {
        match self {
            BinOp::Add => "add",
            BinOp::Sub => "sub",
            BinOp::Mul => "mul",
            BinOp::MatMul => "matmul",
            BinOp::Div => "truediv",
            BinOp::FloorDiv => "floordiv",
            BinOp::Mod => "mod",
            BinOp::Pow => "pow",
            BinOp::Shl => "lshift",
            BinOp::Shr => "rshift",
            BinOp::And => "and",
            BinOp::Or => "or",
            BinOp::Xor => "xor",
        }
    }
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Is,
    IsNot,
    In,
    NotIn,
}

impl CmpOp {
    /// As written.
    pub fn symbol(self) -> &'static str {
        match self {
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
            CmpOp::Is => "is",
            CmpOp::IsNot => "is not",
            CmpOp::In => "in",
            CmpOp::NotIn => "not in",
        }
    }
}
