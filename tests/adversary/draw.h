/* The generator, private: the position of a statement that is drawn, and the parts that draw it.
 *   script.c   stages handed over, with their loops and conditions
 *   stages.c   one hand-over in one role: acquire, fill or use, release
 *   uses.c     what a role computes from the values it reads
 *   reductions.c  sums and extremes of what it reads
 *   vectors.c  the whole program */
#ifndef TESTS_ADVERSARY_DRAW_H
#define TESTS_ADVERSARY_DRAW_H

#include "tests/adversary/adversary.h"

#define SCOPE_LOOPS 8

typedef struct Scope {
    Program *program;
    int role;
    int loops[SCOPE_LOOPS], loop_count;
    bool tripled[SCOPE_LOOPS]; /* the loop goes from 0 to K */
    int sums;                  /* tile of the values that the role has read; -1: none */
    int width;                 /* of the role's share of a row */
    Stmts *before;             /* head of the body of the grid's loop */
    bool alone;                /* the event is the only one of its loop */
    bool writes;               /* the role writes tensors */
    int rows, data, trips;     /* the tensors X, D and E */
} Scope;

/* script.c */
void script_draw(Scope *scope, int depth, Stmts *out);
Stmts script_project(Program *program, const Stmts *script, int role);
const Expr *condition_draw(Scope *scope);
const Expr *bound_draw(Scope *scope);
int range_of(Program *program, const Expr *bound);

/* vectors.c */
bool program_exchanges(const Program *program, int pipe); /* is its producer among its consumers? */

/* stages.c */
void event_expand(Scope *scope, const Stmt *event, Stmts *out);
void rotation_expand(Scope *scope, const Stmt *event, Stmts *out);

/* uses.c */
const Expr *lane_of(Scope *scope);              /* i, or this instance's share of it */
const Expr *safe_sub(Scope *scope, int extent); /* always in 0 .. extent - 1 */
const Expr *any_value(Scope *scope);
const Expr *small_index(Scope *scope); /* a function of i in 0 .. 31 */
/* an element of some field of a stage, of a row of it */
const Expr *stage_row(Scope *scope, int handle, int pipe, const Expr *sub);
Stmt *add_to_sums(Scope *scope, const Expr *value);
Stmt *declare_scalar(Scope *scope, const Expr *value, int *local);
Stmt *set_scalar(Scope *scope, int local, char op, const Expr *value);
void use_draw(Scope *scope, int handle, int pipe, Stmts *out);
/* writes a value of i to a tensor of this role */
void output_draw(Scope *scope, const Expr *value, Stmts *out);

/* reductions.c */
/* some reduction of the element over x */
const Expr *reduction_over(Scope *scope, const Expr *element_at_x);
void use_reduction(Scope *scope, int handle, int pipe, Stmts *out);

#endif
