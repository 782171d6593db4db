/* Lowers a role to flat code; leaves release the stages of the blocks that they leave. */
#include "tests/adversary/machine.h"

typedef struct Around { /* the statements around one, innermost first */
    struct Around *outer;
    const Stmt *stmt; /* a loop, a block of a stage, a turn */
    VEC(int) breaks;  /* jumps to the end */
    VEC(int) continues;
} Around;

typedef struct Flattener {
    const Program *program;
    Arena *arena;
    Instrs *out;
    Around *around;
} Flattener;

static int emit(Flattener *f, InstrKind kind, const Stmt *stmt) {
    vec_push(f->arena, f->out, (Instr){.kind = kind, .stmt = stmt, .target = -1});
    return (int)f->out->count - 1;
}

static void aim(Flattener *f, int at) { f->out->items[at].target = (int)f->out->count; }

static bool is_loop(const Stmt *stmt) { return stmt->kind == S_FOR || stmt->kind == S_GRID; }

static void flatten_list(Flattener *f, const Stmts *stmts);

static void leave_around(Flattener *f, const Around *around) {
    const Stmt *stmt = around->stmt;
    if (stmt->kind == S_TURN) emit(f, I_PASS, stmt);
    if (stmt->kind != S_STAGE) return;
    const Around *loop = around->outer;
    while (loop != NULL && !is_loop(loop->stmt)) loop = loop->outer;
    int at = emit(f, stmt->lag > 0 && loop != NULL ? I_KEEP : I_RELEASE, stmt);
    f->out->items[at].loop = loop ? loop->stmt : NULL;
}

static void flatten_leave(Flattener *f, const Stmt *leave) {
    for (Around *around = f->around; around != NULL; around = around->outer) {
        bool loop = is_loop(around->stmt);
        if (around->stmt->kind == S_CALL) { /* breaks and continues stay in the function */
            vec_push(f->arena, &around->breaks, emit(f, I_JUMP, leave));
            return;
        }
        if (loop && leave->leave == LEAVE_BREAK) {
            vec_push(f->arena, &around->breaks, emit(f, I_JUMP, leave));
            return;
        }
        if (loop && leave->leave == LEAVE_CONTINUE) {
            vec_push(f->arena, &around->continues, emit(f, I_JUMP, leave));
            return;
        }
        leave_around(f, around);
        if (loop) emit(f, I_FLUSH, around->stmt);
    }
    emit(f, I_END, leave);
}

static void flatten_loop(Flattener *f, const Stmt *stmt) {
    bool grid = stmt->kind == S_GRID;
    Around around = {.outer = f->around, .stmt = stmt};
    emit(f, I_ENTER, stmt);
    int test = emit(f, grid ? I_GRID : I_TEST, stmt);
    f->around = &around;
    flatten_list(f, &stmt->body);
    f->around = around.outer;
    for (size_t i = 0; i < around.continues.count; i++) aim(f, around.continues.items[i]);
    int next = emit(f, grid ? I_GRID_NEXT : I_NEXT, stmt);
    f->out->items[next].target = test;
    aim(f, test);
    for (size_t i = 0; i < around.breaks.count; i++) aim(f, around.breaks.items[i]);
    emit(f, I_FLUSH, stmt);
}

static void flatten_if(Flattener *f, const Stmt *stmt) {
    int branch = emit(f, I_BRANCH, stmt);
    flatten_list(f, &stmt->body);
    if (stmt->otherwise.count > 0) {
        int jump = emit(f, I_JUMP, stmt);
        aim(f, branch);
        flatten_list(f, &stmt->otherwise);
        aim(f, jump);
    } else {
        aim(f, branch);
    }
}

static void flatten_inside(Flattener *f, const Stmt *stmt, InstrKind first) {
    Around around = {.outer = f->around, .stmt = stmt};
    emit(f, first, stmt);
    f->around = &around;
    flatten_list(f, &stmt->body);
    f->around = around.outer;
    leave_around(f, &around);
}

static void flatten_call(Flattener *f, const Stmt *stmt) {
    Around around = {.outer = f->around, .stmt = stmt};
    emit(f, I_STMT, stmt);
    f->around = &around;
    flatten_list(f, &stmt->body);
    f->around = around.outer;
    for (size_t i = 0; i < around.breaks.count; i++) aim(f, around.breaks.items[i]);
}

static void flatten_list(Flattener *f, const Stmts *stmts) {
    for (size_t i = 0; i < stmts->count; i++) {
        const Stmt *stmt = stmts->items[i];
        switch (stmt->kind) {
        case S_FOR:
        case S_GRID: flatten_loop(f, stmt); break;
        case S_IF: flatten_if(f, stmt); break;
        case S_UNSAFE: flatten_list(f, &stmt->body); break;
        case S_LEAVE: flatten_leave(f, stmt); break;
        case S_STAGE: flatten_inside(f, stmt, I_ACQUIRE); break;
        case S_CALL: flatten_call(f, stmt); break;
        case S_TURN: flatten_inside(f, stmt, I_TAKE); break;
        case S_ACQUIRE: emit(f, I_ACQUIRE, stmt); break;
        case S_RELEASE:
        case S_DROP: emit(f, I_RELEASE, stmt); break;
        case S_MOVE:
        case S_DECLARE:
        case S_SET:
        case S_TILE:
        case S_CONTRACT:
        case S_ARRIVE:
        case S_HINT: emit(f, I_STMT, stmt); break;
        case S_EVENT:
        case S_ROTATE: break;
        }
    }
}

void flatten(const Program *program, Arena *arena, const Role *role, Instrs *out) {
    Flattener f = {.program = program, .arena = arena, .out = out};
    flatten_list(&f, &role->body);
    emit(&f, I_END, NULL);
}
