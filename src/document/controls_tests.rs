//! Controls follow signature, docstring and document.
