/* Mutants of PTX: the lines of emitted PTX, and the operators that put faults into them.
 *
 * Emitted PTX has one statement on each line. A mutant replaces some lines and keeps their
 * number, because the marks of the manifest refer to them. */
#ifndef TESTS_PTXMUTANTS_H
#define TESTS_PTXMUTANTS_H

#include "util/util.h"

#define OPERANDS_MAX 12

typedef struct Line {
    const char *text;                   /* the line, without its end */
    const char *label;                  /* NULL: it defines none */
    const char *opcode;                 /* with its modifiers; NULL: not an instruction */
    const char *guard;                  /* "%p9" or "!%p9"; NULL: none */
    const char *operands[OPERANDS_MAX]; /* "%r1", "64", "[%r1+8]", "[%d0, {%r1, %r2}]" */
    size_t operand_count;
    const char *role; /* "" before the first role and between roles */
    bool looped;      /* between a label and a branch back to it; a wait that repeats is no loop */
} Line;

typedef VEC(Line) Lines;

void lines_read(Arena *arena, const char *ptx, Lines *out);
/* True if the opcode fits the pattern: the words that it begins with (`#`: any word), then
 * ` +words` that follow somewhere and ` -words` that do not. */
bool line_is(const Line *line, const char *pattern);
/* Index of the next instruction, or the number of lines */
size_t line_next(const Lines *lines, size_t at);
/* The instruction without its guard and `;`: opcode and operands, of which one is replaced
 * (`operand` -1: none) */
const char *line_with(Arena *arena, const Line *line, int operand, const char *with);
/* "@%p9 ", or "" */
const char *line_guard(Arena *arena, const Line *line);
/* The constant of an address: 8 for "[%r1+8]" */
int64_t address_constant(const char *operand);
/* A load or store of a thread in shared memory */
bool line_accesses(const Line *line);
bool line_writes(const Line *line);
/* True if the operand mentions the register */
bool operand_uses(const char *operand, const char *name);

/* ---- operators ------------------------------------------------------------------------------- */

typedef struct Edit {
    size_t line;
    const char *text;
} Edit;

typedef struct Operator Operator;

typedef struct Mutant {
    const Operator *row;
    size_t line;       /* the line of the instruction */
    const char *place; /* the role and the number of this operator's place in it: "load 2" */
    VEC(Edit) edits;
} Mutant;

typedef VEC(Mutant) Mutants;

/* A place where an operator is tried */
typedef struct Site {
    Arena *arena;
    const Lines *lines;
    size_t at;
    const Operator *row;
    Mutant *mutant;
} Site;

typedef bool (*Place)(const Site *site);
/* Adds the edits to site->mutant; false: not possible here */
typedef bool (*Apply)(Site *site);

struct Operator {
    const char *name, *instruction;
    Place place;
    Apply apply;
    int operand;
    int64_t amount;
    const char *why;
};

size_t operator_count(void);
const Operator *operator_row(size_t index);

/* All mutants, by operators, then by lines */
void mutants_of(Arena *arena, const Lines *lines, Mutants *out);
/* The whole text */
const char *mutant_text(Arena *arena, const Lines *lines, const Mutant *mutant);

/* places (sites.c) and edits (edits.c) of operators.def */
#define OPERATOR(name, instruction, place, edit, operand, amount, why)                             \
    bool site_##place(const Site *site);                                                           \
    bool edit_##edit(Site *site);
#include "tests/ptxmutants/operators.def"
#undef OPERATOR

#endif
