#!/bin/sh
# lint.sh BUILD_DIR: the format, static analysis if the tools are installed, and the longest
# functions and files.
set -u
B=$1
status=0
sh tools/format.sh || status=1
sources=$(find util lexer parser prog elaborate algebra flow derive check launch codegen reference \
    emulator runtime lib cli -name '*.c' | LC_ALL=C sort)
if command -v clang-tidy >/dev/null 2>&1; then
    checks='-*,bugprone-*,clang-analyzer-*,-bugprone-easily-swappable-parameters'
    checks="$checks,-bugprone-reserved-identifier,-clang-analyzer-security.insecureAPI.*"
    # shellcheck disable=SC2086
    clang-tidy --quiet --checks="$checks" \
        $sources -- -std=c11 -D_GNU_SOURCE -I. -I"$B" 2>/dev/null || status=1
else
    echo "lint: clang-tidy is not installed"
fi
if command -v cppcheck >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 -I. \
        -I"$B" $sources || status=1
else
    echo "lint: cppcheck is not installed"
fi
# shellcheck disable=SC2086
awk '
    FNR == 1 {
        if (file && length_of_file > 800) printf "%s: %d lines\n", file, length_of_file
        file = FILENAME
    }
    { length_of_file = FNR }
    /^[A-Za-z].*\) \{$/ { start = FNR; head = $0 }
    /^}/ && start {
        if (FNR - start > 60)
            printf "%s:%d: %d lines: %s\n", FILENAME, start, FNR - start, head
        start = 0
    }
    END { if (length_of_file > 800) printf "%s: %d lines\n", file, length_of_file }
' $sources
exit $status
