/* elaborate, private: the state of one elaboration, and the functions of its files:
 *   elaborate.c  declarations in any order, constants; params.c, domain.c, items.c the items of a
 *                kernel (items.h)
 *   scope.c      names: one namespace, no shadowing, suggestions, errors
 *   node.c       expression nodes: types, conversions, uniformity; fold.c constants
 *   bits.c       operators and functions of the bits of integers, random numbers
 *   expr.c       names and operators; access.c subscripts and indexes, ranges.c their ranges;
 * call.c casts, intrinsics, functions in expressions stmt.c       statements; loop.c loops, ranges,
 * stages; fn.c functions inlined as statements hint.c       `try` and the acquires after it;
 * unsafe.c contents of `unsafe` claim.c      ensures, example order.c      the order of turns, and
 * of releases without a signal */
#ifndef PIPEC_ELABORATE_PRIVATE_H
#define PIPEC_ELABORATE_PRIVATE_H

#include "elaborate/elaborate.h"
#include "prog/stmt.h"

/* Types that a value adapts to: none; any integer type (axes, indexes, loop variables); any
 * number type (constants, statics, extents). */
typedef enum Flex { FLEX_NONE, FLEX_INT, FLEX_ANY } Flex;

typedef struct Val {
    Expr *x;
    Flex flex;
} Val;

/* of declarations that may refer to each other */
typedef enum Progress { UNSEEN, BUSY, DONE } Progress;

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
    NAME_VALUE,  /* `value`: an argument that replaces a parameter */
    NAME_LET     /* prog->lets */
} NameKind;

/* An object that can be subscripted */
typedef struct Object {
    Space space;
    int object, field;
    Expr *element; /* of an array field, otherwise NULL */
    Element type;
    int rank;
    Expr *extents[PROG_MAX_RANK]; /* NULL for lets */
    bool old, read_only, poison;
    bool is_let; /* declared by `let`, so read_only */
    Span span;
} Object;

typedef struct Name Name;
struct Name {
    NameKind kind;
    const char *text;
    Span span;
    int index;
    Val value;
    Object *object; /* NAME_TILE */
    /* NAME_HANDLE: a `borrow` parameter, an alias of a stage of the caller */
    bool borrowed;
    Name *next; /* in its bucket */
};

typedef struct Scope Scope;
struct Scope {
    Scope *outer;
    Name **buckets;
    size_t bucket_count;
    VEC(Name *) live; /* in order of binding; the end is unbound at the end of a block */
};

typedef struct Decl { /* a const or static */
    const AstConst *ast;
    Scope *scope; /* scope for names in it: the file's or the kernel's */
    Progress progress;
    Val value;
    Constant row; /* name NULL after an error */
} Decl;

typedef struct Pending { /* declarations under evaluation, for cycles */
    const char *name;
    Span span;
} Pending;

/* The place of an expression decides which names are visible. */
typedef enum Place {
    PLACE_CONST,   /* constants only */
    PLACE_GRID,    /* also symbols: extents of axes, requires */
    PLACE_RANGE,   /* also axes, ranges, elements of `in` tensors, scalars */
    PLACE_CLAIM,   /* `ensures` */
    PLACE_EXAMPLE, /* constants, symbols, indexes */
    PLACE_ROLE
} Place;

typedef struct Frame Frame; /* a function being inlined */
struct Frame {
    Frame *outer;
    const AstItem *fn;
    Span call;
    Stmt *block; /* NULL inside an expression */
    int result;  /* local of a scalar result, -1 */
    bool has_tile;
    Object tile;         /* of a tile result */
    const AstStmt *last; /* of the function's body: a `return` there needs no LEAVE */
    bool single;         /* and it is the only `return` */
};

typedef struct Loop Loop;
struct Loop {
    Loop *outer;
    Stmt *stmt;
    /* a break in an inlined function must not leave the caller's loops */
    Frame *frame;
};

/* `for i in a .. b` after the statement or claim that is being elaborated */
typedef struct RangesOf {
    const AstIndexRanges *list;
    bool *used;         /* by an index of the name */
    const Frame *frame; /* whose indexes they are */
} RangesOf;

typedef struct Elab {
    Arena *arena;
    /* of expressions, accesses and tiles: all rules go through them in the order of the text, so
     * they lie side by side; freed with `arena` */
    Arena *nodes;
    Arena *own; /* of names and scopes: freed at the end of elaboration */
    Names *names;
    const Ast *ast;
    const AstItem *kernel;
    const Target *target; /* that is wanted; NULL: the first one that the kernel names */
    const StaticValue *statics;
    size_t static_next; /* after the one that was found last */
    size_t static_count;
    Diags *diags;
    Prog *prog;
    const char *word_rank, *word_inf, *word_nan, *word_lane, *word_warp;

    Scope *file, *outer, *scope; /* of the file; of the kernel; the present one */
    Scope *claims;               /* of `ensures`: the kernel's names and its lets */
    Scope *examples;             /* of `example`: the kernel's names */
    VEC(Decl) decls;
    VEC(Pending) pending;
    VEC(const AstItem *) domain_items; /* as prog->domains */
    Progress *domain_progress;
    uint32_t *domain_axes; /* axes that a domain needs */
    bool broken;           /* a declaration is wrong: later passes must not use it */
    Scope *axes;           /* of ranges: the kernel's names and the axes */
    Scope *roles, *pipes;  /* index: prog->roles, prog->pipes */

    Place place;
    const char *place_words; /* "the grid", for messages */
    /* PLACE_RANGE: the domain under evaluation, whose name is the position in its `where`; -1 */
    int domain;
    bool domain_where;
    uint32_t axes_used; /* PLACE_RANGE */
    Role *role;         /* NULL outside of roles */
    IndexSpace *space;  /* of the statement; NULL: reductions are not allowed */
    bool exact;
    bool bare_subscript; /* the present name is a bare subscript */
    bool in_subscript;
    bool requiring;     /* in `requires`, which compares floating-point parameters too */
    int assigned;       /* the local that the statement assigns; -1: none */
    const char *scalar; /* that the statement declares, NULL if it does not */
    bool has_target;    /* the statement has a target whose indexes are bound */
    /* names that were reported as unknown: a missing declaration is one error */
    Scope *unknown;
    /* the target was refused: names that it might have bound are not reported */
    bool target_faulty;
    RangesOf ranges;
    int axis_locals[PROG_MAX_RANK]; /* locals of the axes bound in this role, -1 */
    Frame *frame;
    Loop *loop;
    Stmts *out;          /* statements are appended to this list */
    VEC(Stmt *) loop_of; /* indexed as role->locals: the S_FOR of a loop variable */
    size_t steps;        /* statements and expression bodies of inlined functions */
    bool exhausted;
    size_t errors_before; /* elaboration; see elab_gives_up */
    bool given_up;
    int suggestions;        /* remaining number of searches for suggestions */
    bool unsafe;            /* inside an `unsafe` block */
    Frame *unsafe_frame;    /* in the text of this function */
    VEC(uint64_t) reported; /* places already reported in inlined functions */
} Elab;

/* ---- scope ----------------------------------------------------------------------------------- */

Scope *elab_scope_new(Elab *e, Scope *outer);
Name *elab_scope_find(const Scope *scope, const char *text); /* also in outer scopes; NULL: none */
/* Binds a name; a duplicate is reported, and bound anyway. Never NULL. */
Name *elab_scope_bind(Elab *e, Scope *scope, NameKind kind, const char *text, Span span, int index);
/* As a NAME_TILE; returns its object */
Object *elab_scope_bind_tile(Elab *e, Scope *scope, AstName name, Object object);
/* Tables of names of one kind. Adds a name; returns the index that it has already; -1: none */
int elab_table_add(Elab *e, Scope *table, const char *text, int index);
int elab_table_find(const Scope *table, const char *text);
size_t elab_scope_mark(const Scope *scope);
void elab_scope_undo(Scope *scope, size_t mark);
const char *elab_suggest(Elab *e, const char *wanted, const char *const *list, size_t count);
const char *elab_suggest_of(Elab *e, const char *wanted, const Scope *table);
const char *elab_suggest_name(Elab *e, const char *wanted, bool (*fits)(const Name *));
/* Adds the help for an unknown name: of CUDA or Triton, else a similar one (`near`, perhaps NULL).
 * False: there is none. */
bool elab_help_name(Elab *e, Diag *diag, const char *wanted, const char *near);
/* True after very many errors: the rest of the text is not elaborated */
bool elab_gives_up(Elab *e);
Diag *elab_error(Elab *e, Code code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
#ifdef FROM_HERE
#define elab_error(e, ...) (FROM_HERE((e)->diags), elab_error(e, __VA_ARGS__))
#endif
/* for syntax that this version lacks */
void elab_refuse_word(Elab *e, Span span, const char *word);
const char *elab_text_of(Elab *e, Span span);       /* source text, shortened */
bool elab_is_word(const Elab *e, const char *name); /* rank, inf, nan */
int elab_find_pipe(Elab *e, AstName name);          /* -1 after an error */
/* for an unknown name: adds a note if it was that of a stage */
void elab_ended_stage(Elab *e, Diag *diag, const char *text);

#define LABEL(e, diag, span, ...) ((void)diag_label((e)->diags, (diag), (span), __VA_ARGS__))
#define PRIMARY(e, diag, ...)     ((void)diag_primary((e)->diags, (diag), __VA_ARGS__))
#define HELP(e, diag, ...)        ((void)diag_help((e)->diags, (diag), __VA_ARGS__))
#define NOTE(e, diag, ...)        ((void)diag_note((e)->diags, (diag), __VA_ARGS__))

/* ---- nodes ----------------------------------------------------------------------------------- */

Expr *elab_node(Elab *e, ExprKind kind, Element type, Span span);
Val elab_poison(Elab *e, Span span);
bool elab_is_poison(Val v);
Val elab_val_integer(Elab *e, int64_t value, Span span);
Val elab_val_number(Elab *e, double value, Span span);
Val elab_val_bool(Elab *e, bool value, Span span);
Expr *elab_make_integer(Elab *e, Element type, int64_t value, Span span);
/* u64: the cast of an i64 of the same bits, since a constant has a sign */
Expr *elab_make_unsigned(Elab *e, uint64_t value, Span span);
Expr *elab_make_local(Elab *e, int local, Span span);
Expr *elab_make_index(Elab *e, int index, Span span);
Expr *elab_make_read(Elab *e, Access *access, Span span);
bool elab_is_float(Element type); /* in arithmetic: F32 and what widens to it */
bool elab_is_integer(Element type);
bool elab_is_narrow(Element type); /* 8 or 16 bits */
bool elab_is_const(const Expr *x);
const char *elab_type_name(Element type);
/* A value ready for arithmetic: narrow casts widened, fp8 refused */
Val elab_operand(Elab *e, Val v);
/* a constant rounded to its type; can be stored in the Prog */
Expr *elab_settled(Elab *e, Val v);
/* without checks; folds constants, poison after an error */
Expr *elab_cast_to(Elab *e, Val v, Element type, Span span);
/* True for a 64-bit value that is no constant if `to` has 32 bits: only a written cast converts it
 */
bool elab_loses_bits(const Expr *x, Element to);
/* Implicit conversion of `v` to an arithmetic type; reports one that is not allowed */
Expr *elab_coerce(Elab *e, Val v, Element type, const char *what);
/* The value to store in an element of this type: implicit conversions, explicit casts, copies.
 * target_text: for messages, NULL: the text of `target` */
Expr *elab_stored(Elab *e, Val v, Element type, Span target, const char *target_text);
/* converts both to one type; false after an error */
bool elab_unify(Elab *e, Val *a, Val *b, Span span, const char *op);
Val elab_make_binary(Elab *e, BinaryOp op, Val a, Val b, Span span, Span op_span);
/* `-` of `-=`; `=` has none */
BinaryOp elab_compound_op(AstAssignOp op);
Val elab_make_unary(Elab *e, UnaryOp op, Val a, Span span);
Val elab_make_select(Elab *e, Val c, Val a, Val b, Span span);

/* ---- bits ------------------------------------------------------------------------------------ */

/* `& | ^ << >>`, each an intrinsic */
Val elab_make_bits(Elab *e, Intrinsic which, Val a, Val b, Span span, Span op_span);
Val elab_make_complement(Elab *e, Val a, Span span);
/* mulhi, popc, clz, random_bits, random */
Val elab_call_bits(Elab *e, Intrinsic which, Val *args, Span span);
Val elab_bits(Elab *e, Element type, Val v, Span span);
Val elab_make_call(Elab *e, Intrinsic which, Val *args, int count, Span span);
Val elab_condition(Elab *e, Val v); /* a bool; others are reported */
/* Copies an expression with axes, indexes or locals replaced: `replace` returns NULL to keep a
 * node */
Expr *elab_substitute(Elab *e, Expr *x, Expr *(*replace)(Elab *, Expr *, void *), void *data);

/* ---- folding: false if the operands are not constant or the operation fails (reported) ------- */

bool elab_fold_binary(Elab *e, BinaryOp op, Val a, Val b, Span span, Val *out);
bool elab_fold_unary(Elab *e, UnaryOp op, Val a, Span span, Val *out);
bool elab_fold_call(Elab *e, Intrinsic which, Val *args, int count, Span span, Val *out);
bool elab_float_fits(Element type, double value); /* exactly */

/* ---- expressions ----------------------------------------------------------------------------- */

Val elab_expr(Elab *e, const AstExpr *ast);
/* saves and restores the place */
Val elab_expr_at(Elab *e, const AstExpr *ast, Place place, const char *words);
bool elab_constant_integer(Elab *e, const AstExpr *ast, const char *what, int64_t least,
                           int64_t most, int64_t *out);
Val elab_resolve_name(Elab *e, const char *name, Span span);
Val elab_decl_value(Elab *e, int decl, Span use);
/* The element type that the name stands for: its own, or that of a constant; false: of none.
 * E_COUNT: a constant whose value was refused */
bool elab_named_type(Elab *e, const char *name, Span use, Element *out);
/* Values of the type are made or declared here: refuses it if the target lacks it */
void elab_need_type(Elab *e, Element type, Span use);
/* quiet: false without a message if it is no object */
bool elab_object_of(Elab *e, const AstExpr *ast, Object *out, bool quiet);
Access *elab_access_of(Elab *e, const AstExpr *ast, bool write);
bool elab_is_unknown_name(Elab *e, const AstExpr *ast);
/* Binds the indexes of a statement: unknown names in the target's subscripts with a range */
void elab_bind_indexes(Elab *e, const AstStmt *ast);      /* an AST_ASSIGN */
int elab_add_index(Elab *e, const char *name, Span span); /* -1 after an error */
/* ranges.c: begins a statement with these ranges; returns those of the enclosing one, for the
 * end, which reports ranges without an index */
RangesOf elab_ranges_begin(Elab *e, const AstIndexRanges *list); /* NULL: none */
void elab_ranges_end(Elab *e, RangesOf before);
bool elab_has_range(const Elab *e, const char *name);
/* Sets the extent of a new index if there is a range for its name */
void elab_apply_range(Elab *e, Index *index, Name *name);
/* Adds the condition of the statement to the tile, whose value is complete; `target` may be NULL.
 * False if the statement is then part of the one before it. */
bool elab_where(Elab *e, const AstStmt *ast, const Access *target, Tile *tile);
/* The value of an index: its number, after the lower bound of its range */
Val elab_index_value(Elab *e, const Name *name, Span span);
Val elab_call(Elab *e, const AstExpr *ast);
const AstItem *elab_find_fn(Elab *e, const char *name);
bool elab_is_fn_call(Elab *e, const AstExpr *ast);

/* ---- statements ------------------------------------------------------------------------------ */

Stmt *elab_stmt_new(Elab *e, StmtKind kind, Span span);
void elab_emit(Elab *e, Stmt *stmt);
void elab_stmt(Elab *e, const AstStmt *ast);
void elab_declare(Elab *e, const AstStmt *ast);  /* LET, VAR, SHARED; declare.c */
Stmt *elab_body_of(Elab *e, const AstStmt *ast); /* a block with its own scope, as one S_BLOCK */
void elab_block_items(Elab *e, const AstStmt *block);
typedef struct ScopeMark {
    size_t tiles, locals;
} ScopeMark;

ScopeMark elab_mark(const Elab *e);
/* `block` is the scope of the tiles and variables declared since `first`, except the two kept
 * ones, -1: none */
void elab_end_scope(Elab *e, Stmt *block, ScopeMark first, int kept_tile, int kept_local);
int elab_add_local(Elab *e, const char *name, Span span, LocalKind kind, Element type);
int elab_bind_local(Elab *e, AstName name, LocalKind kind, Element type);
void elab_assign_local(Elab *e, int local, Expr *value, Span span);
/* The value of a scalar; its reductions become statements. */
Val elab_scalar_value(Elab *e, const AstExpr *ast);
void elab_emit_tile(Elab *e, Tile *tile, Span span);
/* Emits a statement for each reduction of a value, which then reads the result. `space`: of the
 * statement that contains it, `target`: its target, NULL for a scalar. False if a reduction stays
 * in the value, which for a scalar is an error; reduce.c */
bool elab_hoist(Elab *e, IndexSpace *space, const Access *target, Expr *value);
/* The extents of the indexes of a statement whose target has them as subscripts; false after an
 * error: an extent is unknown */
bool elab_extents(Elab *e, const IndexSpace *space, Expr *value, int64_t *extents);
int elab_add_tile(Elab *e, const char *name, Span span, bool in_registers, Element type, int rank,
                  const int64_t *extents);
Object elab_tile_object(Elab *e, int tile);
void elab_fill_tile(Elab *e, Object object, Val value, Span span);
void elab_copy_tile(Elab *e, Object to, Object from, Span span);
bool elab_element_type(Elab *e, const AstType *type, Element *out);
bool elab_scalar_type(Elab *e, const AstType *type, Element *out);
void elab_loop_stmt(Elab *e, const AstStmt *ast);
void elab_if_stmt(Elab *e, const AstStmt *ast);
void elab_stage_stmt(Elab *e, const AstStmt *ast);

/* Ranges with `where`, live.c. loop: over the whole range, without a body. The result is true if
 * the range has a live iteration. */
Expr *elab_search_live(Elab *e, Stmt *loop, Span span);
/* A piece of such a range: its live iterations from number `from` to `to`, exclusive; NULL: to
 * the last one */
typedef struct LivePiece {
    int count; /* a local: number of live iterations so far */
    Expr *from, *to;
} LivePiece;
/* to be placed before the loop */
LivePiece elab_live_piece(Elab *e, int domain, const Val *from, const Val *to, Span span);
/* of the loop */
Stmt *elab_live_body(Elab *e, const LivePiece *piece, const AstStmt *ast, Span span);
/* let ready = try consume <p>; false: not a hint */
bool elab_declare_hint(Elab *e, const AstStmt *ast, bool variable);
void elab_assign_hint(Elab *e, const AstStmt *ast, const Name *name);
/* used as a value or a stage; reported once per hint */
void elab_refuse_hint(Elab *e, Span span, const Name *name);
/* of an acquire; -1 without one, and after an error */
int elab_hint_of(Elab *e, AstName hint, int pipe, End end);
End elab_end(AstEnd end);
/* unsafe.c */
bool elab_is_unsafe(const Elab *e);
void elab_unsafe_block(Elab *e, const AstStmt *ast);
void elab_signal_stmt(Elab *e, const AstStmt *ast); /* arrive, wait, expect, step */
void elab_ptx_stmt(Elab *e, const AstStmt *ast);
/* true if it may be without signal; false after an error */
bool elab_release_silent(Elab *e, const AstStmt *ast, int handle);
/* `if true`; also false after an error */
bool elab_unwaited(Elab *e, const AstExpr *acquire, int pipe, End end);
/* s.index, s.full, s.empty; false: none of them */
bool elab_stage_member(Elab *e, const AstExpr *ast, Val *out);
/* consume <p>.index, consume <p>.full[i], .. */
Val elab_cursor_value(Elab *e, const AstExpr *ast);
/* lane, warp, unless another name hides them */
bool elab_is_thread_word(const Elab *e, const char *name);
Val elab_thread_value(Elab *e, const char *name, Span span);
Val elab_address(Elab *e, const AstExpr *ast); /* address(s.x) */
void elab_acquire_into(Elab *e, int handle, const AstExpr *acquire, Span span);
int elab_bind_handle(Elab *e, AstName name, int pipe, End end, bool variable);
void elab_domain_ready(Elab *e, int domain, Span use);
/* Binds the parameters in `scope`; block: of a call as a statement, for which scalars become
 * locals and stages are moved; NULL in an expression. */
bool elab_pass_arguments(Elab *e, const AstItem *fn, const AstExpr *ast, Scope *scope, Stmt *block);
/* a NAME_HANDLE: its content is unknown from now on */
void elab_forget_stage(Elab *e, const Name *name);
/* true: it is borrowed, which was reported */
bool elab_refuse_borrowed(Elab *e, const Name *name, Span span, const char *verb);
/* A call that is a whole statement. Result: a local >= 0 for a scalar, or a tile. */
typedef struct Result {
    bool ok, has_tile;
    int local;
    Object tile;
} Result;
Result elab_inline_call(Elab *e, const AstExpr *ast);
void elab_return_stmt(Elab *e, const AstStmt *ast);
/* false after an error: recursion, too large */
bool elab_enter_fn(Elab *e, const AstItem *fn, const AstExpr *ast);
/* counts statements of inlining; false above the limit, reported once */
bool elab_step(Elab *e, Span span);
bool elab_always_returns(const AstStmt *ast);

/* ---- other files ----------------------------------------------------------------------------- */

void elab_ensures_item(Elab *e, const AstItem *item);
void elab_example_item(Elab *e, const AstItem *item);
void elab_claims_done(Elab *e);
void elab_order_releases(Arena *arena, Role *role);
void elab_number_turns(Role *role);

#endif
