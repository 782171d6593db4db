"""Progress on a terminal; nothing is written elsewhere."""

import sys
import time

_FIRST = 1  # second of an emulated call without a line


def _is_terminal():
    return sys.stderr is not None and sys.stderr.isatty()


def emulating(name, part, seconds):
    """Draws the line of an emulated call, of which a part is done; -1: removes it. Returns whether
    there is a line."""
    if part < 0:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        return False
    if seconds < _FIRST or not _is_terminal():
        return False
    left = f", about {seconds * (1 - part) / part:.0f} s left" if part > 0.01 else ""
    print(f"\r{name}: emulating, {100 * part:.0f} % in {seconds:.0f} s{left}\x1b[K", end="",
          file=sys.stderr, flush=True)
    return True


def bar(name):
    """Draws how many of some steps are done, or None where there is no terminal."""
    if not _is_terminal():
        return None

    def draw(done, of):
        full = 30 * done // of
        end = "\n" if done == of else ""
        print(f"\r{name}: [{'#' * full}{' ' * (30 - full)}] {done}/{of}", end=end,
              file=sys.stderr, flush=True)

    return draw


class Steps:
    """The steps of tune(): next() tells whether it goes on, after the function of the caller, or a
    line on a terminal, has shown them."""

    def __init__(self, name, seconds, progress):
        self._name, self._progress = name, progress
        self._end = time.monotonic() + seconds if seconds > 0 else None
        self._shown = False

    def next(self, what, done, of):
        if callable(self._progress):
            self._progress(what, done, of)
        elif self._progress is None and _is_terminal():
            print(f"\r{self._name}: {what}, {done} of {of}\x1b[K", end="", file=sys.stderr,
                  flush=True)
            self._shown = True
        is_first = what == "checking" and done == 0  # without it there would be no result
        return self._end is None or is_first or time.monotonic() < self._end

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
