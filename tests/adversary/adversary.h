/* The adversary of the path rules: random role bodies, what they do at given sizes, and what is
 * wrong with that.
 *
 * A program is a typed tree (roles of statements over whole numbers). All are drawn valid;
 * most then get one or two wounds. interpret.c runs the tree by the language reference, without
 * the compiler, and names the first harm that it comes to: an unwritten value that is read, a
 * stage handed over in part, a subscript outside of its tile, a race, a hang, padding that
 * reaches a sum. main.c compares this with the verdict of the checker and with runs on the
 * emulator. */
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
#define TENSOR_RANK 3
#define MAX_INDEXES 3

typedef enum Symbol { SYM_G, SYM_K, SYM_R, SYM_N, SYM_M, SYM_Q, SYM_P, SYMBOLS } Symbol;
extern const char *const symbol_names[SYMBOLS]; /* extents, then the scalars q and p */

/* ---- expressions: 32-bit whole numbers ---- */

typedef enum ExprKind {
    X_NUMBER,
    X_SYMBOL,
    X_LOCAL, /* a scalar, a loop's variable, the grid's axis */
    X_INDEX, /* i, j, x of the statement */
    X_RANK,
    X_LANE,
    X_BINARY,
    X_SELECT,
    X_TENSOR,
    X_FIELD, /* of the stage that the handle `of` holds */
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
    OPS
} Op;

typedef struct Expr Expr;
struct Expr { /* never changed once it is made: statements share them */
    ExprKind kind;
    Op op;
    int64_t number;
    int of, field; /* symbol, local, index, tensor; the field of a stage */
    const Expr *a, *b, *c;
    const Expr *subs[TENSOR_RANK];
    int rank;
};

/* ---- statements ---- */

typedef enum StmtKind {
    S_FOR,
    S_GRID,
    S_IF,
    S_LEAVE,
    S_STAGE,   /* a block */
    S_ACQUIRE, /* flat; into a new handle, or assigned to one */
    S_RELEASE,
    S_MOVE,
    S_DECLARE, /* a scalar, or a tile; value: NULL, or what it begins with */
    S_SET,     /* a scalar */
    S_TILE,    /* target (op)= value */
    S_CONTRACT,
    S_TURN,
    S_UNSAFE, /* body: of the next two */
    S_ARRIVE, /* the lanes arrive that the condition holds for */
    S_DROP,   /* release without signal */
    S_HINT,
    S_EVENT, /* of a script: one stage of a pipe is handed over */
    S_ROTATE /* of a script: `window` stages before a loop, then one an iteration */
} StmtKind;

typedef enum Leave { LEAVE_BREAK, LEAVE_CONTINUE, LEAVE_RETURN } Leave;

typedef struct Stmt Stmt;
typedef VEC(Stmt *) Stmts;
struct Stmt {
    StmtKind kind;
    Stmts body, otherwise;
    int local, other; /* what is declared, set, acquired, counted; S_MOVE: from `other` */
    int range;        /* S_FOR: of a named range, or -1 */
    const Expr *lo, *hi, *condition, *value, *target, *left, *right;
    char op; /* '=', '+', '-' */
    Leave leave;
    int pipe, lag, hint, window;
    bool produce, fresh, by_lanes,
        ordinary;             /* ordinary: an outcome is needed from the statement itself */
    int extents[MAX_INDEXES]; /* of the indexes; 0: not known yet */
    int number;               /* among all of the program */
    int group;                /* of the script's statement that it was made for; 0: none */
};

/* ---- programs ---- */

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
    int rank, extents[2], pipe;
    const char *name; /* NULL: made of its kind and number */
} Local;

typedef struct Field {
    bool tiny, copied;
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
        instances; /* instances > 1: of a warpgroup each; warps 4 and instances 1: a warpgroup */
    bool in_turn, warpgroups;
} Role;

typedef enum Mode { TENSOR_IN, TENSOR_OUT, TENSOR_INOUT } Mode;
typedef enum Contents {
    FILL_ROWS,
    FILL_SMALL,
    FILL_DATA
} Contents; /* FILL_DATA: drawn with the sizes */
typedef struct Tensor {
    const char *name;
    Mode mode;
    Contents contents;
    bool tiny;
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

/* What a program is likely to hold; each leads to other rules. Many have none. */
typedef enum Theme {
    THEME_ANY,
    THEME_TURNS,     /* instances in turn, arrivals by hand */
    THEME_WRAPS,     /* arithmetic that leaves 32 bits */
    THEME_PADDING,   /* tails of sums */
    THEME_ROTATION,  /* stages in variables, written in parts */
    THEME_VARIABLES, /* variables that loops and conditions set */
    THEME_RACES,     /* who writes what */
    THEME_CARRIED,   /* what lives longer than a tile of the grid */
    THEME_STAGES,    /* flat stages, hints, several pipes */
    THEMES
} Theme;
extern const char *const theme_names[THEMES];

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
    const Expr *wheres[MAX_NOTES]; /* which iterations they have; NULL: all of them */
    int counters[MAX_NOTES];       /* the local that counts in `where` */
    int pipe_count, role_count, local_count, tensor_count, require_count, range_count, groups;
    bool persistent, matrix;
    int axis;          /* the local */
    const Expr *tiles; /* of the grid */
    const char *wounds[MAX_NOTES];
    int wound_count;
    bool textual; /* a wound breaks a rule about the text alone: to be refused, harmless or not */
} Program;

/* ---- making (make.c) ---- */

uint32_t pick(Program *program, uint32_t below);
bool often(Program *program, int percent);

Expr *expr_new(Program *program, ExprKind kind, int of);
const Expr *number(Program *program, int64_t value);
const Expr *symbol(Program *program, Symbol which);
const Expr *local_of(Program *program, int local);
const Expr *index_of(Program *program, int which);
const Expr *binary(Program *program, Op op, const Expr *a, const Expr *b);
const Expr *choose(Program *program, const Expr *c, const Expr *a, const Expr *b);
const Expr *element(Program *program, ExprKind kind, int of, int field, const Expr *first,
                    const Expr *second, const Expr *third);
bool is_tiny(const Program *program, const Expr *target);
bool expr_mentions(const Expr *expr, ExprKind kind, int of); /* of: -1 any */
/* The tree with `from` in place of `to`; from is compared by pointer. */
const Expr *expr_replace(Program *program, const Expr *expr, const Expr *from, const Expr *to);

Stmt *stmt_new(Program *program, StmtKind kind);
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

/* A place in a list, with what is around it */
typedef struct Site {
    Stmts *list;
    size_t at;
    int role, loops; /* loops around it, the grid's not counted */
    const Stmt *around[24];
    int depth;
    bool in_grid;
} Site;
typedef VEC(Site) Sites;
/* All statements of all roles in the order of the text */
Sites program_sites(Program *program);

/* ---- what is done with them ---- */

/* theme: THEMES: drawn as well */
Program *program_draw(Arena *arena, uint64_t seed, Theme theme);
void draw_vectors(Program *program);  /* vectors.c */
void draw_matrices(Program *program); /* matrices.c */
bool wound(Program *program);         /* wounds.c; false: no place for what was drawn */
const char *program_text(Program *program);
const char *stmt_text(Program *program, const Stmt *stmt); /* its first line; NULL: "the end" */

/* ---- what happens ---- */

#define DATA_MOST 8

typedef struct Sizes {
    int64_t values[SYMBOLS];
    int contents; /* how the tensors of data are filled */
} Sizes;
bool sizes_meet(const Program *program, const Sizes *sizes);
void sizes_draw(Program *program, Random *random, int round, Sizes *sizes);
const char *sizes_text(Arena *arena, const Sizes *sizes);
int64_t tensor_extent(const Tensor *tensor, int axis, const Sizes *sizes);
int32_t tensor_value(const Program *program, int tensor, int64_t at,
                     const Sizes *sizes); /* before the run */

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

typedef struct Outcome {
    Harm harm;
    bool wrapped; /* a number that decides something left 32 bits */
    bool padded;  /* a sum takes in what was computed from zeros beyond the edge of a tensor */
    const Stmt *stmt;
    int64_t where;
    int32_t
        *results[MAX_TENSORS]; /* of tensors that are written; before the run: see tensor_value */
} Outcome;
/* ran: by number of the statement, set for those that run; NULL: not asked for */
void interpret(const Program *program, const Sizes *sizes, int resident, bool *ran, Arena *arena,
               Outcome *out);
/* Numbers the statements, and says how many there are */
size_t program_number(Program *program);

#endif
