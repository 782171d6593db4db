/* known: passes that reported nothing for an earlier program with the same Code. A pass that reads
 * only Code (passes.def) and reports nothing for one combination of statics reports nothing for
 * another combination with the same Code; such combinations differ in the depths of pipes, for
 * example. Private to check/, except the type (check.h). */
#ifndef PIPEC_KNOWN_H
#define PIPEC_KNOWN_H

#include "check/passes.h"
#include "prog/key.h"

typedef struct KnownCode {
    const uint32_t *words; /* key of the Code */
    size_t count;
    uint64_t sum;       /* weighted sum of the words: different sums mean different Codes */
    uint64_t clean;     /* bit i: pass i has reported nothing */
    StageOrder *stages; /* FACT_STAGES by role; NULL: not known */
} KnownCode;

/* The entry of this Code; a new entry has no passes. NULL: the limit on the size is reached. */
KnownCode *known_find(Known *known, const Key *key);

/* Stores FACT_STAGES of a program, for another program with the same Code */
void known_keep_stages(Known *known, KnownCode *entry, const Prog *prog);
/* true if the program has the stored FACT_STAGES */
bool known_has_stages(const KnownCode *entry, const Prog *prog);

#endif
