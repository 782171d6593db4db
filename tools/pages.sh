#!/bin/sh
# pages.sh DIR: converts the pages DIR/PNNNN.md to C, for `pipec explain`. Prints the definitions of
# explain_pages and explain_page_count (util/util.h). Texts are arrays of characters, because C
# guarantees string literals only up to 4095 bytes.
set -eu
echo '#include "util/util.h"'
count=0
rows=
for page in "$1"/P[0-9][0-9][0-9][0-9].md; do
    [ -f "$page" ] || continue
    code=${page##*/}
    code=${code%.md}
    printf 'static const char text_%s[] = {\n' "$code"
    od -An -v -tu1 "$page" |
        awk '{ for (i = 1; i <= NF; i++) printf "%s,", ($i > 127 ? "(char)" $i : $i)
               print "" }'
    echo '0};'
    rows="$rows    {\"$code\", text_$code},
"
    count=$((count + 1))
done
printf 'const Page explain_pages[] = {\n%s    {0, 0}};\n' "$rows"
printf 'const size_t explain_page_count = %d;\n' "$count"
