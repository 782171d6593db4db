/* known: what passes have found of programs that were checked before, by their Code. A pass that
 * reads Code alone and found nothing in one combination of statics finds nothing in another one
 * whose Code is the same (passes.def); combinations differ then in the depths of pipes, say.
 * Private to the floor, but for the type (check.h). */
#ifndef PIPEC_KNOWN_H
#define PIPEC_KNOWN_H

#include "check/passes.h"
#include "prog/key.h"

typedef struct KnownCode {
    const uint32_t *words; /* the key of its Code */
    size_t count;
    uint64_t sum;     /* of the words, weighted: Codes with another one differ */
    uint64_t clean;   /* bit i: pass number i has found nothing */
    int64_t *payload; /* FACT_PAYLOAD, a number a row and a role's pipe; NULL: not known */
} KnownCode;

/* Of all programs with this Code; a new one knows of no pass. NULL: there is no room for it. */
KnownCode *known_find(Known *known, const Key *key);

/* FACT_PAYLOAD: is kept as the program has it, and given to another one */
void known_keep_payload(Known *known, KnownCode *entry, const Prog *prog);
void known_give_payload(const KnownCode *entry, const Prog *prog);
bool known_has_payload(const KnownCode *entry, const Prog *prog); /* is this the program's? */

#endif
