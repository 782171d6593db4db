"""Progress on a terminal; nothing is written elsewhere."""

import sys

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
