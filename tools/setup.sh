#!/bin/sh
# setup.sh [python]: checks for the tools of a build: a C compiler with its headers, flex and bison;
# with `python` also for those of the Python package and its tests, without which they are skipped.
# Installs missing ones with apt if that needs no question (root, or sudo without a password);
# otherwise prints what to install.
set -eu

missing=
compiler=${CC:-cc} # may be words: "ccache gcc"
if ! command -v "${compiler%% *}" >/dev/null 2>&1 || ! echo '#include <stdio.h>
int main(void) { return 0; }' | $compiler -x c -o /dev/null - 2>/dev/null; then
    missing="gcc libc6-dev"
fi
command -v "${FLEX:-flex}" >/dev/null 2>&1 || missing="$missing flex"
command -v "${BISON:-bison}" >/dev/null 2>&1 || missing="$missing bison"
needed=$missing
if [ "${1:-}" = python ] && command -v apt-get >/dev/null 2>&1; then
    ls /usr/include/python3.*/Python.h >/dev/null 2>&1 || missing="$missing python3-dev"
    for package in numpy pytest venv; do
        [ -e /usr/lib/python3/dist-packages/$package ] ||
            { [ $package = venv ] && ls -d /usr/lib/python3.*/ensurepip >/dev/null 2>&1; } ||
            missing="$missing python3-$package"
    done
fi
[ -n "$missing" ] || exit 0

say() { echo "setup: $*" >&2; }
as_root=
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        as_root=no
    fi
fi
if [ "$as_root" = no ] || ! command -v apt-get >/dev/null 2>&1; then
    [ -n "$needed" ] || { say "Python's tests need $missing"; exit 0; }
    say "a build needs a C compiler with its headers, flex and bison 3.8."
    say "Missing here:" $missing
    say "Install them, for example as root: apt-get install" $missing
    exit 2
fi
say "installing" $missing
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# quiet COMMAND..: prints its output only if it fails
quiet() {
    "$@" >"$log" 2>&1 </dev/null && return 0
    code=$?
    cat "$log" >&2
    say "failed with exit code $code: $*"
    exit 2
}
quiet $as_root apt-get update -qq
# shellcheck disable=SC2086  # a list of words
quiet $as_root apt-get install -y -qq --no-install-recommends $missing
