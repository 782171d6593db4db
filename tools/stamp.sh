#!/bin/sh
# stamp.sh FILE ..: prints the definition of pipec_stamp (lib/private.h), a sum of these sources.
# Files that one build keeps for another name it, so that a build reads only its own.
set -eu
sum=$(LC_ALL=C cksum "$@" | cksum | tr ' ' '-')
printf '#include "lib/private.h"\nconst char pipec_stamp[] = PIPEC_VERSION " %s";\n' "$sum"
