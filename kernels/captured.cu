// The gradients of captured tensors after the backward pass, of their bins (bins.cuh). Behind backward.cuh and bins.cuh.
// Launch: a block for each 256 elements of a tensor.

extern "C" __global__ void __launch_bounds__(256) backward_captured(const __grid_constant__ BinSums sums) {
    const u64 element = u64(blockIdx.x) * 256 + threadIdx.x;
    if (element < sums.count) sums.total[element] += sum_of_bins(sums, int(element));
}
