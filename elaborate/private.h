/* elaborate: private to elaborate/. The state of one elaboration, and what its files offer each other:
 *   elaborate.c         declarations in any order, constants; params.c, domain.c, items.c the
 *                       items of a kernel (items.h)
 *   scope.c   names: one namespace, no shadowing, did-you-mean, errors
 *   node.c    expression nodes: types, conversions, uniformity; fold.c constants
 *   expr.c    names and operators; access.c subscripts and indexes; call.c casts, intrinsics,
 *                       functions in expressions
 *   stmt.c    statements; loop.c loops, ranges, stages; fn.c functions inlined as statements
 *   hint.c    `try` and the acquires behind it; unsafe.c what stands in `unsafe`
 *   claim.c   ensures, example
 *   order.c   the order of turns, and of releases without a signal */
#ifndef PIPEC_ELABORATE_PRIVATE_H
#define PIPEC_ELABORATE_PRIVATE_H

#include "elaborate/elaborate.h"
#include "prog/stmt.h"

/* How far a value adapts to the type beside it: not at all; to any integer type (axes, indexes, loop variables); to any
 * number (constants, statics, extents). */
typedef enum Flex { FLEX_NONE, FLEX_INT, FLEX_ANY } Flex;

typedef struct Val {
    Expr *x;
    Flex flex;
} Val;

typedef enum Progress { UNSEEN, BUSY, DONE } Progress; /* of declarations that may refer to each other */

typedef enum NameKind {
    NAME_POISON,
    NAME_CONST,  /* index: elab->decls */
    NAME_SYMBOL, /* prog->symbols */
    NAME_PARAM,  /* prog->params: a tensor or a floating point scalar */
    NAME_AXIS,   /* prog->axes */
    NAME_DOMAIN, /* prog->domains */
    NAME_LOCAL,  /* role->locals */
    NAME_HANDLE, /* role->handles */
    NAME_HINT,   /* role->hints */
    NAME_TILE,   /* `object`: a tile of the role, of a stage or of global memory */
    NAME_INDEX,  /* space->items */
    NAME_VALUE,  /* `value`: an argument put in place of a parameter */
    NAME_LET     /* prog->lets */
} NameKind;

/* Something that can be subscripted */
typedef struct Object {
    Space space;
    int object, field;
    Expr *element; /* of an array field, else NULL */
    Element type;
    int rank;
    Expr *extents[PROG_MAX_RANK]; /* NULL for lets */
    bool old, read_only, poison;
    Span span;
} Object;

typedef struct Name Name;
struct Name {
    NameKind kind;
    const char *text;
    Span span;
    int index;
    Val value;
    Object object;
    bool borrowed; /* NAME_HANDLE: a `borrow` parameter, another name for a stage of the caller */
    Name *next; /* in its bucket */
};

typedef struct Scope Scope;
struct Scope {
    Scope *outer;
    Name **buckets;
    size_t bucket_count;
    VEC(Name *) live; /* in order of binding; the tail is undone at the end of a block */
};

typedef struct Decl { /* a const or static */
    const AstConst *ast;
    Scope *scope;     /* of its names: the file's or the kernel's */
    Progress progress;
    Val value;
    Constant row;     /* name NULL after an error */
} Decl;

typedef struct Pending { /* declarations under evaluation, for cycles */
    const char *name;
    Span span;
} Pending;

/* Where an expression stands decides which names it sees. */
typedef enum Place {
    PLACE_CONST,    /* constants only */
    PLACE_GRID,     /* and symbols: extents of axes, requires */
    PLACE_RANGE,    /* and axes, ranges, elements of `in` tensors, scalars */
    PLACE_CLAIM,    /* `ensures` */
    PLACE_EXAMPLE,  /* constants, symbols, indexes */
    PLACE_ROLE
} Place;

typedef struct Frame Frame; /* a function being inlined */
struct Frame {
    Frame *outer;
    const AstItem *fn;
    Span call;
    Stmt *block;        /* NULL inside an expression */
    int result;         /* local of a scalar result, -1 */
    bool has_tile;
    Object tile;        /* of a tile result */
    const AstStmt *last; /* of the function's body: a `return` there needs no leave */
    bool single;         /* and it is the only `return` */
};

typedef struct Loop Loop;
struct Loop {
    Loop *outer;
    Stmt *stmt;
    Frame *frame; /* a break inside an inlined function does not see the caller's loops */
};

typedef struct Elab {
    Arena *arena;
    Names *names;
    const Ast *ast;
    const AstItem *kernel;
    const StaticValue *statics;
    size_t static_count;
    Diags *diags;
    Prog *prog;
    const char *word_rank, *word_inf, *word_nan, *word_lane, *word_warp;

    Scope *file, *outer, *scope; /* of the file, of the kernel, the one now used */
    Scope *claims;               /* of `ensures`: the kernel's names and its lets */
    VEC(Decl) decls;
    VEC(Pending) pending;
    VEC(const AstItem *) domain_items; /* as prog->domains */
    Progress *domain_progress;
    uint32_t *domain_axes;             /* which axes a domain needs */
    bool broken;                       /* a declaration is wrong: later passes would stumble over it */
    Scope *axes;                       /* of ranges: the kernel's names and the axes */

    Place place;
    const char *place_words;   /* "the grid", for messages */
    int domain;                /* PLACE_RANGE: the one being evaluated, whose name is the position in its `where`; -1 */
    bool domain_where;
    uint32_t axes_used;        /* PLACE_RANGE */
    Role *role;                /* NULL outside of roles */
    IndexSpace *space;         /* of the statement; NULL: no reduction can stand here */
    bool exact;
    bool reducing;             /* inside of the body of a reduction */
    bool bare_subscript;       /* the name now resolved stands bare in a subscript */
    bool has_target;           /* the statement has a target whose indexes are bound */
    VEC(const char *) unknown; /* names without a meaning that have been told of: the declaration that is missing is one mistake */
    bool target_faulty;        /* it was refused: names that it might have bound are not asked for */
    int axis_locals[PROG_MAX_RANK]; /* locals of the axes bound in this role, -1 */
    Frame *frame;
    Loop *loop;
    Stmts *out;                /* the list that statements are added to */
    VEC(Stmt *) loop_of;       /* of a loop variable: its S_FOR; as role->locals */
    size_t steps;              /* statements and expression bodies of inlined functions */
    bool exhausted;
    int suggestions;           /* left to look for: the search costs */
    bool unsafe;               /* inside of an `unsafe` block, */
    Frame *unsafe_frame;       /* that stands in this function's text */
    VEC(uint64_t) reported;    /* places already complained of inside functions */
} Elab;

/* ---- scope ------------------------------------------------------------------------------------------------------- */

Scope *elab_scope_new(Elab *e, Scope *outer);
Name *elab_scope_find(const Scope *scope, const char *text); /* through the outer ones; NULL */
/* Binds a name; one that is taken is reported, and bound for the sake of what follows. Never NULL. */
Name *elab_scope_bind(Elab *e, Scope *scope, NameKind kind, const char *text, Span span, int index);
size_t elab_scope_mark(const Scope *scope);
void elab_scope_undo(Scope *scope, size_t mark);
const char *elab_suggest(Elab *e, const char *wanted, const char *const *list, size_t count);
const char *elab_suggest_name(Elab *e, const char *wanted, bool (*fits)(const Name *));
Diag *elab_error(Elab *e, Code code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
#ifdef FROM_HERE
#define elab_error(e, ...) (FROM_HERE((e)->diags), elab_error(e, __VA_ARGS__))
#endif
void elab_refuse_word(Elab *e, Span span, const char *word); /* forms that this version does not have */
const char *elab_text_of(Elab *e, Span span);                /* source text, shortened */
bool elab_is_word(const Elab *e, const char *name);          /* rank, inf, nan */
int elab_find_pipe(Elab *e, AstName name);                   /* -1 after an error */
void elab_ended_stage(Elab *e, Diag *diag, const char *text); /* of an unknown name: says so where it was a stage's */

#define LABEL(e, diag, span, ...) ((void)diag_label((e)->diags, (diag), (span), __VA_ARGS__))
#define PRIMARY(e, diag, ...) ((void)diag_primary((e)->diags, (diag), __VA_ARGS__))
#define HELP(e, diag, ...) ((void)diag_help((e)->diags, (diag), __VA_ARGS__))
#define NOTE(e, diag, ...) ((void)diag_note((e)->diags, (diag), __VA_ARGS__))

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

Expr *elab_node(Elab *e, ExprKind kind, Element type, Span span);
Val elab_poison(Elab *e, Span span);
bool elab_is_poison(Val v);
Val elab_val_integer(Elab *e, int64_t value, Span span);
Val elab_val_number(Elab *e, double value, Span span);
Val elab_val_bool(Elab *e, bool value, Span span);
Expr *elab_make_integer(Elab *e, Element type, int64_t value, Span span);
Expr *elab_make_local(Elab *e, int local, Span span);
Expr *elab_make_index(Elab *e, int index, Span span);
Expr *elab_make_read(Elab *e, Access *access, Span span);
bool elab_is_float(Element type);   /* in arithmetic: F32 and what widens to it */
bool elab_is_integer(Element type);
bool elab_is_narrow(Element type);  /* 8 or 16 bits */
bool elab_is_fp8(Element type);
bool elab_is_const(const Expr *x);
const char *elab_type_name(Element type);
/* A value ready for arithmetic: narrow casts widened, fp8 refused */
Val elab_operand(Elab *e, Val v);
Expr *elab_settled(Elab *e, Val v);  /* a constant rounded to its type; ready for the Prog */
Expr *elab_cast_to(Elab *e, Val v, Element type, Span span); /* without questions; folds constants, poison after an error */
/* Implied conversion of `v` to a wanted arithmetic type; says what does not fit */
Expr *elab_coerce(Elab *e, Val v, Element type, const char *what);
/* What is stored in an element of this type: implied conversions, written casts, copies */
Expr *elab_stored(Elab *e, Val v, Element type, Span target, const char *target_text);
bool elab_unify(Elab *e, Val *a, Val *b, Span span, const char *op); /* both sides to one type; false after an error */
Val elab_make_binary(Elab *e, BinaryOp op, Val a, Val b, Span span, Span op_span);
Val elab_make_unary(Elab *e, UnaryOp op, Val a, Span span);
Val elab_make_select(Elab *e, Val c, Val a, Val b, Span span);
Val elab_make_call(Elab *e, Intrinsic which, Val *args, int count, Span span);
Val elab_condition(Elab *e, Val v); /* a bool, or reported */
/* Copies an expression with axes, indexes or locals replaced: `replace` returns NULL where a node stays */
Expr *elab_substitute(Elab *e, Expr *x, Expr *(*replace)(Elab *, Expr *, void *), void *data);

/* ---- folding: false where the operands are not constant or the operation fails (then reported) ---------------------- */

bool elab_fold_binary(Elab *e, BinaryOp op, Val a, Val b, Span span, Val *out);
bool elab_fold_unary(Elab *e, UnaryOp op, Val a, Span span, Val *out);
bool elab_fold_call(Elab *e, Intrinsic which, Val *args, int count, Span span, Val *out);
bool elab_float_fits(Element type, double value); /* exactly */

/* ---- expressions ------------------------------------------------------------------------------------------------- */

Val elab_expr(Elab *e, const AstExpr *ast);
Val elab_expr_at(Elab *e, const AstExpr *ast, Place place, const char *words); /* saves and restores the place */
bool elab_constant_integer(Elab *e, const AstExpr *ast, const char *what, int64_t least, int64_t most, int64_t *out);
Val elab_resolve_name(Elab *e, const char *name, Span span);
Val elab_decl_value(Elab *e, int decl, Span use);
bool elab_object_of(Elab *e, const AstExpr *ast, Object *out, bool quiet); /* quiet: false and no message where it is none */
Access *elab_access_of(Elab *e, const AstExpr *ast, bool write);
bool elab_is_unknown_name(Elab *e, const AstExpr *ast);
/* Binds the indexes of a statement: unknown names in the target's subscripts that have a range somewhere */
void elab_bind_indexes(Elab *e, const AstExpr *target, const AstExpr *value);
int elab_add_index(Elab *e, const char *name, Span span); /* -1 after an error */
Val elab_call(Elab *e, const AstExpr *ast);
const AstItem *elab_find_fn(Elab *e, const char *name);
bool elab_is_fn_call(Elab *e, const AstExpr *ast);

/* ---- statements -------------------------------------------------------------------------------------------------- */

Stmt *elab_stmt_new(Elab *e, StmtKind kind, Span span);
void elab_emit(Elab *e, Stmt *stmt);
void elab_stmt(Elab *e, const AstStmt *ast);
Stmt *elab_body_of(Elab *e, const AstStmt *ast); /* a block of its own scope, as one S_BLOCK */
void elab_block_items(Elab *e, const AstStmt *block);
typedef struct ScopeMark {
    size_t tiles, locals;
} ScopeMark;

ScopeMark elab_mark(const Elab *e);
/* `block` is the scope of the tiles and variables declared since `first`; not of the two that are kept, -1: none */
void elab_end_scope(Elab *e, Stmt *block, ScopeMark first, int kept_tile, int kept_local);
int elab_add_local(Elab *e, const char *name, Span span, LocalKind kind, Element type);
int elab_bind_local(Elab *e, AstName name, LocalKind kind, Element type);
void elab_assign_local(Elab *e, int local, Expr *value, IndexSpace *space, Span span);
int elab_add_tile(Elab *e, const char *name, Span span, bool in_registers, Element type, int rank, const int64_t *extents);
Object elab_tile_object(Elab *e, int tile);
void elab_fill_tile(Elab *e, Object object, Val value, Span span);
void elab_copy_tile(Elab *e, Object to, Object from, Span span);
bool elab_element_type(Elab *e, const AstType *type, Element *out);
bool elab_scalar_type(Elab *e, const AstType *type, Element *out);
void elab_loop_stmt(Elab *e, const AstStmt *ast);
void elab_if_stmt(Elab *e, const AstStmt *ast);
void elab_stage_stmt(Elab *e, const AstStmt *ast);

/* Ranges with `where`, live.c. loop: one over the whole range, without a body. The result is true where it has a live
 * iteration. */
Expr *elab_search_live(Elab *e, Stmt *loop, Span span);
/* A piece of such a range: its live iterations from number `from` up to `to`, not included; NULL: to the last one */
typedef struct LivePiece {
    int count; /* a local: live iterations so far */
    Expr *from, *to;
} LivePiece;
LivePiece elab_live_piece(Elab *e, int domain, const Val *from, const Val *to, Span span); /* comes before the loop */
Stmt *elab_live_body(Elab *e, const LivePiece *piece, const AstStmt *ast, Span span);      /* of the loop */
bool elab_declare_hint(Elab *e, const AstStmt *ast, bool variable); /* let ready = try consume <p>; false: it is none */
void elab_assign_hint(Elab *e, const AstStmt *ast, const Name *name);
void elab_refuse_hint(Elab *e, Span span, const Name *name); /* stands in the place of a value or of a stage; said once a hint */
int elab_hint_of(Elab *e, AstName hint, int pipe, End end); /* of an acquire; -1 without one, and after an error */
End elab_end(AstEnd end);
/* unsafe.c */
bool elab_is_unsafe(const Elab *e);
void elab_unsafe_block(Elab *e, const AstStmt *ast);
void elab_signal_stmt(Elab *e, const AstStmt *ast); /* arrive, wait, expect, step */
void elab_ptx_stmt(Elab *e, const AstStmt *ast);
bool elab_release_silent(Elab *e, const AstStmt *ast, int handle);             /* may it be without signal? false after an error */
bool elab_unwaited(Elab *e, const AstExpr *acquire, int pipe, End end);       /* `if true`; false too after an error */
bool elab_stage_member(Elab *e, const AstExpr *ast, Val *out);                /* s.index, s.full, s.empty; false: it is none of them */
Val elab_cursor_value(Elab *e, const AstExpr *ast);                           /* consume <p>.index, consume <p>.full[i], .. */
bool elab_is_thread_word(const Elab *e, const char *name);                    /* lane, warp, where no other name hides them */
Val elab_thread_value(Elab *e, const char *name, Span span);
Val elab_address(Elab *e, const AstExpr *ast);                                /* address(s.x) */
void elab_acquire_into(Elab *e, int handle, const AstExpr *acquire, Span span);
int elab_bind_handle(Elab *e, AstName name, int pipe, End end, bool variable);
void elab_domain_ready(Elab *e, int domain, Span use);
/* Binds the parameters in `scope`; block: of a call as a statement, where scalars become locals and stages are moved; NULL in an expression. */
bool elab_pass_arguments(Elab *e, const AstItem *fn, const AstExpr *ast, Scope *scope, Stmt *block);
void elab_forget_stage(Elab *e, const Name *name); /* a NAME_HANDLE: what it holds is unknown from here on */
bool elab_refuse_borrowed(Elab *e, const Name *name, Span span, const char *verb); /* true: it is borrowed, and that was said */
/* A call as the whole of a statement. Result: local >= 0 of a scalar, or a tile. */
typedef struct Result {
    bool ok, has_tile;
    int local;
    Object tile;
} Result;
Result elab_inline_call(Elab *e, const AstExpr *ast);
void elab_return_stmt(Elab *e, const AstStmt *ast);
bool elab_enter_fn(Elab *e, const AstItem *fn, const AstExpr *ast); /* false after an error: recursion, too large */
bool elab_step(Elab *e, Span span); /* counts what inlining makes; false when it is too much, said once */
bool elab_always_returns(const AstStmt *ast);

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

void elab_ensures_item(Elab *e, const AstItem *item);
void elab_example_item(Elab *e, const AstItem *item);
void elab_claims_done(Elab *e);
void elab_order_releases(Arena *arena, Role *role);
void elab_number_turns(Role *role);

#endif
