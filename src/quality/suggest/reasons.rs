//! What kind of mask a proposal is, and why it looks as it does: facts.
//!
//! Invariant: the English words of each stand here alone; a document's name and text have them. Must not know languages, nor how forms
//! are found.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a proposal: its short name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A window and the first keys.
    WindowSinks,
    /// Columns and diagonals of blocks.
    ColumnsDiagonals,
    /// Keys and distances.
    KeysDistances,
    /// A box around each query.
    Box,
    /// Tiles around each tile.
    Tiles,
    /// Stripes that become narrower with distance.
    Radial,
    /// Few lists for many heads.
    HeadGroups,
    /// A mask for each head or group, under one budget.
    Budget,
    /// The fewest blocks of a row with a share of its mass.
    TopP,
    /// So many blocks of each row.
    TopK,
    /// Both together.
    TopEither,
    /// The largest blocks of all heads and rows.
    Global,
    /// One list for all heads.
    OneList,
    /// A list of blocks, as a part of a proposal.
    List,
    /// No mask, as a part of a proposal.
    Everything,
    /// What a router of this name picked.
    Router(String),
}

/// Why a proposal looks as it does. Shares are of the mass, 1 is all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is a part of a proposal.
    Part,
    /// A window keeps a share.
    Window {
        /// Keys up to the query, or before it.
        reach: Reach,
        /// What the window keeps.
        #[serde(with = "crate::base::float")]
        near: f64,
        /// How many first keys, and what they keep outside of the window.
        first: Option<First>,
    },
    /// The columns and diagonals with the most mass per block.
    Columns {
        /// How many columns.
        columns: usize,
        /// How many diagonals.
        diagonals: usize,
    },
    /// So many keys and distances keep the mass.
    Keys {
        /// How many keys.
        keys: usize,
        /// How many distances.
        distances: usize,
    },
    /// A box around each query keeps a share.
    Box {
        /// Frames, rows and columns.
        extents: [usize; 3],
        /// What it keeps.
        #[serde(with = "crate::base::float")]
        mass: f64,
    },
    /// Tiles around each tile keep a share.
    Tiles {
        /// Tiles each way.
        kernel: [usize; 3],
        /// Tokens of a tile.
        tile: [usize; 3],
        /// What they keep.
        #[serde(with = "crate::base::float")]
        mass: f64,
    },
    /// Stripes keep a share.
    Radial {
        /// Tokens on either side.
        width: usize,
        /// Frames after which it halves.
        halving: usize,
        /// What they keep.
        #[serde(with = "crate::base::float")]
        mass: f64,
    },
    /// Heads with mass in the same blocks share a list.
    HeadGroups {
        /// How many lists.
        lists: usize,
        /// For how many heads.
        heads: usize,
    },
    /// Each of so many heads has its own mask.
    BudgetOfHeads(usize),
    /// Each of so many groups has its own mask.
    BudgetOfGroups(usize),
    /// The fewest blocks of each row with a share of its mass.
    TopP(#[serde(with = "crate::base::float")] f64),
    /// So many blocks of each row.
    TopK(usize),
    /// So many, and those with a share.
    TopEither(usize, #[serde(with = "crate::base::float")] f64),
    /// The largest blocks of all heads and rows.
    Global,
    /// One list for all heads.
    OneList,
    /// What a router of this name picked.
    Router(String),
}

/// Where the keys of a window are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// So many up to the query.
    Last(usize),
    /// So many before it and after it.
    Around(usize, usize),
}

/// What first keys keep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct First {
    /// How many.
    pub keys: usize,
    /// What they keep outside of the window.
    #[serde(with = "crate::base::float")]
    pub more: f64,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::WindowSinks => "window + sinks",
            Kind::ColumnsDiagonals => "columns + diagonals",
            Kind::KeysDistances => "keys + distances",
            Kind::Box => "box on the grid",
            Kind::Tiles => "tiles on the grid",
            Kind::Radial => "radial stripes",
            Kind::HeadGroups => "few head groups",
            Kind::Budget => "heads under one budget",
            Kind::TopP => "block top-p",
            Kind::TopK => "block top-k",
            Kind::TopEither => "top-k or top-p",
            Kind::Global => "global top blocks",
            Kind::OneList => "one block list",
            Kind::List => "block list",
            Kind::Everything => "everything",
            Kind::Router(name) => return write!(f, "router {name}"),
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |of: &[usize; 3]| of.map(|n| n.to_string()).join(" x ");
        match self {
            Reason::Part => Ok(()),
            Reason::Window { reach, near, first } => {
                match reach {
                    Reach::Last(keys) => write!(f, "the last {keys} keys")?,
                    Reach::Around(before, after) => write!(f, "{before} keys before and {after} after")?,
                }
                write!(f, " keep {:.1}% of the mass", 100.0 * near)?;
                match first {
                    None => Ok(()),
                    Some(First { keys: 1, more }) => write!(f, ", the first key {:.1}% more", 100.0 * more),
                    Some(First { keys, more }) => write!(f, ", the first {keys} keys {:.1}% more", 100.0 * more),
                }
            }
            Reason::Columns { columns, diagonals } => {
                write!(f, "the {columns} columns and {diagonals} diagonals of blocks with the most mass per block")
            }
            Reason::Keys { keys, distances } => write!(f, "{keys} keys and {distances} distances keep the mass"),
            Reason::Box { extents: [frames, rows, columns], mass } => {
                write!(f, "{frames} frames, {rows} rows and {columns} columns around each query keep ")?;
                write!(f, "{:.1}% of the mass", 100.0 * mass)
            }
            Reason::Tiles { kernel, tile, mass } => {
                write!(f, "{} tiles of {} tokens around each tile keep ", joined(kernel), joined(tile))?;
                write!(f, "{:.1}% of the mass; no partial blocks if tokens are ordered tile by tile", 100.0 * mass)
            }
            Reason::Radial { width, halving, mass } => {
                write!(f, "{width} tokens on either side in the same frame, halved every {halving} frames, keep ")?;
                write!(f, "{:.1}% of the mass", 100.0 * mass)
            }
            Reason::HeadGroups { lists, heads } => {
                write!(f, "{lists} lists for {heads} heads: heads with mass in the same blocks share a list")
            }
            Reason::BudgetOfHeads(count) => {
                write!(f, "each of {count} heads has the mask with the least loss for its blocks, under one budget")
            }
            Reason::BudgetOfGroups(count) => {
                write!(f, "{count} groups of similar heads, each with the mask with the least loss for its blocks")
            }
            Reason::TopP(share) => write!(
                f,
                "in each row of blocks, the fewest blocks with {:.0}% of its mass, head by head",
                100.0 * share
            ),
            Reason::TopK(count) => {
                write!(f, "in each row of blocks, the {count} blocks with the most mass, head by head")
            }
            Reason::TopEither(count, share) => write!(
                f,
                "in each row of blocks, the {count} largest blocks and those with {:.0}% of its mass: flat rows keep enough, skewed rows keep more than their peak",
                100.0 * share
            ),
            Reason::Global => f.write_str(
                "the blocks with the most mass of all heads and rows: heads and rows that need fewer blocks leave more to others",
            ),
            Reason::OneList => {
                f.write_str("the blocks with the most mass over all heads, in one list for all heads")
            }
            Reason::Router(name) => {
                write!(f, "the blocks that {name} picked for these q and k; at run time it picks other blocks")
            }
        }
    }
}
