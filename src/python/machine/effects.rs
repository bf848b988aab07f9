//! The names that a failed statement would have bound.
//!
//! Invariant: errs on the side of more names. Must not know values.

use super::Library;
use crate::python::syntax::Name;
use crate::python::syntax::ast::*;
use crate::python::syntax::binds::bound_by;
use crate::python::syntax::walk;

/// Names that a statement would have bound at its place.
pub(super) fn bound_names(statement: &Stmt) -> Vec<Name> {
    let mut out = Vec::new();
    walk::statements(statement, &mut |s| bound_by(s, &mut out));
    out
}

/// Methods of Python's containers, of NumPy's arrays and of modules that change their receiver.
const CHANGING: [&str; 42] = [
    "append",
    "appendleft",
    "extend",
    "extendleft",
    "insert",
    "update",
    "add",
    "pop",
    "popleft",
    "popitem",
    "remove",
    "discard",
    "clear",
    "sort",
    "reverse",
    "rotate",
    "setdefault",
    "subtract",
    "intersection_update",
    "difference_update",
    "symmetric_difference_update",
    "move_to_end",
    "fill",
    "put",
    "resize",
    "partition",
    "itemset",
    "byteswap",
    "setflags",
    "shuffle",
    "register_buffer",
    "register_parameter",
    "register_module",
    "add_module",
    "load_state_dict",
    "send",
    "throw",
    "close",
    "__setitem__",
    "__delitem__",
    "__setattr__",
    "__next__",
];

/// Whether a method changes its receiver: PyTorch's end in an underscore.
pub(super) fn changes(method: &str) -> bool {
    (method.ends_with('_') && !method.starts_with('_')) || CHANGING.contains(&method)
}

/// Methods that change nothing, on any object.
pub(super) fn harmless(library: &Library, method: &str) -> bool {
    const NAMES: [&str; 48] = [
        "backward",
        "parameters",
        "named_parameters",
        "modules",
        "named_modules",
        "children",
        "state_dict",
        "buffers",
        "train",
        "eval",
        "item",
        "tolist",
        "numpy",
        "cpu",
        "cuda",
        "to",
        "type",
        "float",
        "half",
        "bfloat16",
        "double",
        "long",
        "int",
        "bool",
        "keys",
        "values",
        "items",
        "get",
        "copy",
        "clone",
        "detach",
        "format",
        "join",
        "split",
        "strip",
        "lower",
        "upper",
        "startswith",
        "endswith",
        "replace",
        "index",
        "count",
        "size",
        "dim",
        "numel",
        "sparsity",
        "to_dense",
        "element_size",
    ];
    NAMES.contains(&method) || (library.is_method)(method)
}
