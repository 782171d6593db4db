"""Builds the wheel, for pip and `make wheel`: make links the extension, and what is left is a zip
file, so that a build needs no package of Python."""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILT = "build/release/python/pipec/_pipec.abi3.so"
PACKAGE = ROOT / "python" / "pipec"


def _version():
    header = (ROOT / "include" / "pipec.h").read_text(encoding="utf-8")
    return re.search(r'PIPEC_VERSION +"([^"]+)"', header)[1]


def _extension():
    """The extension, which `make wheel` has linked already and names in PIPEC_MODULE"""
    built = os.environ.get("PIPEC_MODULE")
    if built:
        return pathlib.Path(built)
    headers = pathlib.Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        sys.exit(f"{headers}/Python.h is missing, with which the extension is compiled: "
                 "install python3-dev")
    jobs = f"-j{os.cpu_count() or 1}"
    command = ["make", "-sC", str(ROOT), jobs, f"PYTHON={sys.executable}", BUILT]
    if subprocess.call(command, stdout=sys.stderr) != 0:
        sys.exit("pipec is not built: `make run` installs the tools that are missing")
    return ROOT / BUILT


def _files(info, tag):
    """(path in the wheel, content) of all files but the last, RECORD"""
    for file in sorted(PACKAGE.glob("*.py*")):
        yield f"pipec/{file.name}", file.read_bytes()
    yield "pipec/py.typed", b""
    yield "pipec/_pipec.abi3.so", _extension().read_bytes()
    yield f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes()
    yield f"{info}/METADATA", f"""Metadata-Version: 2.1
Name: pipec
Version: {_version()}
Summary: A compiler for Pipe, a small language for warp-specialised GPU kernels
License: Apache-2.0
Requires-Python: >=3.11
""".encode()
    yield f"{info}/WHEEL", f"""Wheel-Version: 1.0
Generator: pipec
Root-Is-Purelib: false
Tag: {tag}
""".encode()


def _record(path, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if sys.version_info < (3, 11):
        sys.exit("pipec needs Python 3.11 or later, not " + sys.version.split()[0])
    tag = "cp311-abi3-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    name, info = f"pipec-{_version()}-{tag}.whl", f"pipec-{_version()}.dist-info"
    record = ""
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w") as wheel:

        def write(path, content):  # without times: the same sources give the same wheel
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100644 << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)

        for path, content in _files(info, tag):
            write(path, content)
            record += _record(path, content)
        write(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("pipec is built from a clone of its repository")


if __name__ == "__main__":
    build_wheel(sys.argv[1])
