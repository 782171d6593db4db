"""The random numbers of Triton, to compare those of Pipe with them."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed", "first"])
def draw(bits, numbers, seed, first, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = first + i
    tl.store(bits + i, tl.randint(seed, at).to(tl.int32, bitcast=True), mask=i < n)
    tl.store(numbers + i, tl.rand(seed, at), mask=i < n)
