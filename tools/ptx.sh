#!/bin/sh
# ptx.sh: prints docs/ptx.md, the instructions that the emulator executes, from the tables that it
# reads. `ptx.sh --check`: compares the page with them.
set -eu
cd "$(dirname "$0")/.."

page() {
    cat <<'END'
# PTX on the emulator

`make ptx-page` writes this page from the tables in `emulator/`:
[opcodes.def](../emulator/text/opcodes.def), [modifiers.def](../emulator/text/modifiers.def),
[types.def](../emulator/text/types.def), [specials.def](../emulator/text/specials.def). An
instruction also needs types that PTX gives it; others are reported as not modelled before the run.
[emulator.md](emulator.md) describes what they do.

## Instructions
Operands are letters, explained below: `?` precedes optional ones, `/` separates forms. Words are
groups of the next table.

| instruction | operands | words |
|---|---|---|
END
    sed -e '/^#define/!b' -e 's/#define \([A-Z]*\) (\(.*\))/\1=\2/' emulator/text/opcodes.def |
        awk '
        /^[A-Z]+=/ { split($0, pair, "="); known[pair[1]] = pair[2]; next }
        /^OPCODE\(/ { row = "" }
        /^OPCODE\(/, /\)$/ {
            row = row $0
            if ($0 !~ /\)$/) next
            match(row, /"[^"]*"/)
            name = substr(row, RSTART + 1, RLENGTH - 2)
            rest = substr(row, RSTART + RLENGTH)
            match(rest, /"[^"]*"/)
            operands = substr(rest, RSTART + 1, RLENGTH - 2)
            groups = substr(rest, RSTART + RLENGTH + 1)
            sub(/, *pick_[a-z]*\)$/, "", groups)
            for (short in known) sub(short, known[short], groups)
            gsub(/[ |]+/, " ", groups)
            sub(/^ /, "", groups)
            if (groups == "0") groups = ""
            if (name !~ /^%/)
                printf "| `%s` | %s | %s |\n", name, operands == "" ? "" : "`" operands "`", \
                    tolower(groups)
        }' | LC_ALL=C sort
    cat <<'END'

| letter | operand |
|---|---|
END
    awk '/^ \* operands/ { in_list = 1; next }
         /^ \* pick/ { exit }
         in_list && match($0, /^ \*  +[^ ]/) {
             sub(/^ \*  +/, "")
             n = index($0, " ")
             # `S` or `w, x` or `W, E`
             if (match($0, /^([A-Za-z*], )*[A-Za-z*] /)) {
                 letters = substr($0, 1, RLENGTH - 1)
                 text = substr($0, RLENGTH + 1)
                 gsub(/[|]/, "\\|", text)
                 printf "| `%s` | %s |\n", letters, text
             }
         }' emulator/text/opcodes.def
    cat <<'END'

## Words after an opcode
Every instruction also takes types; words that begin with `L1::` or `L2::` are hints.

| group | words |
|---|---|
END
    awk -F'"' '/^(MODIFIER|FLAG)\(/ {
             split($3, part, /[ ,]+/)
             group = tolower(part[2])
             if (!(group in words)) order[++count] = group
             words[group] = words[group] (words[group] == "" ? "" : " ") "`." $2 "`"
         }
         END {
             words["shape"] = words["shape"] " `.m16n8k16` and other shapes"
             words["layout"] = words["layout"] " `.row` `.col`"
             for (i = 1; i <= count; i++) printf "| %s | %s |\n", order[i], words[order[i]]
         }' emulator/text/modifiers.def
    awk -F'"' '/^    \{"[a-z:]*", SPACE_/ { words = words " `." $2 "`" }
               END { printf "| space |%s |\n", words }' emulator/text/words.c
    printf '\n## Types\n'
    awk -F'"' '/^TYPE\(/ && $2 != "" { line = line (line == "" ? "" : " ") "`." $2 "`" }
               END { print line }' emulator/text/types.def | fold -s -w 99 | sed 's/ $//'
    printf '\n## Special registers\n'
    awk -F'"' '/^SPECIAL\(/ { line = line (line == "" ? "" : " ") "`" $2 "`" }
               END { print line }' emulator/text/specials.def | fold -s -w 99 | sed 's/ $//'
    awk -F'"' '/^    \{"%[a-z0-9_]*", T_/ { line = line (line == "" ? "" : " ") "`" $2 "`" }
               END { print line }' emulator/text/value.c | fold -s -w 99 | sed 's/ $//'
}

if [ "${1-}" = --check ]; then
    page | diff docs/ptx.md - >/dev/null && exit 0
    echo "docs/ptx.md is not what the tables say: make ptx-page"
    exit 1
fi
page
