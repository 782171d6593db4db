#!/bin/sh
# pages.sh [--named] TABLE FILE..: converts texts to C, so that the library holds them: the pages of
# `pipec explain`, and the kernels that are shipped. Prints the definitions of TABLE and TABLE_count
# (util/util.h); a row has the name of its file without folder and, unless --named, without ending.
# Texts are arrays of characters, because C guarantees string literals only up to 4095 bytes.
set -eu
ending=
if [ "$1" = --named ]; then
    ending=yes
    shift
fi
table=$1
shift
echo '#include "util/util.h"'
count=0
rows=
for page in "$@"; do
    [ -f "$page" ] || continue
    name=${page##*/}
    shown=$name
    name=${name%.*}
    [ -n "$ending" ] || shown=$name
    printf 'static const char text_%s[] = {\n' "$name"
    od -An -v -tu1 "$page" |
        awk '{ for (i = 1; i <= NF; i++) printf "%s,", ($i > 127 ? "(char)" $i : $i)
               print "" }'
    echo '0};'
    rows="$rows    {\"$shown\", text_$name},
"
    count=$((count + 1))
done
printf 'const Page %s[] = {\n%s    {0, 0}};\n' "$table" "$rows"
printf 'const size_t %s_count = %d;\n' "$table" "$count"
