"""Cases of torch_ops.json: what changes shapes and moves elements. Imported by make_torch_ops.py, in its order."""

from torch_ops_case import A, cases

# shapes
cases("\n".join(A + line for line in """
r = a.shape
r = a.size()
r = a.size(-1)
r = a.size(5)
r = a.stride()
r = a.dim()
r = a.numel()
r = a.T
r = a.mT
r = a.reshape(4, -1)
r = a.view(-1)
r = a.view(5, -1)
r = a.view(-1, -1)
r = a.transpose(0, 2)
r = a.transpose(0, 2).view(-1)
r = a.transpose(0, 2).reshape(-1)
r = a.transpose(1, 2).view(2, 2, 2, 3)
r = a.permute(2, 0, 1)
r = a.permute((1, 0, 2)).stride()
r = a.permute(0, 1)
r = a.flatten()
r = a.flatten(1)
r = a.flatten(start_dim=0, end_dim=1)
r = a.unflatten(2, (2, -1))
r = a.unsqueeze(0).shape
r = a.unsqueeze(-1).shape
r = a.unsqueeze(5)
r = a[:1].squeeze().shape
r = a[:1].squeeze(0).shape
r = a.squeeze(1).shape
r = a[:, :1].expand(2, 3, 4)
r = a[:, :1].expand(-1, 5, -1).shape
r = a.expand(2, 2, 3, 4).stride()
r = a.expand(3, 3, 4)
r = a[0].repeat(2, 1)
r = a[0, 0].repeat(2, 2)
r = a.repeat(2)
r = a[0].tile(2)
r = torch.tile(a[0], (2, 1, 1))
r = a.repeat_interleave(2, dim=1)
r = torch.repeat_interleave(a[0, 0], 3)
r = torch.repeat_interleave(a[0, 0], torch.tensor([0, 2, 1, 3]))
r = torch.repeat_interleave(torch.tensor([2, 0, 3]))
r = torch.repeat_interleave(a[0], torch.tensor([1, 2, 0]), dim=0)
r = torch.repeat_interleave(a[0], torch.tensor([1, 2]), dim=0)
r = torch.roll(a[0], 1)
r = torch.roll(a, shifts=(1, -2), dims=(0, 2))
r = a.flip(0)
r = a.flip(0, -1)
r = torch.flip(a[0], dims=(1,))
r = a[0].rot90()
r = torch.cat([a[0], a[1]])
r = torch.cat([a[0], a[1]], dim=1)
r = torch.cat((a[0], a[0, :1].float()), 0)
r = torch.cat([torch.tensor([]), a[0, 0]])
r = torch.cat([a[0], a[0, :, :2]], dim=0)
r = torch.cat([])
r = torch.stack([a[0, 0], a[1, 0]])
r = torch.stack([a[0, 0], a[1, 0]], dim=1)
r = torch.stack([a[0, 0], a[1, 0], a[0, 1]], -1)
r = torch.hstack([a[0], a[1]])
r = torch.vstack([a[0, 0], a[0, 1]])
r = torch.split(a, 2, dim=1)
r = a.split([1, 2], 1)
r = a.split([1, 1], 1)
r = a.chunk(3, -1)
r = torch.chunk(a, 5, 1)
r = torch.tensor_split(a[0, 0], 3)
r = a.unbind(0)
r = a.movedim(0, -1).shape
r = a.narrow(1, 1, 2)
r = a.select(1, 2)
r = a.diagonal(0, 1, 2)
r = a[0].diagonal(1)
r = a[0, 0].unfold(0, 2, 1)
r = torch.broadcast_to(a[0, 0], (2, 4))
r = torch.outer(a[0, 0], a[0, 1])
r = torch.dot(a[0, 0], a[0, 1])
r = a[0] @ a[1].T
r = a[0].float() @ a[0, 0].float()
r = a @ a.transpose(1, 2)
r = a[0] @ a[1]
r = a[0] @ 2
r = torch.matmul(a[0, 0], a[0].T)
r = torch.mm(a[0], a[1].T)
r = torch.bmm(a, a.mT)
r = F.pad(a[0], (1, 2))
r = F.pad(a[0], (0, -1, 1, 0), value=9)
r = a.tolist()
r = a[0, 0, 0].item()
r = a.item()
r = a.contiguous().is_contiguous()
r = len(a)
r = torch.broadcast_shapes((2, 1), (3,))
r = a.ndim
r = a.dtype
r = a.float().dtype
""".strip().splitlines()))
