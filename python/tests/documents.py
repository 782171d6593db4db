"""The blocks of a page of the documentation: `python` runs in one namespace, block after block, and
a `text` block after it is what it prints (`..`: any text); `python,gpu` needs PyTorch and a GPU.
With a folder, a `pipe` block is saved there under the name in the first command of the `console`
block after it, which is how a reader of the page would save it."""

import contextlib
import io
import re
import warnings

BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.M | re.S)


def blocks(path):
    """[(language, text, line)]"""
    text = path.read_text(encoding="utf-8")
    return [(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in BLOCK.finditer(text)]


def same(shown, printed):
    """`..` in the shown text stands for any text of a line"""
    pattern = "[^\n]*".join(map(re.escape, shown.rstrip().split("..")))
    return re.fullmatch(pattern, printed.rstrip()) is not None


def run(path, languages, space, folder=None):
    printed = program = None
    for language, text, line in blocks(path):
        if language == "pipe":
            program = text
        elif language == "console" and program and folder:
            name = re.search(r"\w+\.pipe\b", text)
            if name:
                (folder / name[0]).write_text(program)
            program = None
        if language in languages:
            out = io.StringIO()
            code = compile("\n" * (line - 1) + text, str(path), "exec")
            with contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(code, space)
            printed = out.getvalue()
        elif language == "text" and printed is not None:
            assert same(text, printed), f"{path}:{line}: it prints\n{printed}"
            printed = None
        else:
            printed = None
