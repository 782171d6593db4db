/* Reports of the errors that the grammar recognises. */
#include "parser/build.h"

#include <string.h>

Span span_end(Span span) { return (Span){span.hi, span.hi}; }

void report_set_in_condition(Parse *p, Span op_span) {
    Diag *diag = lexer_report(&p->lexer, P0011, op_span, "`=` in a condition");
    diag_help(p->lexer.diags, diag, "write `==` to compare");
}

static bool is_comparison(const AstExpr *expr) {
    return expr->kind == AST_BINARY && expr->binary.op >= AST_EQ && expr->binary.op <= AST_GE;
}

/* In brackets its span is larger */
static bool is_bare(const AstExpr *expr, Span text) {
    return expr->span.lo == text.lo && expr->span.hi == text.hi;
}

void report_chain(Parse *p, const AstExpr *first, Span text, Span second_op) {
    if (!is_comparison(first) || !is_bare(first, text)) return;
    Diag *diag = lexer_report(&p->lexer, P0015, second_op, "comparisons cannot be chained");
    diag_label(p->lexer.diags, diag, ast_binary_op(first), "the first comparison");
    diag_help(p->lexer.diags, diag, "write `a < b && b < c`, or parentheses to compare a bool");
}

void report_no_stage_name(Parse *p, Span where, bool is_block) {
    Diag *diag = lexer_report(&p->lexer, P0010, where,
                              is_block ? "expected `as` and a name for the stage"
                                       : "the stage needs a name");
    if (is_block)
        diag_help(p->lexer.diags, diag, "write `consume <p> as s { ... }`");
    else
        diag_help(p->lexer.diags, diag, "write `let s = consume <p>;` and later `release s;`");
}

void report_no_angles(Parse *p, const char *word, AstName pipe) {
    Diag *diag =
        lexer_report(&p->lexer, P0025, pipe.span, "the name of a pipe must be in angle brackets");
    diag_help(p->lexer.diags, diag, "write `%s <%s>`", word, pipe.text);
}

void report_no_width(Parse *p, Span where) {
    Diag *diag = lexer_report(&p->lexer, P0026, where,
                              "expected the number of warps or warpgroups of the role");
    diag_help(p->lexer.diags, diag, "write `role name: 1 warp`, `4 warps` or `2 warpgroups`");
}

void report_no_target(Parse *p, Span where) {
    Diag *diag = lexer_report(&p->lexer, P0024, where, "expected the target of the kernel");
    diag_help(p->lexer.diags, diag, "write `for sm_90a` before the `{`");
}

void report_empty_statement(Parse *p, Span span, bool after_block) {
    Diag *diag = lexer_report(&p->lexer, P0013, span,
                              after_block ? "`;` after a block" : "`;` without a statement");
    diag_help(p->lexer.diags, diag, "remove it");
}

/* The loop's head is in the syntax of another language: errors up to `until` are consequences of
 * this one */
void report_foreign_loop(Parse *p, Span span, Span until) {
    bool is_while = span.lo == until.lo;
    Diag *diag =
        lexer_report(&p->lexer, P0017, span,
                     is_while ? "Pipe has no `while` loop" : "Pipe has no `for` loop of this form");
    diag_note(p->lexer.diags, diag,
              "loops have a known range, so that the iterations of two roles can be compared");
    diag_help(p->lexer.diags, diag,
              "write `for i in 0 .. n { .. }`, or loop over `grid` or a `range`");
    p->failed = true;
    p->failure = span_end(until);
}

void report_statement(Parse *p, Span span, const char *keyword) {
    span.hi = span.lo + (uint32_t)strlen(keyword);
    Diag *diag =
        lexer_report(&p->lexer, P0001, span,
                     "expected an item of the kernel or `}`, found the keyword `%s`", keyword);
    diag_help(p->lexer.diags, diag, "write statements in a role: `role work: 4 warps { .. }`");
}

void report_second_list(Parse *p, Span span) {
    Diag *diag = lexer_report(&p->lexer, P0001, span, "a second `for` after a statement");
    diag_help(p->lexer.diags, diag, "write all ranges after one: `for i in 0 .. 4, j in 0 .. 8`");
}

void report_second_where(Parse *p, Span span) {
    Diag *diag = lexer_report(&p->lexer, P0001, span, "a second `where` after a statement");
    diag_help(p->lexer.diags, diag, "join the conditions: `where a && b`");
}

void report_no_semicolon(Parse *p, Span where) {
    lexer_report(&p->lexer, P0014, where, "expected `;`, found the keyword `for`");
    p->failed = true;
    p->failure = where;
}

void report_claim(Parse *p, Span where, const char *message) {
    Diag *diag = lexer_report(&p->lexer, P0027, where, "%s", message);
    diag_help(p->lexer.diags, diag,
              "write `Y[i] ~ e within 1e-3`, or `Y[i] == e` where it is exact");
}

void report_depth(Parse *p, Span span) {
    Diag *diag = lexer_report(&p->lexer, P0008, span, "the nesting is too deep");
    diag_help(p->lexer.diags, diag, "declare inner parts with `let`");
    p->lexer.stopped = true;
}
