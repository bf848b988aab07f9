//! Prints graphs as text.
//!
//! Invariant: the printed text is Python with the meaning of the graph, with only the parentheses that Python needs.
//! Must not know where the text goes.

mod expression;
mod names;
mod narrow;
mod python;

pub use self::expression::expression;
pub use self::names::{Names, is_reserved};
pub use self::narrow::{Ranges, any_range};
pub use self::python::function;
