/* The adversary of the path rules: random role bodies, their behaviour at given sizes, and the
 * first harm in it.
 *
 * A program is a typed tree (roles of statements over integers). All are drawn valid; most then
 * get one or two wounds. interpret.c runs the tree by the language reference, without the
 * compiler, and reports the first harm: a read of an unwritten value, a stage handed over in
 * part, a subscript outside of its tile, a race, a hang, padding that reaches a sum. main.c
 * compares this with the verdict of the checker and with runs on the emulator. */
#ifndef TESTS_ADVERSARY_H
#define TESTS_ADVERSARY_H

#include "tests/generate/generate.h"

#define WIDE        32 /* elements of a row */
#define MAX_PIPES   4
#define MAX_FIELDS  2
#define MAX_ROLES   4
#define MAX_LOCALS  300
#define MAX_TENSORS 10
#define MAX_NOTES   6
#define TENSOR_RANK 5
#define MAX_AXES    3
#define MAX_INDEXES 3
typedef struct Expr Expr;
typedef VEC(const Expr *) Operands;

typedef enum Symbol { SYM_G, SYM_K, SYM_R, SYM_N, SYM_M, SYM_Q, SYM_P, SYMBOLS } Symbol;
extern const char *const symbol_names[SYMBOLS]; /* extents, then the scalars q and p */

/* ---- expressions: 32-bit integers, floats, conditions ---------------------------------------- */

typedef enum Type { TYPE_INT, TYPE_BOOL, TYPE_REAL, TYPE_HALF } Type; /* real: f32, half: f16 */

typedef enum ExprKind {
    X_NUMBER,
    X_REAL,  /* a number of f32 */
    X_TRUTH, /* `number` is 0 or 1 */
    X_PARAM, /* a or b, of f32 */
    X_SYMBOL,
    X_LOCAL, /* a scalar, a loop variable, the grid's axis */
    X_INDEX, /* i, j, x of the statement */
    X_RANK,
    X_LANE,
    X_BINARY,
    X_SELECT,
    X_REDUCE, /* of `a` by `op` (ADD, MIN, MAX) over the index `of` */
    X_TENSOR,
    X_FIELD, /* of the stage in the handle `of` */
    X_TILE
} ExprKind;

typedef enum Op {
    DO_ADD,
    DO_SUB,
    DO_MUL,
    DO_DIV,
    DO_MOD,
    DO_MIN,
    DO_MAX,
    DO_CEIL,
    DO_EQ,
    DO_NE,
    DO_LT,
    DO_LE,
    DO_GT,
    DO_GE,
    DO_AND,
    DO_OR,
    DO_ABS,          /* of a alone */
    DO_UNSIGNED_DIV, /* of u32 */
    DO_UNSIGNED_MOD,
    DO_UNSIGNED_LT,
    DO_SCALED, /* a * b / b in 64 bits: a */
    DO_BYTE,   /* wrapped to 8 bits */
    DO_BIT_AND,
    DO_BIT_OR,
    DO_BIT_XOR,
    DO_SHIFT_LEFT, /* by a number */
    DO_SHIFT_RIGHT,
    DO_UNSIGNED_SHIFT, /* of u32 */
    DO_POPC,
    DO_CLZ,
    DO_HIGH_PRODUCT,
    /* of floats */
    DO_NOT, /* of a condition */
    DO_NEGATE,
    DO_FMA,       /* a * b + c */
    DO_EXACT_DIV, /* the others round by themselves, or as the compiler chooses */
    DO_EXACT_MUL,
    DO_RCP,
    DO_EXP,
    DO_SQRT,
    DO_TO_REAL, /* of a number */
    DO_TO_INT,  /* towards zero */
    DO_HALF,    /* rounded to f16 */
    DO_E4M3,    /* rounded to e4m3 */
    DO_SINE,    /* within 2 ulp */
    DO_POWER,   /* b of a number */
    OPS
} Op;

struct Expr { /* immutable: statements share them */
    ExprKind kind;
    Op op;
    int64_t number;
    double real;
    int of, field; /* symbol, local, index, tensor; the field of a stage */
    const Expr *a, *b, *c;
    const Expr *subs[TENSOR_RANK];
    int rank;
};

/* ---- statements ------------------------------------------------------------------------------ */

typedef enum StmtKind {
    S_FOR,
    S_GRID,
    S_IF,
    S_LEAVE,
    S_STAGE,   /* a block */
    S_ACQUIRE, /* flat; into a new handle, or assigned to one */
    S_RELEASE,
    S_MOVE,
    S_DECLARE, /* a scalar, or a tile; value: NULL, or its initial value */
    S_SET,     /* a scalar */
    S_TILE,    /* target (op)= value */
    S_CONTRACT,
    S_TURN,
    S_UNSAFE, /* body: S_ARRIVE and S_DROP */
    S_ARRIVE, /* arrives with the lanes for which the condition holds */
    S_DROP,   /* release without signal */
    S_CALL,   /* of a function: `body` */
    S_HINT,
    S_EVENT, /* of a script: hands over one stage of a pipe */
    /* of a script: `window` stages before a loop, then one per iteration */
    S_ROTATE
} StmtKind;

typedef enum Leave { LEAVE_BREAK, LEAVE_CONTINUE, LEAVE_RETURN } Leave;

typedef struct Stmt Stmt;
typedef VEC(Stmt *) Stmts;
struct Stmt {
    StmtKind kind;
    Stmts body, otherwise;
    /* local: declared, set, acquired or counted; S_MOVE: from `other` */
    int local, other;
    int range;   /* S_FOR: of a named range, or -1 */
    bool sliced; /* of its part from `lo` to `hi`; hi: NULL: to its end */
    /* S_FOR over the elements of a tile, or NULL: how many of them are inside of its tensor */
    const Expr *inside;
    /* condition: S_TILE: of the elements that are stored; NULL: all */
    const Expr *lo, *hi, *condition, *value, *target, *left, *right;
    char op; /* '=', '+', '-', '*' */
    Leave leave;
    int pipe, lag, hint, window;
    bool produce, fresh, by_lanes,
        /* ordinary: the statement itself must have an outcome */
        ordinary;
    int ranged; /* S_TILE: the extent in `for i in 0 .. n` after it; 0: none */
    int number; /* unique in the program */
    int group;  /* the script's statement that it was made for; 0: none */
    int called; /* the function that computes its formula; 0: none */
};

/* ---- programs -------------------------------------------------------------------------------- */

typedef enum LocalKind {
    LOCAL_SCALAR,
    LOCAL_LOOP,
    LOCAL_TILE,
    LOCAL_SHARED,
    LOCAL_HANDLE,
    LOCAL_HINT
} LocalKind;
typedef struct Local {
    LocalKind kind;
    bool is_let, tiny; /* tiny: elements of 8 bits */
    Type type;
    int rank, extents[2], pipe;
    const char *name; /* NULL: derived from kind and number */
} Local;

typedef struct Field {
    bool tiny, copied, tiles; /* tiles: an array, of extents[0] tiles */
    Type type;
    int rank, extents[2];
} Field;
typedef struct Pipe {
    int depth, producer, consumers[MAX_ROLES], consumer_count, field_count;
    int arrivals; /* declared for `empty`; 0: none */
    bool used;
    Field fields[MAX_FIELDS];
} Pipe;

typedef struct Role {
    Stmts body;
    int warps,
        /* instances > 1: of a warpgroup each; warps 4 and instances 1: a warpgroup */
        instances;
    bool in_turn, warpgroups;
} Role;

typedef enum Mode { TENSOR_IN, TENSOR_OUT, TENSOR_INOUT } Mode;
typedef enum Contents {
    FILL_ROWS,
    FILL_SMALL,
    FILL_DATA,
    FILL_TAIL, /* of either sign */
    FILL_POLE, /* divisors: 0, or with a finite inverse */
    FILL_TINY, /* divisors: also subnormal ones */
    FILL_NEAR  /* floats whose products are rounded */
} Contents;    /* except the first two: drawn with the sizes */
typedef struct Tensor {
    const char *name;
    Mode mode;
    Contents contents;
    bool tiny;
    Type type;
    int rank;
    struct {
        int symbol; /* or -1 */
        int number;
    } extents[TENSOR_RANK];
} Tensor;

typedef struct Require {
    Symbol symbol;
    Op op;
    int64_t number;
} Require;

typedef struct Axis { /* of the grid */
    int local;
    const Expr *extent;
    int cluster; /* blocks along it that run together; 1: none do */
} Axis;

/* The emphasis of a program; each selects other rules. Many have none. */
typedef enum Theme {
    THEME_ANY,
    THEME_TURNS,     /* instances in turn, explicit arrivals */
    THEME_WRAPS,     /* arithmetic that leaves 32 bits */
    THEME_PADDING,   /* tails of sums */
    THEME_ROTATION,  /* stages in variables, written in parts */
    THEME_VARIABLES, /* variables that loops and conditions set */
    THEME_RACES,     /* writers of tensors */
    THEME_CARRIED,   /* values that outlive a tile of the grid */
    THEME_STAGES,    /* flat stages, hints, several pipes */
    THEME_FUNCTIONS, /* parts that functions do */
    THEME_EXCHANGE,  /* roles that consume what they produce */
    THEME_CLUSTERS,  /* blocks that share copies */
    THEME_REDUCTIONS,
    THEME_ARRAYS, /* fields that are arrays of tiles */
    THEME_GRIDS,  /* several axes, and clusters along them */
    THEME_EDGES,  /* fields that are padded from different positions on */
    THEME_HELD,   /* stages that are held from tile to tile of the grid */
    THEME_FLOATS, /* conditions of floats, spelled by each role */
    THEME_DIVISORS,
    THEME_POLES,  /* factors that are infinite */
    THEME_HANDS,  /* loops over the elements of padded tiles */
    THEME_MASKS,  /* conditions of locals on positions */
    THEME_PIECES, /* ranges that roles cut differently */
    THEME_EXITS,  /* conditions on several counters */
    THEME_PAGES,  /* subscripts that are read from memory */
    THEME_NAMED,  /* elements of tiles beyond the edge, which the program names */
    THEMES
} Theme;
extern const char *const theme_names[THEMES];

/* What a program was drawn with; escapes are counted by it */
typedef enum Trait {
    TRAIT_SPELLINGS, /* conditions on floats in two spellings */
    TRAIT_DIVISOR,
    TRAIT_POLE,     /* a factor that is infinite for 0 */
    TRAIT_OVERFLOW, /* a factor that leaves its type */
    TRAIT_HAND,     /* a loop by hand */
    TRAIT_MASK,
    TRAIT_PIECES,
    TRAIT_EXITS,
    TRAIT_PAGES,
    TRAIT_NAMED,
    TRAITS
} Trait;

typedef struct Program {
    Arena *arena;
    Theme theme;
    Random random;
    uint64_t seed;
    Pipe pipes[MAX_PIPES];
    Role roles[MAX_ROLES];
    Local locals[MAX_LOCALS];
    Tensor tensors[MAX_TENSORS];
    Require requires[MAX_NOTES];
    const Expr *ranges[MAX_NOTES]; /* their upper ends */
    const Expr *wheres[MAX_NOTES]; /* conditions of their iterations; NULL: all */
    int counters[MAX_NOTES];       /* the local that counts in `where` */
    int pipe_count, role_count, local_count, tensor_count, require_count, range_count, groups;
    int functions; /* how many there are */
    Axis axes[MAX_AXES];
    int axis_count;
    /* matrix, edges: its sums must not include padding */
    bool persistent, matrix, edges;
    /* reals: it has the parameters a and b. tails: padding is judged by another run, without it */
    bool reals, tails;
    /* elements beyond the edge that the program names are zero in that run */
    bool named;
    bool large; /* its tiles have many elements: fewer sizes are tried */
    bool traits[TRAITS];
    const Expr *tie; /* -b is about its value, for an element of X; NULL: b is drawn */
    const char *wounds[MAX_NOTES];
    int wound_count;
    /* a wound breaks a rule about the text only: must be refused, harmless or not */
    bool textual;
} Program;

/* ---- making (make.c) ------------------------------------------------------------------------- */

uint32_t pick(Program *program, uint32_t below);
bool often(Program *program, int percent);

Expr *expr_new(Program *program, ExprKind kind, int of);
const Expr *number(Program *program, int64_t value);
const Expr *real(Program *program, double value); /* rounded to f32 */
const Expr *truth(Program *program, bool value);
const Expr *param(Program *program, int which); /* 0: a, 1: b */
const Expr *symbol(Program *program, Symbol which);
const Expr *unary(Program *program, Op op, const Expr *a);
Type expr_type(const Program *program, const Expr *expr);
const Expr *local_of(Program *program, int local);
const Expr *any_axis(Program *program); /* of the grid */
void axis_add(Program *program, const Expr *extent, int cluster);
int cluster_size(const Program *program); /* in blocks */
/* True if its grid is printed as a dynamic one: a third of those whose roles take all tiles
 * of the grid, two thirds with the theme held */
bool is_dynamic(const Program *program);
bool pipe_is_used(const Program *program, int pipe); /* some role acquires a stage of it */
const Expr *index_of(Program *program, int which);
const Expr *binary(Program *program, Op op, const Expr *a, const Expr *b);
const Expr *choose(Program *program, const Expr *c, const Expr *a, const Expr *b);
const Expr *reduced(Program *program, Op op, int index, const Expr *body);
const Expr *element(Program *program, ExprKind kind, int of, int field, const Expr *first,
                    const Expr *second, const Expr *third);
bool is_tiny(const Program *program, const Expr *target);
/* Is it an element of an array of tiles? The first subscript is that of the tile. */
bool is_of_tiles(const Program *program, const Expr *expr);
bool expr_mentions(const Expr *expr, ExprKind kind, int of); /* of: -1 any */
/* Replaces `to` by `from` in the tree; `to` is compared by pointer. */
const Expr *expr_replace(Program *program, const Expr *expr, const Expr *from, const Expr *to);

Stmt *stmt_new(Program *program, StmtKind kind);
/* A statement about a stage variable, or about two; other: -1: none */
Stmt *stmt_of_handle(Program *program, StmtKind kind, int handle, int other);
Stmt *assign(Program *program, const Expr *target, char op, const Expr *value);
Stmt *if_new(Program *program, const Expr *condition);
Stmt *for_new(Program *program, int local, const Expr *hi);
void stmts_add(Program *program, Stmts *stmts, Stmt *stmt);
void stmts_insert(Program *program, Stmts *stmts, size_t at, Stmt *stmt);
Stmt *stmts_remove(Stmts *stmts, size_t at);
Stmts stmts_copy(Program *program, const Stmts *stmts);
Stmt *stmt_copy(Program *program, const Stmt *stmt);
Program *program_copy(Arena *arena, const Program *program);

int local_new(Program *program, LocalKind kind);
int tile_new(Program *program, LocalKind kind, int rank, int first, int second);
int tensor_new(Program *program, const char *name, Mode mode, Contents contents, int rank);

/* A position in a list, and its context */
typedef struct Site {
    Stmts *list;
    size_t at;
    int role, loops; /* loops around it, except the grid's */
    const Stmt *around[24];
    int depth;
    bool in_grid;
} Site;
typedef VEC(Site) Sites;
/* All statements of all roles in the order of the text */
Sites program_sites(Program *program);

/* Sets the extents of indexes that are alone in a subscript of a tile. evaluate.c */
void find_extents(const Program *program, const Expr *expr, int *extents);

/* ---- operations ------------------------------------------------------------------------------ */

/* theme: THEMES: draws one */
Program *program_draw(Arena *arena, uint64_t seed, Theme theme);
void draw_vectors(Program *program);   /* vectors.c */
void draw_matrices(Program *program);  /* matrices.c */
void draw_edges(Program *program);     /* edges.c */
void draw_held(Program *program);      /* held.c */
void draw_floats(Program *program);    /* floats.c */
void draw_divisors(Program *program);  /* floats.c */
void draw_tails(Program *program);     /* tails.c */
void draw_pieces(Program *program);    /* pieces.c */
void draw_exits(Program *program);     /* pieces.c */
void draw_pages(Program *program);     /* pages.c */
void draw_named(Program *program);     /* named.c */
void draw_functions(Program *program); /* functions.c */
bool wound(Program *program);          /* wounds.c; false: no position for the drawn wound */
const char *program_text(Program *program);
const char *stmt_text(Program *program, const Stmt *stmt); /* its first line; NULL: "the end" */

/* ---- functions ------------------------------------------------------------------------------- */

typedef enum ParamKind {
    PARAM_TENSOR,
    PARAM_SYMBOL,
    PARAM_REAL,
    PARAM_SCALAR,
    PARAM_TILE,
    PARAM_STAGE
} ParamKind;
typedef struct Param {
    ParamKind kind;
    int of;       /* tensor, symbol or local */
    bool written; /* a stage: taken over */
} Param;
typedef VEC(Param) Params;
/* May a function compute it? */
bool is_formula(const Expr *expr);
/* Arguments of a call: all names in the body that it does not declare */
Params call_params(const Program *program, Arena *arena, const Stmt *call);

/* ---- outcomes -------------------------------------------------------------------------------- */

#define DATA_MOST 8

typedef struct Sizes {
    int64_t values[SYMBOLS];
    double reals[2]; /* a and b */
    int contents;    /* fill of the data tensors */
    int divisors;    /* fill of those that divide */
} Sizes;
bool sizes_meet(const Program *program, const Sizes *sizes);
void sizes_draw(Program *program, Random *random, int round, Sizes *sizes);
const char *sizes_text(Arena *arena, const Sizes *sizes);
int64_t tensor_extent(const Tensor *tensor, int axis, const Sizes *sizes);
/* before the run */
int32_t tensor_value(const Program *program, int tensor, int64_t at, const Sizes *sizes);
/* of a tensor of floats */
double tensor_real(const Program *program, int tensor, int64_t at, const Sizes *sizes);

typedef enum Harm {
    HARM_NONE,
    HARM_UNWRITTEN, /* a variable or tile is read before it is written */
    HARM_PAYLOAD,   /* a stage is handed over in part */
    HARM_BYTES,     /* by copies of other sizes */
    HARM_LINEAR,
    HARM_OUTSIDE,
    HARM_THREADS, /* one statement writes an element twice */
    HARM_RACE,
    HARM_HANG,
    HARM_COUNTS,
    HARM_PADDING,
    HARM_CARRIED, /* the result depends on the number of resident blocks */
    HARM_ARRIVALS,
    HARM_HINT,
    HARM_LONG, /* not followed to the end */
    HARMS
} Harm;
extern const char *const harm_names[HARMS];

/* A float as the language defines it: between lo and hi, whatever the compiler contracts; x:
 * without contraction. All are NaN for NaN; from -inf to inf, it may be NaN as well. */
typedef struct Real {
    double x, lo, hi;
} Real;
bool real_has(Real r, double got);
bool real_meets(Real a, Real b); /* may they be equal? */
double real_half(double x);      /* the nearest one of f16 */

typedef struct Outcome {
    Harm harm;
    bool wrapped; /* a number that decides something left 32 bits */
    /* a sum includes values computed from zeros beyond the edge of a tensor */
    bool padded;
    const Stmt *stmt;
    int64_t where;
    /* of written tensors; before the run: see tensor_value */
    int32_t *results[MAX_TENSORS];
    Real *reals[MAX_TENSORS]; /* instead of them, if it has floats */
    bool vague;               /* a condition on floats is not decided: results are unknown */
    bool divided;             /* an integer by zero: on a GPU, results are unknown */
    int64_t tiles;
} Outcome;
/* What a statement does at some sizes */
typedef struct Seen {
    bool ran;
    bool padded; /* includes padding; also where `padded` of the outcome is not set (padded.c) */
} Seen;

/* inside: without the padding of tiles, as far as loops and reductions run over them.
 * seen: by number of the statement; may be NULL */
void interpret(const Program *program, const Sizes *sizes, int resident, bool inside, Seen *seen,
               Arena *arena, Outcome *out);
/* Numbers the statements and returns their count */
size_t program_number(Program *program);

#endif
