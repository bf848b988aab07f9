//! Imports: PyTorch's and Python's own modules are builtin names; others come as source, evaluated when first used.
//!
//! Invariant: a module is evaluated once; a missing module becomes a fault only when a name of it is used. Must not do
//! I/O.

use super::Context;
use crate::base::Span;
use crate::python::diagnose;
use crate::python::exports;
use crate::python::syntax::Name;
use crate::python::value::scope::Scope;
use crate::python::value::{Fault, ModuleValue, Value};
use std::rc::Rc;

/// First parts of dotted names that are builtin.
const BUILTIN: [&str; 29] = [
    "torch",
    "math",
    "functools",
    "typing",
    "typing_extensions",
    "collections",
    "dataclasses",
    "itertools",
    "operator",
    "random",
    "os",
    "sys",
    "abc",
    "enum",
    "warnings",
    "logging",
    "time",
    "copy",
    "contextlib",
    "types",
    "string",
    "numpy",
    "pathlib",
    "json",
    "re",
    "inspect",
    "argparse",
    "numbers",
    "__future__",
];

/// The names of `from typing import *`, as far as texts use them.
const TYPING: [&str; 24] = [
    "Any",
    "Callable",
    "ClassVar",
    "Dict",
    "Final",
    "Generator",
    "Generic",
    "Iterable",
    "Iterator",
    "List",
    "Literal",
    "Mapping",
    "NamedTuple",
    "Optional",
    "Protocol",
    "Sequence",
    "Set",
    "Tuple",
    "Type",
    "TypeVar",
    "TYPE_CHECKING",
    "Union",
    "cast",
    "overload",
];

/// Deepest chain of names imported from one another.
const MAX_CHAIN: usize = 16;

impl Context<'_> {
    pub(super) fn import(&mut self, names: &[(Name, Option<Name>)], scope: &Rc<Scope>) -> Result<(), Fault> {
        for (dotted, alias) in names {
            let first: Name = dotted.split('.').next().unwrap_or(dotted).into();
            let bound = alias.clone().unwrap_or_else(|| first.clone());
            let target = if alias.is_some() { dotted.clone() } else { first };
            self.check_in_try(dotted)?;
            scope.set(&bound, self.imported(target, None));
        }
        Ok(())
    }

    pub(super) fn import_from(
        &mut self,
        module: &Name,
        level: u32,
        names: &[(Name, Option<Name>, Span)],
        scope: &Rc<Scope>,
    ) -> Result<(), Fault> {
        let module: Name = if level == 0 { module.clone() } else { relative(module, level, scope).into() };
        self.check_in_try(&module)?;
        if self.trying > 0 && !is_builtin(&module) && !is_standard(&module) {
            self.check_names(&module, names)?;
        }
        for (name, alias, span) in names {
            if self.trying > 0 && !exports::may_exist(&format!("{module}.{name}")) {
                let fault = diagnose::unknown_attribute(&module, name, std::iter::empty());
                return Err(Fault { class: "ImportError".into(), ..fault.python() }.at(*span));
            }
            if &**name == "*" {
                self.import_all(&module, scope).map_err(|f| f.at(*span))?;
                continue;
            }
            scope.set(alias.as_ref().unwrap_or(name), self.imported(module.clone(), Some(name.clone())));
        }
        Ok(())
    }

    /// Inside `try`, a module that is not there must fail at once, as the text expects.
    fn check_in_try(&mut self, module: &str) -> Result<(), Fault> {
        if self.trying == 0 || is_builtin(module) || is_standard(module) {
            return Ok(());
        }
        self.module(module).map(drop).map_err(|fault| if fault.fatal { fault } else { fault.python() })
    }

    /// Inside `try`, a name that a module does not have must fail at once too.
    fn check_names(&mut self, module: &Name, names: &[(Name, Option<Name>, Span)]) -> Result<(), Fault> {
        let found = self.module(module)?;
        for (name, _, span) in names.iter().filter(|(name, ..)| &**name != "*") {
            if found.scope.own(name).is_none() && self.module(&format!("{module}.{name}")).is_err() {
                let known = found.scope.names();
                let fault = diagnose::unknown_attribute(module, name, known.iter().map(|(n, _)| &**n));
                return Err(Fault { class: "ImportError".into(), ..fault.python() }.at(*span));
            }
        }
        Ok(())
    }

    fn imported(&self, module: Name, name: Option<Name>) -> Value {
        if !is_builtin(&module) {
            return Value::Import(Rc::new((module, name)));
        }
        let dotted = match (&*module, &name) {
            ("torch.nn.attention.flex_attention", Some(name)) => format!("flex.{name}"),
            // Python's own: typing.List is a type, math.pi a number
            (module, Some(name)) => format!("{module}.{name}"),
            (module, None) => module.to_string(),
        };
        self.patched(&dotted).or_else(|| (self.library.value)(&dotted)).unwrap_or_else(|| Value::Builtin(dotted.into()))
    }

    fn import_all(&mut self, module: &Name, scope: &Rc<Scope>) -> Result<(), Fault> {
        if &**module == "torch.nn.attention.flex_attention" {
            // its names are known without an import
            return Ok(());
        }
        if &**module == "typing" {
            for name in TYPING {
                scope.set(&name.into(), self.imported(module.clone(), Some(name.into())));
            }
            return Ok(());
        }
        if is_builtin(module) {
            return Err(Fault::unsupported(format!("`from {module} import *` is not supported here"))
                .hint("import the used names"));
        }
        let found = self.module(module)?;
        for (name, value) in found.scope.names() {
            if !name.starts_with('_') {
                scope.set(&name, value);
            }
        }
        Ok(())
    }

    /// The value of something imported.
    pub(super) fn resolve(&mut self, module: &Name, name: Option<&Name>) -> Result<Value, Fault> {
        let Some(name) = name else {
            // a package may be there only as the folder around its modules
            return match self.module(module) {
                Ok(found) => Ok(Value::Module(found)),
                Err(fault) if fault.fatal => Err(fault),
                Err(fault) => {
                    if self.sources.len() > 512 {
                        return Err(fault);
                    }
                    let scope = Scope::new(python::value::scope::Kind::Module, None);
                    Ok(Value::Module(Rc::new(ModuleValue { name: module.clone(), scope })))
                }
            };
        };
        if let Ok(Some(found)) = self.cached(module) {
            return self.module_attribute(module, Some(&found.scope.clone()), name);
        }
        let found = self.module(module);
        match found {
            Ok(found) => self.module_attribute(module, Some(&found.scope.clone()), name),
            Err(fault) if fault.fatal => Err(fault),
            Err(fault) => match self.module(&format!("{module}.{name}")) {
                Ok(found) => Ok(Value::Module(found)),
                Err(_) => Err(fault),
            },
        }
    }

    /// `module.name`: bound in it, or a module below it.
    pub(super) fn module_attribute(
        &mut self,
        module: &Name,
        scope: Option<&Rc<Scope>>,
        name: &Name,
    ) -> Result<Value, Fault> {
        let mut own = scope.and_then(|s| s.own(name));
        for _ in 0..MAX_CHAIN {
            match own {
                Some(Value::Import(import)) if import.1.is_some() => {
                    let found = self.module(&import.0);
                    let wanted = import.1.clone().unwrap_or_else(|| name.clone());
                    own = match found {
                        Ok(found) => found.scope.own(&wanted),
                        Err(fault) => return Err(fault),
                    };
                    if own.is_none() {
                        return self.below(&import.0, &wanted, None);
                    }
                }
                Some(value) => return self.usable(value),
                None => break,
            }
        }
        self.below(module, name, scope)
    }

    fn below(&mut self, module: &Name, name: &Name, scope: Option<&Rc<Scope>>) -> Result<Value, Fault> {
        match self.module(&format!("{module}.{name}")) {
            Ok(found) => Ok(Value::Module(found)),
            Err(fault) if fault.fatal => Err(fault),
            Err(_) => {
                let known = scope.map(|s| s.names()).unwrap_or_default();
                let fault = diagnose::unknown_attribute(module, name, known.iter().map(|(n, _)| &**n));
                // the names of a missing module are unknown
                match self.cached(module) {
                    Ok(Some(_)) => Err(fault.python()),
                    _ => Err(self.module(module).err().unwrap_or(fault)),
                }
            }
        }
    }

    fn cached(&self, dotted: &str) -> Result<Option<Rc<ModuleValue>>, Fault> {
        match self.modules.get(dotted) {
            Some(Some(found)) => Ok(Some(found.clone())),
            Some(None) => Err(diagnose::unknown_module(dotted)),
            None => Ok(None),
        }
    }

    /// A module by its dotted name, evaluated now if it was not yet.
    fn module(&mut self, dotted: &str) -> Result<Rc<ModuleValue>, Fault> {
        if let Some(found) = self.cached(dotted)? {
            return Ok(found);
        }
        if let Some(file) = python::prelude::module(dotted) {
            let found = Rc::new(ModuleValue { name: dotted.into(), scope: self.shipped_file(file)? });
            self.modules.insert(dotted.to_string(), Some(found.clone()));
            return Ok(found);
        }
        let Some(source) = (self.load)(dotted) else {
            self.modules.insert(dotted.to_string(), None);
            return Err(diagnose::unknown_module(dotted));
        };
        let skipped = self.skipped.len();
        let outcome = self.deeper(|cx| Ok(cx.run_source(source, dotted, Vec::new())))?;
        // failures in other modules are reported only if their names are used
        self.skipped.truncate(skipped);
        outcome.map_err(|mut errors| {
            let first = if errors.is_empty() { None } else { Some(errors.swap_remove(0)) };
            first.map_or_else(|| diagnose::unknown_module(dotted), |d| Fault { fatal: true, ..Fault::from(d) })
        })?;
        self.cached(dotted)?.ok_or_else(|| diagnose::unknown_module(dotted))
    }
}

/// Modules of Python's own library that are not known here, but that every Python has.
const STANDARD: [&str; 66] = [
    "array",
    "ast",
    "asyncio",
    "atexit",
    "base64",
    "bisect",
    "builtins",
    "bz2",
    "calendar",
    "cmath",
    "concurrent",
    "configparser",
    "contextvars",
    "copyreg",
    "csv",
    "ctypes",
    "datetime",
    "decimal",
    "difflib",
    "dis",
    "errno",
    "fractions",
    "gc",
    "getpass",
    "glob",
    "graphlib",
    "gzip",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "http",
    "importlib",
    "io",
    "ipaddress",
    "itertools",
    "keyword",
    "locale",
    "lzma",
    "multiprocessing",
    "pdb",
    "pickle",
    "pkgutil",
    "platform",
    "pprint",
    "queue",
    "secrets",
    "select",
    "shelve",
    "shlex",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "statistics",
    "struct",
    "subprocess",
    "tempfile",
    "textwrap",
    "threading",
    "timeit",
    "tomllib",
    "traceback",
    "unicodedata",
    "uuid",
    "weakref",
];

fn is_standard(dotted: &str) -> bool {
    STANDARD.contains(&dotted.split('.').next().unwrap_or(dotted))
}

/// Libraries that draw, print or measure, and do not change their arguments.
pub(super) fn is_pure_library(dotted: &str) -> bool {
    const PURE: [&str; 14] = [
        "matplotlib",
        "seaborn",
        "plotly",
        "tabulate",
        "tqdm",
        "wandb",
        "rich",
        "loguru",
        "pytest",
        "prettytable",
        "IPython",
        "termcolor",
        "colorama",
        "fire",
    ];
    PURE.contains(&dotted.split('.').next().unwrap_or(dotted))
}

/// Libraries whose decorators check or compile a function, and do not change its results.
pub(super) fn only_checks(dotted: &str) -> bool {
    const CHECKING: [&str; 7] = ["beartype", "jaxtyping", "typeguard", "numba", "triton", "nvtx", "overrides"];
    CHECKING.contains(&dotted.split('.').next().unwrap_or(dotted))
}

fn is_builtin(dotted: &str) -> bool {
    let first = dotted.split('.').next().unwrap_or(dotted);
    BUILTIN.contains(&first)
}

/// The dotted name that a relative import means.
fn relative(module: &str, level: u32, scope: &Rc<Scope>) -> String {
    let globals = scope.module();
    let own = globals.own("__name__").and_then(|v| v.as_str().map(str::to_string)).unwrap_or_default();
    let is_package = matches!(globals.own("__package__"), Some(Value::Bool(true)));
    let mut parts: Vec<&str> = own.split('.').collect();
    for _ in 0..level - u32::from(is_package) {
        parts.pop();
    }
    if !module.is_empty() {
        parts.push(module);
    }
    parts.join(".")
}
