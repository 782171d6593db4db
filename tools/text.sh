#!/bin/sh
# text.sh NAME HEADER FILE: prints the definition of NAME, which HEADER declares, as the text of the
# file.
set -eu
printf '#include "%s"\nconst char %s[] = {\n' "$2" "$1"
od -An -v -tu1 "$3" | awk '{ for (i = 1; i <= NF; i++) printf "%s,", ($i > 127 ? "(char)" $i : $i)
                             print "" }'
echo '0};'
