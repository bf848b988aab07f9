//! What lists hand to kernels, word by word: units of a backward launch, and pieces of a forward launch.
//!
//! Invariant: a record's fields are its words in their order, as `backward.cuh` and `pipeline_sm90.cuh` read them. Must not know how
//! records are made.

/// A unit of a backward launch: query tiles that see one key tile of one kv head.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub batch: u32,
    pub kv_head: u32,
    /// The key tile.
    pub tile: u32,
    /// Query tiles that the unit walks, of all heads of the group.
    pub count: u32,
}

impl Item {
    /// No unit: a block that finds it is done.
    pub(crate) const NONE: Item = Item { batch: 0, kv_head: 0, tile: 0, count: u32::MAX };

    /// Batch entry, kv head and key tile: the same for all parts of an item.
    pub(crate) fn place(&self) -> [u32; 3] {
        [self.batch, self.kv_head, self.tile]
    }

    /// Whether it is a unit.
    #[cfg(test)]
    pub(crate) fn is_unit(&self) -> bool {
        self.count != u32::MAX
    }
}

/// What a unit is of its item.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The item's query tiles that come before.
    pub first: u32,
    /// Where the parts of the item add their sums.
    pub slot: u32,
    /// Parts of the item; 1 for a whole one.
    pub parts: u32,
    /// Its number among them.
    pub index: u32,
}

impl Part {
    /// A whole item.
    pub(crate) const WHOLE: Part = Part { first: 0, slot: 0, parts: 1, index: 0 };
}

/// A share of a query tile's keys.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The tile's unit.
    pub unit: u32,
    /// The row of the lists that has these keys.
    pub row: u32,
    /// Its place among all pieces.
    pub part: u32,
    /// The place of the tile's first piece.
    pub first: u32,
    /// Pieces of the tile.
    pub pieces: u32,
}

/// A record of words.
pub(crate) trait Record: Copy {
    /// Its words in order.
    type Words: AsRef<[u32]>;
    /// As words.
    fn words(self) -> Self::Words;
}

impl Record for Item {
    type Words = [u32; 4];
    fn words(self) -> [u32; 4] {
        [self.batch, self.kv_head, self.tile, self.count]
    }
}

impl Record for Part {
    type Words = [u32; 4];
    fn words(self) -> [u32; 4] {
        [self.first, self.slot, self.parts, self.index]
    }
}

impl Record for Piece {
    type Words = [u32; 5];
    fn words(self) -> [u32; 5] {
        [self.unit, self.row, self.part, self.first, self.pieces]
    }
}

/// Records as a kernel reads them.
pub(crate) fn words<R: Record>(records: &[R]) -> Vec<u32> {
    let mut words = Vec::with_capacity(size_of_val(records) / size_of::<u32>());
    records.iter().for_each(|record| words.extend_from_slice(record.words().as_ref()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_fields_in_their_order() {
        let item = Item { batch: 1, kv_head: 2, tile: 3, count: 4 };
        let part = Part { first: 5, slot: 6, parts: 7, index: 8 };
        let piece = Piece { unit: 9, row: 10, part: 11, first: 12, pieces: 13 };
        assert_eq!(words(&[item, Item::NONE]), [1, 2, 3, 4, 0, 0, 0, u32::MAX]);
        assert_eq!(words(&[part, Part::WHOLE]), [5, 6, 7, 8, 0, 0, 1, 0]);
        assert_eq!(words(&[piece]), [9, 10, 11, 12, 13]);
    }
}
