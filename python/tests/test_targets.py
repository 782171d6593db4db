"""Kernels with several targets, on stand-ins for devices of different generations: an Ampere, a Hopper
and a Blackwell GPU in one process."""

import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pipec

TEXT = """kernel double(X: T[N], out Y: T[N]) for sm_90a, sm_80, sm_100a {
    ensures Y[i] ~ 2 * f32(X[i]) within 1e-2;
    example N = 1000;
    static T = f32 in {f32, bf16}, B = 128 in {128, 256};
    grid (t: ceil(N, B));
    role r: 4 warps { for t in grid { Y[t*B + i] = T(2 * X[t*B + i]) for i in 0 .. B; } }
}"""

# Each device gets its own target, for either type, in any order; what is kept of one is no other's
DEVICES = """
import sys
import fakes, numpy as np, pipec
from fakes import WithExchange

standin = fakes.standin()
WANTED = {0: "sm_80", 1: "sm_90a", 2: "sm_100a", 3: "sm_80"}

def use(kernel, wanted, order):
    for device in order:
        assert kernel.info(device)["target"] == wanted[device], (device, kernel.info(device))
        kernel(WithExchange(np.ones(1000, np.float32), device))
        assert standin.launched.decode() == wanted[device], (device, standin.launched)
        assert kernel.info(device)["target"] == wanted[device]
        kernel(WithExchange(np.ones(1000, np.uint16), device, 4))  # bf16
        assert standin.launched.decode() == wanted[device], (device, standin.launched)
        assert kernel.choose(WithExchange(np.ones(1000, np.float32), device)).candidates == 2

for order in ((0, 1, 2, 3), (3, 2, 1, 0)):
    use(pipec.compile(sys.argv[1]), WANTED, order)
    use(pipec.compile(sys.argv[1], target="sm_80"), dict.fromkeys(range(4), "sm_80"), order)
bundle = pipec.load_bundle(sys.argv[2])
for device in (2, 0, 1):
    assert bundle.info(device)["target"] == {0: "sm_80", 1: "sm_90a", 2: "sm_80"}[device]
    bundle(WithExchange(np.ones(1000, np.float32), device))
one = pipec.compile(sys.argv[1], target="sm_100a")
try:
    one(WithExchange(np.ones(1000, np.float32), 1))
    raise SystemExit("an sm_100a kernel ran on a Hopper GPU")
except pipec.Unusable as error:
    assert "device 1 cannot run sm_100a, which needs compute capability exactly 10.0" in str(error)
two = pipec.compile(sys.argv[1].replace("sm_80", "sm_103a"))
try:
    two(WithExchange(np.ones(1000, np.float32), 0))
    raise SystemExit("it ran on an Ampere GPU")
except pipec.Unusable as error:
    assert "or sm_103a, which needs compute capability exactly 10.3" in str(error)
"""


def test_each_device_has_its_target(tmp_path):
    tests = pathlib.Path(__file__).parent
    command = pathlib.Path(os.environ["PIPEC_BUILD"]) / "pipec"
    pipe = tmp_path / "double.pipe"
    pipe.write_text(TEXT.replace(", sm_100a", ""))
    subprocess.run([command, "build", pipe, "N=1000", "--bundle", tmp_path / "bundle"], check=True)
    paths = f"{os.environ['PYTHONPATH']}:{tests}"
    for words in ("", "driver=13000"):
        env = {**os.environ, "PYTHONPATH": paths, "PIPEC_CACHE": str(tmp_path / "cache"),
               "PIPEC_STANDIN": f"devices=4,capability=8.0:9.0:10.0:12.0,{words}"}
        done = subprocess.run([sys.executable, "-c", DEVICES, TEXT, tmp_path / "bundle"], env=env,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_target_is_an_argument():
    kernel = pipec.compile(TEXT)
    assert kernel.signature.endswith(" for sm_90a, sm_80, sm_100a")
    assert kernel.manifest["target"] == "sm_90a" and ".target sm_90a" in kernel.ptx
    older = kernel.using(target="sm_80", B=256)
    assert older.signature.endswith(" for sm_80") and older.manifest["target"] == "sm_80"
    assert older.using(B=128).manifest["target"] == "sm_80"
    assert pickle.loads(pickle.dumps(older)).manifest["target"] == "sm_80"
    assert pipec.compile(TEXT, target="sm_120a").manifest["target"] == "sm_120a"
    X = np.arange(1000, dtype=np.float32)
    for each in (kernel, older):
        assert np.array_equal(each(X), 2 * X)
        assert "right" in each.verify(X)
    with pytest.raises(pipec.Unusable, match="(?s)no target `sm_91`.*did you mean `sm_90`"):
        pipec.compile(TEXT, target="sm_91")
    with pytest.raises(pipec.Refused, match="(?s)`sm_80` has no .*was given in the place"):
        pipec.load("examples/gemm.pipe", target="sm_80")
    assert pipec.load("kernels:softmax", target="sm_100a").manifest["target"] == "sm_100a"
