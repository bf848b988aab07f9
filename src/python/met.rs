//! The sizes that a text itself asks a block mask for.
//!
//! Invariant: what the text does not say is None, never a guess. Must not know documents.

use crate::base::{BlockSize, Span};
use crate::python::value::{Args, Value, same};

/// B, H, Q_LEN, KV_LEN and BLOCK_SIZE of a call of create_block_mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextSizes {
    /// B; None: broadcast, or not known.
    pub batch: Option<usize>,
    /// H; None: broadcast, or not known.
    pub heads: Option<usize>,
    /// Q_LEN
    pub q_len: Option<usize>,
    /// KV_LEN
    pub kv_len: Option<usize>,
    /// BLOCK_SIZE
    pub block_size: Option<BlockSize>,
    /// Whether B, and whether H, was given as None or 1.
    pub broadcast: [bool; 2],
    /// Whether the mask was given as a bound method.
    pub method: bool,
    /// The place of the call.
    pub span: Span,
}

/// A call that was met, and the mask that it was given.
pub(crate) struct Met {
    pub mask: Value,
    pub sizes: TextSizes,
}

impl Met {
    /// Reads the arguments of `create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device, BLOCK_SIZE)`, or of create_mask.
    pub(crate) fn of(mask: Value, args: &Args, span: Span, blocks: bool) -> Met {
        let number = |value: Option<&Value>| {
            value.and_then(Value::as_int).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0)
        };
        let size = |at, name| number(args.get(at, name));
        let block = args.get(6, "BLOCK_SIZE").filter(|_| blocks);
        let block_size = block.and_then(|value| match value.as_items() {
            Some(pair) => match &pair[..] {
                [q, kv] => Some(BlockSize { q: number(Some(q))?, kv: number(Some(kv))? }),
                _ => None,
            },
            None => number(Some(value)).map(|n| BlockSize { q: n, kv: n }),
        });
        let (q_len, kv_len) = (size(3, "Q_LEN"), size(4, "KV_LEN"));
        let one = |at, name| matches!(args.get(at, name), Some(Value::None | Value::Int(1)));
        let broadcast = [one(1, "B"), one(2, "H")];
        let method = is_bound(&mask);
        Met {
            mask,
            sizes: TextSizes {
                batch: size(1, "B"),
                heads: size(2, "H"),
                q_len,
                kv_len,
                block_size,
                broadcast,
                method,
                span,
            },
        }
    }
}

impl Met {
    /// A mask that is given by its lists: their lengths are the sizes.
    pub(crate) fn of_lists(mask: Value, lengths: &Value, block: Option<&Value>, span: Span) -> Met {
        let number = |value: &Value| value.as_int().and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
        let pair = |value: &Value| match &value.as_items()?[..] {
            [a, b] => Some((number(a)?, number(b)?)),
            _ => None,
        };
        let (q_len, kv_len) = pair(lengths).unzip();
        let block_size = block.and_then(pair).map(|(q, kv)| BlockSize { q, kv });
        Met { mask, sizes: TextSizes { q_len, kv_len, block_size, span, ..TextSizes::default() } }
    }
}

/// A method of an object, which PyTorch counts with its `self`.
fn is_bound(mask: &Value) -> bool {
    match mask {
        Value::Method(_) => true,
        Value::Partial(partial) => matches!(&partial.function, Value::Builtin(name) if &**name == "method"),
        _ => false,
    }
}

/// The sizes for `mask`: of the last call with it, or those common to all calls.
pub(crate) fn sizes_for(met: &[Met], mask: &Value) -> Option<TextSizes> {
    if let Some(own) = met.iter().rev().find(|m| same(&m.mask, mask)) {
        return Some(own.sizes);
    }
    let (first, rest) = met.split_first()?;
    let plain = |s: TextSizes| TextSizes { span: Span::default(), ..s };
    rest.iter().all(|m| plain(m.sizes) == plain(first.sizes)).then_some(first.sizes)
}
