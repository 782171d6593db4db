"""`random_bits` and `random` on a GPU: the published vector, the emulator's bits, and Triton's."""

import numpy
import pytest
import torch

import pipec

TEXT = """
kernel draw(seed: i64, first: i64, out Bits: i32[N], out Numbers: f32[N]) for sm_90a {
    ensures { Bits[i] == i32(random_bits(seed, first + i));  Numbers[i] == random(seed, first + i); }
    example N = 1000, seed = 42, first = 0;
    const T = 1024;
    grid (t: ceil(N, T));
    role work: 4 warps {
        for t in grid {
            Bits[t*T + i] = i32(random_bits(seed, first + (t*T + i))) for i in 0 .. T;
            Numbers[t*T + i] = random(seed, first + (t*T + i)) for i in 0 .. T;
        }
    }
}
"""
# Seeds are of 64 bits; Triton's positions of 32
SEEDS = [0, 1, 42, 0x7FFFFFFF, 0x80000000, 0x123456789ABCDEF, -1, -(2**63), 2**63 - 1]
FIRST = [0, 1, 12345, 2**31 - 70000]


@pytest.fixture(scope="module")
def draw():
    return pipec.compile(TEXT)


def drawn(draw, seed, first, n):
    bits = torch.empty(n, dtype=torch.int32, device="cuda")
    numbers = torch.empty(n, dtype=torch.float32, device="cuda")
    draw(seed=seed, first=first, Bits=bits, Numbers=numbers)
    return bits, numbers


def emulated(draw, seed, first, n):
    bits, numbers = numpy.empty(n, numpy.int32), numpy.empty(n, numpy.float32)
    draw(seed=seed, first=first, Bits=bits, Numbers=numbers)
    return torch.from_numpy(bits), torch.from_numpy(numbers)


def same(x, y):
    return torch.equal(x.cpu().view(torch.int32), y.cpu().view(torch.int32))


def test_published_vector(draw):
    bits, _ = drawn(draw, 0, 0, 1)
    assert bits.item() & 0xFFFFFFFF == 0x6627E8D5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("first", FIRST + [2**32 - 500, 2**40, -7])
def test_as_the_emulator(draw, seed, first):
    for on_gpu, on_host in zip(drawn(draw, seed, first, 1500), emulated(draw, seed, first, 1500)):
        assert same(on_gpu, on_host)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("first", FIRST)
def test_as_triton(draw, seed, first):
    pytest.importorskip("triton")
    import triton_random

    n, block = 1_000_003 if first == 0 else 65536, 1024
    bits = torch.empty(n, dtype=torch.int32, device="cuda")
    numbers = torch.empty(n, dtype=torch.float32, device="cuda")
    triton_random.draw[(-(-n // block),)](bits, numbers, seed, first, n, BLOCK=block)
    own_bits, own_numbers = drawn(draw, seed, first, n)
    assert same(own_bits, bits) and same(own_numbers, numbers)
    assert 0 <= own_numbers.min() and own_numbers.max() < 1
    assert abs(own_numbers.double().mean() - 0.5) < 0.01
