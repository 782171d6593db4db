#!/bin/sh
# circles.sh FOLDER..: prints cycles of calls between the files of a folder and of its rooms. A file
# calls another if it names a function that the other defines (not `static`). Prints one cycle per
# line, with its files in alphabetical order; nothing if there is none. Exits with 0.
set -eu
for folder; do
    # shellcheck disable=SC2046
    awk '
    FNR == 1 { files[++count] = FILENAME }
    { gsub(/"([^"\\]|\\.)*"/, "\"\"") }
    # Comments may name functions
    { line = $0
      for (;;) {
          if (comment) {
              if (!(end = index(line, "*/"))) { line = ""; break }
              line = substr(line, end + 2); comment = 0
          }
          if (!(begin = index(line, "/*"))) break
          rest = substr(line, begin + 2)
          if ((end = index(rest, "*/"))) line = substr(line, 1, begin - 1) " " substr(rest, end + 2)
          else { line = substr(line, 1, begin - 1); comment = 1; break }
      } }
    line ~ /^[A-Za-z]/ && line !~ /^(static|typedef|#)/ && line ~ /\(/ && line !~ /;[ \t]*$/ {
        name = line; sub(/\(.*/, "", name); sub(/.*[^A-Za-z0-9_]/, "", name); home[name] = FILENAME
    }
    { while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
          word = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
          said[FILENAME, word] = 1
      } }
    END {
        for (pair in said) {
            split(pair, part, SUBSEP)
            if (part[2] in home && home[part[2]] != part[1]) calls[part[1], home[part[2]]] = 1
        }
        for (k = 1; k <= count; k++)
            for (i = 1; i <= count; i++)
                for (j = 1; j <= count && (files[i], files[k]) in calls; j++)
                    if ((files[k], files[j]) in calls) calls[files[i], files[j]] = 1
        for (i = 1; i <= count; i++) {
            if (files[i] in done) continue
            circle = ""
            for (j = i; j <= count; j++)
                if ((files[i], files[j]) in calls && (files[j], files[i]) in calls) {
                    done[files[j]] = 1
                    if (j != i) circle = circle " " files[j]
                }
            if (circle != "") print files[i] circle
        }
    }' $(find "$folder" -name '*.c' | LC_ALL=C sort)
done
