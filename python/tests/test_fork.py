"""Processes that are forked: while a thread of the parent is in a call, in a handler of a signal,
and after the parent has used a GPU."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import fakes
import numpy as np
import pytest
from fakes import WithExchange

import pipec

COUNT = """kernel count(out Y: i32[N], n: i32) for sm_90a {
    grid (t: ceil(N, 128));
    role work: 4 warps {
        for t in grid {
            var x: i32 = 0;
            for k in 0 .. n { x = x + k % 7; }
            Y[t*128 + i] = x for i in 0 .. 128;
        }
    }
}"""

# A fork copies the locks of the sanitizer's allocator as another thread holds them; gcc 12's does
# not release them in the child, which then hangs in malloc.
threads = pytest.mark.skipif(
    not os.environ.get("PIPEC_BUILD", "").endswith("build/release"),
    reason="AddressSanitizer does not support a fork while another thread allocates")


@pytest.fixture(autouse=True)
def quiet():
    """Python 3.12 warns of each fork of a process with threads."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def in_child(work):
    """The status of a child that does the work, and is ended by a signal if it hangs"""
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitpid(child, 0)[1]


class Busy:
    """A thread is in a call of the kernel, on the emulator, while the body runs."""

    def __init__(self, kernel):
        self.kernel, self.stop, self.calls = kernel, False, 0
        self.thread = threading.Thread(target=self.work)

    def work(self):
        while not self.stop:
            self.kernel(20000, N=100)
            self.calls += 1

    def __enter__(self):
        self.thread.start()
        while self.calls < 1:
            time.sleep(0.001)
        return self

    def __exit__(self, *error):
        self.stop = True
        self.thread.join()


def right(kernel):
    assert kernel(5, N=200).tolist() == [10] * 200


@pytest.mark.parametrize("form", ["source", "image"])
@threads
def test_while_a_thread_calls(form, tmp_path):
    kernel = pipec.compile(COUNT)
    if form == "image":
        (tmp_path / "count.json").write_text(kernel._manifest())
        (tmp_path / "count.ptx").write_text(kernel.ptx)
        kernel = pipec.load_image(tmp_path / "count.json", tmp_path / "count.ptx")
    with Busy(kernel):
        for _ in range(10):
            assert in_child(lambda: right(kernel)) == 0
    right(kernel)


@threads
def test_child_of_a_child():
    kernel = pipec.compile(COUNT)

    def work():
        with Busy(kernel):
            assert in_child(lambda: right(kernel)) == 0
        right(kernel)

    with Busy(kernel):
        assert in_child(work) == 0


@threads
def test_all_that_uses_the_program():
    kernel = pipec.compile(COUNT)
    uses = [lambda: kernel.verify(5, N=3), lambda: kernel.report, lambda: kernel.manifest,
            lambda: kernel.ptx, lambda: kernel.on(0)(5, N=3), lambda: kernel.using()(5, N=3)]
    with Busy(kernel):
        for use in uses:
            assert in_child(use) == 0


@threads
def test_threads_of_the_child():
    kernel = pipec.compile(COUNT)

    def work():
        threads = [threading.Thread(target=right, args=[kernel]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with Busy(kernel):
        assert in_child(work) == 0


@threads
def test_kernels_are_dropped():
    kernels = [pipec.compile(COUNT)]

    def drop():
        kernels.clear()
        gc.collect()

    with Busy(kernels[0]):
        assert in_child(drop) == 0


def test_in_a_handler_of_a_signal():
    """The child is in the handler, and so in the parent's call, which then ends in both."""
    kernel, children, first = pipec.compile(COUNT), [], os.getpid()

    def fork(number, frame):
        if not children:
            children.append(os.fork())
            signal.alarm(0 if children[0] else 60)
            if children[0] == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                right(kernel)

    last = signal.signal(signal.SIGALRM, fork)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        ended = kernel(30000, N=1000).tolist() == [sum(k % 7 for k in range(30000))] * 1000
        if os.getpid() != first:
            right(kernel)
            os._exit(0 if ended else 2)
    except BaseException:
        if os.getpid() != first:
            os._exit(1)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, last)
    assert ended and len(children) == 1, "the run was too short to be interrupted"
    assert os.waitpid(children[0], 0)[1] == 0


def vectors():
    return (WithExchange(np.arange(5, dtype=np.float32), 0),
            WithExchange(np.ones(5, np.float32), 0))


def test_after_a_gpu_was_used(example):
    """An exception, and no function of the driver is called; host arrays still run."""
    axpy, fresh = example("axpy"), pipec.compile(COUNT)
    axpy(*vectors(), 2.0)

    def work():
        launches = fakes.standin().launches
        for use in (lambda: axpy(*vectors(), 2.0), lambda: axpy.prepare(0),
                    lambda: axpy.tune(*vectors(), 2.0)):
            with pytest.raises(RuntimeError, match="was forked from one that has used a GPU"):
                use()
        assert fakes.standin().launches == launches
        X, Y = np.ones(5, np.float32), np.ones(5, np.float32)
        axpy(X, Y, 2.0)
        assert Y.tolist() == [3] * 5
        right(fresh)

    assert in_child(work) == 0
    axpy(*vectors(), 2.0)


FIRST_IN_THE_CHILD = """
import os, sys
sys.path.insert(0, "python/tests")
import fakes, numpy as np, pipec
axpy = pipec.load("examples/axpy.pipe")
child = os.fork()
X, Y = (fakes.WithExchange(np.ones(5, np.float32), 0) for _ in range(2))
with fakes.executing(fakes.axpy):
    axpy(X, Y, 2.0)
assert Y.of.tolist() == [3] * 5
if child: assert os.waitpid(child, 0)[1] == 0
"""


def test_first_use_of_a_gpu_in_the_child():
    subprocess.run([sys.executable, "-c", FIRST_IN_THE_CHILD], check=True, timeout=60)
