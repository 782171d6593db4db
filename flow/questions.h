/* flow, private: conditions that the IFs and loops of a role test, and the last row that tests
 * the same. */
#ifndef PIPEC_FLOW_QUESTIONS_H
#define PIPEC_FLOW_QUESTIONS_H

#include "flow/code.h"
#include "flow/context.h"

typedef struct Question {
    AssumedKind kind;      /* ASSUMED_CONDITION or ASSUMED_NONEMPTY */
    const Poly *condition; /* CONDITION: in canonical form; NULL: unknown */
    int number;            /* NONEMPTY: of the range */
    bool truth;            /* of `condition` if the region's own condition holds */
    bool asks;             /* can be followed: nothing in it changes unnoticed */
    /* the last row that tests the same; otherwise the region's first row */
    int until;
    /* `answer`, 1, 0 or -1, was computed from the path alone */
    bool decided;
    int answer;
} Question;

struct Questions {
    Question *items;             /* by region */
    bool tiles_asked, has_tiles; /* has_tiles: each block has a tile of the grid */
};

/* Computes the questions of a role */
Questions *questions_find(Arena *arena, FlowCode *code);
/* True if both test the same condition or range */
bool question_same(const Question *a, const Question *b);

#endif
