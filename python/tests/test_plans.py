"""Plans of operations, on the stand-in for the driver: a call is repeated with other arrays."""

import gc
import threading

import fakes
import numpy as np
import pytest
from fakes import WithCapsule, WithExchange, log

import pipec
from pipec import _pipec


def array(of, **facts):
    return WithExchange(np.asarray(of, np.float32), **{"device": 0, **facts})


def vector(count=1000, value=1.0):
    return array(np.full(count, value))


def make(count):
    log.allocated += 1
    return vector(count, 0)


def elsewhere(count):
    return array(np.zeros(count), device=1)


@pytest.fixture
def plans():
    return _pipec.plans("twice", {}, ())


@pytest.fixture
def known():
    """Plans of axpy in place, with the scalar of the first call or of each"""
    def make(example, known, conditions=(), results=(), new=(), varies=False, count=1000):
        plans = _pipec.plans("axpy", known, conditions)
        X, Y = vector(count), vector(count)
        with fakes.executing(fakes.axpy):
            result, launched = example("axpy")._record(X, Y, 2.0)
        assert result is None and np.array_equal(Y.of, np.full(count, 3.0))
        key = plans.run_with((), [X, Y])
        assert isinstance(key, bytes)
        known[key] = _pipec.plan(
            2, new, ((launched, (("X", 0, 0), ("Y", 1, 0)), (("a", 0),) if varies else ()),),
            results)
        return plans
    return make


def test_keys(plans):
    """Equal for calls whose tensors have the same facts; None where no plan can be"""
    memory = np.zeros((8, 40), np.float32)
    at = memory.ctypes.data % 16
    other = np.ones((9, 40), np.float32)
    first = plans.run(array(memory[:4, :16]), None, 1)
    assert first == plans.run(array(other[2:6, :16], data=memory.ctypes.data), None, 1)
    keys = [_pipec.plans("other", {}, ()).run(array(memory[:4, :16]), None, 1)] + [
        plans.run(*arguments) for arguments in (
            (array(memory[:4, :16]), None, 1.0), (array(memory[:4, :16]), None, True),
            (array(memory[:4, :16]), 1), (array(memory[:5, :16]), None, 1),
            (array(memory[:4, :16]), None, 1, None), (array(memory[:4, :16]), "1", 1),
            (array(memory[:4, :16]), None, -1), (array(memory[:4, :16].T), None, 1),
            (array(memory[:4, :32:2]), None, 1), (array(memory[:4, :16], device=1), None, 1),
            (WithExchange(memory[:4, :16].view(np.int32), 0), None, 1),
            (array(memory[:4, 1:17], data=memory.ctypes.data - at + 4), None, 1))]
    assert all(isinstance(key, bytes) for key in keys)
    assert len({first, *keys}) == 1 + len(keys)
    X = array(memory[:4, :16])
    for arguments in ((WithCapsule(memory, 0),), (memory,), ((1, 2),), (X, (1, 2)), (X, 2**70),
                      (None, 1), (X, array(memory, device=1)), (array(memory, device=None),),
                      (array(memory, data=0),)):
        assert plans.run(*arguments) is None


def test_long_keys(plans):
    arrays = [vector(10 + i) for i in range(200)]
    key = plans.run(*arrays)
    assert isinstance(key, bytes) and key == plans.run_with((), arrays)
    assert key != plans.run(*arrays[:-1]) and key != plans.run(*reversed(arrays))


def test_other_arrays(example, known):
    plans = known(example, {})
    with fakes.executing(fakes.axpy):
        for value in (1, 5, 9):
            X, Y = vector(1000, value), vector(1000, 1)
            assert plans.run(X, Y) == ()
            assert np.array_equal(Y.of, np.full(1000, 2.0 * value + 1))
        X = vector(1000, 3)
        assert isinstance(plans.run(X, vector(999)), bytes)


def test_scalars(example, known):
    plans = known(example, {}, varies=True)
    with fakes.executing(fakes.axpy):
        for a in (1.0, 3, -0.5):
            X, Y = vector(), vector()
            assert plans.run_with((a,), [X, Y]) == ()
            assert np.array_equal(Y.of, np.full(1000, a + 1))
    for scalars in ((), ("a",)):
        with pytest.raises((ValueError, TypeError)):
            plans.run_with(scalars, [X, Y])
    with pytest.raises(ValueError, match="there is no scalar 0"):
        plans.run(X, Y)


def test_results(example, known):
    """New tensors are made in each call, where the arguments are"""
    news = ((make, (1000,), make, (1000,), {}), (elsewhere, (8,), make, (8,), {}))
    plans = known(example, {}, results=((2, None), (1, None), (3, None)), new=news)
    log.allocated = 0
    X, Y = vector(), vector()
    first, same, other = plans.run(X, Y)
    assert same is Y and first.of.shape == (1000,) and other.of.shape == (8,)
    assert log.allocated == 2 and plans.run(X, Y)[0] is not first
    plans = known(example, {}, new=((elsewhere, (8,), elsewhere, (8,), {}),))
    with pytest.raises(RuntimeError, match="another device"):
        plans.run(X, Y)
    plans = known(example, {}, new=((make, (), make, (8,), {}),))
    with pytest.raises(TypeError):
        plans.run(X, Y)


def test_conditions(example, known):
    """A call that something sees is not repeated"""
    seen = []
    plans = known(example, {}, (((lambda x: len(seen)), (1,), 0),))
    X, Y = vector(), vector()
    launches = fakes.standin().launches
    assert plans.run(X, Y) == ()
    seen.append(1)
    assert plans.run(X, Y) is None
    seen.clear()
    assert plans.run(X, Y) == () and fakes.standin().launches == launches + 2
    plans = _pipec.plans(
        "axpy", {}, (((lambda: 1 / 0), (), 0),))
    with pytest.raises(ZeroDivisionError):
        plans.run(X, Y)


def test_plans_that_are_forgotten(example, known):
    """Also the one that ran last; and what has no plan is None"""
    table = {}
    plans = known(example, table)
    X, Y = vector(), vector()
    assert plans.run(X, Y) == () and plans.run(X, Y) == ()
    (key, plan), = table.items()
    table.clear()
    assert plans.run(X, Y) == key
    table[key] = None
    assert plans.run(X, Y) is None
    table[key] = plan
    assert plans.run(X, Y) == ()


def test_streams_and_launches(example, known):
    """The current stream of each call, and the way of the kernel's launches"""
    X, Y = vector(), vector()
    plans = known(example, {})
    log.streams_given = []
    plans.run(X, Y)
    assert fakes.standin().stream == log.stream and log.streams_given == [(fakes.CUDA, 0)]
    plans = known(lambda name: example(name).on(0x7000, programmatic=True), {})
    plans.run(X, Y)
    assert fakes.standin().stream == 0x7000 and fakes.standin().programmatic


def test_freed_plans():
    """A plan keeps its kernel"""
    kernel = pipec.load("examples/axpy.pipe")
    _, launched = kernel._record(vector(), vector(), 2.0)
    modules = fakes.standin().modules
    plan = _pipec.plan(2, (), ((launched, (("X", 0), ("Y", 1)), ()),), ())
    del kernel, launched
    gc.collect()
    assert fakes.standin().modules == modules
    del plan
    gc.collect()
    assert fakes.standin().modules < modules


def test_wrong_plans(example):
    _, launched = example("axpy")._record(vector(), vector(), 2.0)
    for arguments in (
            (2, (), ((launched, (("Z", 0),), ()),), ()),
            (2, (), ((launched, (("X", 2),), ()),), ()),
            (2, (), ((launched, (("a", 0),), ()),), ()),
            (2, (), ((launched, (), (("X", 0),)),), ()),
            (2, (), ((None, (), ()),), ()), (2, (), (), ((2, None),)), (2, (), (), ((-1, None),)),
            (2, (), ((launched, (("X", -1),), ()),), ()), (2, ((make,),), (), ()),
            (2, ((make, (1,), make, (1,), {}),) * 9, (), ())):
        with pytest.raises((ValueError, TypeError)):
            _pipec.plan(*arguments)


def test_host_arrays_are_not_recorded(example):
    X, Y = np.ones(5, np.float32), np.ones(5, np.float32)
    assert example("axpy")._record(X, Y, 2.0) == (None, None) and Y[0] == 3


def test_threads(example, known):
    """Eight threads repeat one plan, each with arrays and a scalar of its own"""
    plans = known(example, {}, varies=True)
    wrong = []

    def work(seed):
        for i in range(300):
            X, Y, a = vector(1000, seed), vector(1000, i), float(seed + i)
            if plans.run_with((a,), [X, Y]) != () or Y.of[0] != np.float32(i + a * seed):
                wrong.append((seed, i))

    with fakes.executing(fakes.axpy):
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
