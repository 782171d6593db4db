/* lib, private: launches whose results have the same bits for any number of rows. */
#ifndef PIPEC_LIB_INVARIANT_H
#define PIPEC_LIB_INVARIANT_H

#include "lib/family.h"

/* Why the order of some sum depends on more than its own extents; NULL: no order does */
const char *invariant_fault(Arena *arena, const Manifest *manifest);
/* True if both add in one order */
bool invariant_alike(const Candidate *a, const Candidate *b);
/* The candidate whose order launches with these extents have, whatever their rows; NULL: there is
 * none */
const Candidate *invariant_reference(const Family *family, const DeviceArgument *arguments,
                                     Arena *words);
/* Refuses a launch */
void limits_report(const PipecProgram *program, const Limits *limits, Diags *diags);

#endif
