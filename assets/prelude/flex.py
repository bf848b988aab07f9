"""torch.nn.attention.flex_attention: block masks that are given by their lists."""
import torch


def _kinds(num_blocks, indices, columns):
    """Which of the columns of a row of blocks a list names."""
    entry = torch.arange(indices.shape[-1])
    listed = entry < num_blocks.unsqueeze(-1)
    # what follows the count means nothing: it goes to a column of its own
    to = torch.where(listed, indices.to(torch.int64), columns)
    marks = torch.zeros(tuple(indices.shape[:-1]) + (columns + 1,), dtype=torch.bool)
    return marks.scatter(-1, to, torch.ones_like(listed))[..., :columns]


def BlockMask__from_kv_blocks(kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, BLOCK_SIZE=128, mask_mod=None, seq_lengths=None, compute_q_blocks=True):
    if kv_indices.dim() < 2:
        raise RuntimeError("BlockMask must have at least 2 dimensions")
    if (full_kv_num_blocks is None) != (full_kv_indices is None):
        raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    while kv_indices.dim() < 4:
        kv_num_blocks, kv_indices = kv_num_blocks.unsqueeze(0), kv_indices.unsqueeze(0)
        if full_kv_indices is not None:
            full_kv_num_blocks, full_kv_indices = full_kv_num_blocks.unsqueeze(0), full_kv_indices.unsqueeze(0)
    if seq_lengths is None:
        seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])

    class BlockMask:
        """A block mask of lists. `effective` keeps what attention computes: the cells of listed blocks alone."""

        def __init__(self, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, BLOCK_SIZE, mask_mod, seq_lengths):
            self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
            self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
            self.BLOCK_SIZE, self.mask_mod, self.seq_lengths = BLOCK_SIZE, mask_mod, seq_lengths
            columns = kv_indices.shape[-1]
            partial = _kinds(kv_num_blocks, kv_indices, columns)
            full = torch.zeros_like(partial)
            if full_kv_num_blocks is not None:
                full = _kinds(full_kv_num_blocks, full_kv_indices, columns)
            listed_blocks = partial.to(torch.int8).masked_fill(full, 2)
            if listed_blocks.dim() != 4:
                raise ValueError("kv_indices must have at least 2 dimensions")
            batches, heads = listed_blocks.shape[0], listed_blocks.shape[1]

            def effective(b, h, q_idx, kv_idx):
                rows, cols = BLOCK_SIZE
                kind = listed_blocks[b if batches > 1 else 0, h if heads > 1 else 0, q_idx // rows, kv_idx // cols]
                if mask_mod is None:
                    return kind > 0
                return (kind == 2) | ((kind == 1) & mask_mod(b, h, q_idx, kv_idx))

            self.effective = effective
            (rows, cols), (q_len, kv_len) = BLOCK_SIZE, seq_lengths
            inside = listed_blocks[..., : -(-q_len // rows), : -(-kv_len // cols)]
            # for what is told of the mask that is traced
            self._blocks, self._left_out, self._place = inside.numel(), (inside == 0).sum().item(), place()

        @property
        def shape(self):
            return tuple(self.kv_indices.shape[:-2]) + tuple(self.seq_lengths)

        def to(self, device):
            return self

        def numel(self):
            total = 1
            for n in self.shape:
                total *= n
            return total

        def as_tuple(self, flatten=True):
            raise NotImplementedError("BlockMask.as_tuple() is not computed here: read the fields by their names")

        def to_dense(self):
            raise NotImplementedError("BlockMask.to_dense() is not computed here: Maskloom's picture shows it")

        def sparsity(self):
            raise NotImplementedError("BlockMask.sparsity() is not computed here: `maskloom blocks` prints it")

    return BlockMask(kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, size, mask_mod, seq_lengths)
