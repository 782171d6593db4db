"""Exceptions, and the diagnostics that they hold."""

import os
import sys
from collections import namedtuple  # typing.NamedTuple would double the time of the import


class Label(namedtuple("Label", "line column end_line end_column text file")):
    """A span of a file of the source: lines and columns count from 1, the end is exclusive."""

    __slots__ = ()


class Diagnostic(namedtuple("Diagnostic", "code severity message labels notes helps")):
    """One message of the compiler, of a launch or of a run. `code` is like "P0306", of which
    pipec.explain() shows the page; `severity` is "error", "warning", "note" or "incomplete";
    `labels` are places in the source, the primary one first; `notes` say why, `helps` how to
    correct it."""

    __slots__ = ()

    @property
    def line(self):
        """Line of the primary place; None: the message is not about the source."""
        return self.labels[0].line if self.labels else None


class Error(Exception):
    """A diagnostic of pipec. `diagnostics` are its parts, `text` is what a terminal shows."""

    def __init__(self, text, coloured=None, diagnostics=()):
        super().__init__(text)
        self.text = text
        self.coloured = coloured or text
        self.diagnostics = diagnostics

    def __str__(self):
        return "\n" + (self.coloured if _shown_in_colours() else self.text).rstrip()

    def _repr_html_(self):
        return html(self.coloured)

    def _render_traceback_(self):
        """Of IPython and notebooks: the lines to show instead of a traceback"""
        return [f"{type(self).__name__}:", *self.coloured.rstrip().splitlines()]


def warning(text, diagnostics):
    """The text of a compilation's diagnostics with one line for all notes"""
    import re  # here: it would add to the time of the import

    parts = re.split(r"\n+(?=(?:error|warning|note|incomplete)\[P\d{4}\])", text.rstrip())
    lines = {}
    for d in diagnostics:
        if d.severity == "note":
            lines.setdefault(d.code, []).append(str(d.line))
    notes = "; ".join(f"{code} at {'line' if len(at) == 1 else 'lines'} {', '.join(at)}"
                      for code, at in lines.items())
    kept = [part for part in parts if not part.startswith("note[")]
    return "\n\n".join(kept + [f"notes, in `kernel.diagnostics`: {notes}"] * bool(notes)) + "\n"


class Refused(Error):
    """The program is wrong, or a run found a hang, a race or a wrong result."""


class Unusable(Error, ValueError):
    """Wrong data, launch precondition or machine, or no memory."""


class CompilerBug(Error):
    """A bug in pipec; also PTX that pipec made and the driver rejects."""


class Incomplete(Error):
    """A verdict could not be decided. A program with a kernel can be accepted, by `accept` of
    load() and compile()."""


class CompileWarning(UserWarning):
    """A warning of the compiler."""


_BY_STATUS = {1: Refused, 2: Unusable, 3: CompilerBug, 4: Incomplete}


def diagnostics(items):
    """The tuples of the extension as Diagnostics."""
    return tuple(
        Diagnostic(code, severity, message, tuple(Label(*label) for label in labels), notes, helps)
        for code, severity, message, labels, notes, helps in items
    )


_ACCEPTED = "this verdict is accepted"  # begins a note of what `accept` has accepted (util/diag.c)


def make(status, text, coloured, items, acceptable):
    """The exception for a status of the library. `acceptable`: it has a kernel, which can be
    used."""
    items = diagnostics(items)
    if acceptable:
        codes = sorted({d.code for d in items
                        if d.severity == "incomplete" or any(_ACCEPTED in n for n in d.notes)})
        words = ", ".join(f'"{code}"' for code in codes)
        end = f"\n\nto use the kernel without the proof: pipec.load(.., accept=[{words}])\n"
        text, coloured = text.rstrip() + end, coloured.rstrip() + end
    return _BY_STATUS[status](text, coloured, items)


def _shown_in_colours():
    """True if the interpreter prints an exception that nothing caught to a terminal: then no
    function of the program is active, or the one of the standard library that prints it."""
    if "NO_COLOR" in os.environ or not getattr(sys.stderr, "isatty", bool)():
        return False
    try:
        caller = sys._getframe(2)
    except ValueError:
        return True
    return caller.f_globals.get("__name__") == "traceback"


_COLOURS = {"31": "#c00", "32": "#070", "33": "#850", "34": "#04a", "35": "#808", "36": "#077"}


def html(coloured):
    """Text with ANSI colours as HTML."""
    import html as escapes
    import re

    out, is_open = [], False
    for part in re.split(r"(\x1b\[[0-9;]*m)", coloured):
        if not part.startswith("\x1b["):
            out.append(escapes.escape(part))
            continue
        codes = part[2:-1].split(";")
        style = "font-weight:bold;" if "1" in codes else ""
        style += "".join(f"color:{_COLOURS[c]};" for c in codes if c in _COLOURS)
        if is_open:
            out.append("</span>")
        is_open = bool(style)
        if is_open:
            out.append(f'<span style="{style}">')
    return "<pre>" + "".join(out) + ("</span>" if is_open else "") + "</pre>"
