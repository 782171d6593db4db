#!/bin/sh
# format.sh [--write]: fails if clang-format would change a C file, or if a line of the sources has
# more than 100 characters. --write: formats the C files first. Other versions of clang-format than
# that of Debian 12 break lines elsewhere: with them only the length of lines is tested.
set -u
cd "$(dirname "$0")/.."
version=14
files() { find . -name build -prune -o -name .git -prune -o -type f \( "$@" \) -print | sort; }
sources=$(files -name '*.[ch]')
others="$(files -name '*.[yl]' -o -name '*.def' -o -name '*.sh') Makefile .ci/run bench/run"
status=0

have=$(clang-format --version 2>/dev/null | sed 's/.*version \([0-9]*\).*/\1/')
if [ "$have" = $version ]; then
    # shellcheck disable=SC2086
    [ "${1:-}" != --write ] || clang-format -i $sources
    # shellcheck disable=SC2086
    clang-format --dry-run -Werror $sources || status=1
else
    echo "format: SKIPPED, clang-format is not version $version but ${have:-not installed}"
fi

# shellcheck disable=SC2086
if LC_ALL=C.UTF-8 grep -n '.\{101,\}' $sources $others; then
    echo "format: these lines have more than 100 characters"
    status=1
fi
exit $status
