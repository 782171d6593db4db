/* questions: private to flow/: what the IFs and loops of a role ask for, and up to which row the same is asked for again. */
#ifndef PIPEC_FLOW_QUESTIONS_H
#define PIPEC_FLOW_QUESTIONS_H

#include "flow/code.h"
#include "flow/context.h"

typedef struct Question {
    AssumedKind kind;      /* ASSUMED_CONDITION or ASSUMED_NONEMPTY */
    const Poly *condition; /* CONDITION: in the one spelling; NULL: not known */
    int number;            /* NONEMPTY: of the range */
    bool truth;            /* of `condition` where the region's own condition holds */
    bool asks;             /* it can be followed: nothing in it changes unseen */
    int until;             /* the last row that asks for the same; the region's first row where none does */
    bool decided;          /* what the path alone makes of it is known: `answer`, 1, 0 or -1 */
    int answer;
} Question;

struct Questions {
    Question *items; /* by region */
    bool tiles_asked, has_tiles; /* does a block certainly have a tile of the grid? */
};

Questions *questions_find(Arena *arena, FlowCode *code);
bool question_same(const Question *a, const Question *b);

#endif
