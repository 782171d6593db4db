/* Makes a program smaller as long as it shows the same fault: removes statements, replaces
 * conditions and loops by their bodies, and expressions by their parts. */
#include "tests/adversary/judge.h"

typedef struct Shrinker {
    Arena *arena;
    const Judgement *like;       /* a wrong program that is accepted */
    const JudgeOptions *options; /* or a harmless one that is not accepted */
    Code code;                   /* of the first reason, with this severity */
    Severity severity;
    int tries;
} Shrinker;

#define TRIES_MOST 1500

/* True if this code is the first reason why the program is not accepted */
static bool is_first_code(const Judgement *judgement, const Shrinker *s) {
    for (size_t i = 0; i < judgement->compiled.diags->items.count; i++) {
        const Diag *diag = judgement->compiled.diags->items.items[i];
        if (diag->severity == s->severity) return diag->code == s->code;
    }
    return false;
}

static bool still(Shrinker *s, Program *program) {
    if (s->tries++ > TRIES_MOST) return false;
    if (s->like != NULL) return shows_fault(program, s->arena, s->like);
    Arena *inner = arena_new();
    Judgement judgement;
    judge_program(program, inner, s->options, &judgement);
    bool refused = s->severity == SEVERITY_ERROR;
    bool shows = judgement.compiled.refused == refused && !judgement.compiled.greedy &&
                 judgement.fault == FAULT_NONE && !(refused && judgement.dead) &&
                 is_first_code(&judgement, s);
    arena_free(inner);
    return shows;
}

/* The same position in a copy */
static Site site_of(Program *program, size_t at) {
    Sites sites = program_sites(program);
    return at < sites.count ? sites.items[at] : (Site){0};
}

static bool try_drop(Shrinker *s, Program **program, size_t at) {
    Program *copy = program_copy(s->arena, *program);
    Site site = site_of(copy, at);
    if (site.list == NULL) return false;
    const Stmt *stmt = site.list->items[site.at];
    bool output = stmt->kind == S_TILE && stmt->target->kind == X_TENSOR;
    if (output && s->like == NULL) return false; /* without results every program is harmless */
    stmts_remove(site.list, site.at);
    if (!still(s, copy)) return false;
    *program = copy;
    return true;
}

/* In a loop over elements, which the reference ends with the tensor: what it does must depend on
 * the elements. */
static bool is_in_elements(const Program *program, const Site *site) {
    bool inside = false;
    for (int d = 0; d < site->depth; d++) inside |= site->around[d]->inside != NULL;
    return program->tails && inside;
}

/* Replaces a condition, loop or stage by its body */
static bool try_unwrap(Shrinker *s, Program **program, size_t at, bool otherwise) {
    Program *copy = program_copy(s->arena, *program);
    Site site = site_of(copy, at);
    if (site.list == NULL) return false;
    Stmt *stmt = site.list->items[site.at];
    if (stmt->kind == S_GRID || is_in_elements(copy, &site)) return false;
    Stmts *inner = otherwise ? &stmt->otherwise : &stmt->body;
    if (stmt->body.count == 0 || (otherwise && inner->count == 0)) return false;
    stmts_remove(site.list, site.at);
    for (size_t i = 0; i < inner->count; i++)
        stmts_insert(copy, site.list, site.at + i, inner->items[i]);
    if (!still(s, copy)) return false;
    *program = copy;
    return true;
}

/* Removes all statements made for one statement of the script, or replaces them by their bodies */
static bool try_group(Shrinker *s, Program **program, int group, int how) {
    Program *copy = program_copy(s->arena, *program);
    bool any = false, again = true;
    while (again) {
        again = false;
        Sites sites = program_sites(copy);
        for (size_t i = 0; i < sites.count && !again; i++) {
            Site *site = &sites.items[i];
            Stmt *stmt = site->list->items[site->at];
            if (stmt->group != group) continue;
            Stmts none = {0}, *inner = how == 0 ? &none : how == 1 ? &stmt->body : &stmt->otherwise;
            if (how > 0 && stmt->kind != S_FOR && stmt->kind != S_IF) return false;
            stmts_remove(site->list, site->at);
            for (size_t k = 0; k < inner->count; k++)
                stmts_insert(copy, site->list, site->at + k, inner->items[k]);
            any = again = true;
        }
    }
    if (!any || !still(s, copy)) return false;
    *program = copy;
    return true;
}

static bool try_range(Shrinker *s, Program **program, int range, int which) {
    Program *copy = program_copy(s->arena, *program);
    const Expr *choices[] = {number(copy, 2), number(copy, 4), symbol(copy, SYM_K)};
    if (copy->matrix || copy->ranges[range]->kind == X_NUMBER) return false;
    copy->ranges[range] = choices[which];
    if (!still(s, copy)) return false;
    *program = copy;
    return true;
}

static bool try_simpler(Shrinker *s, Program **program, size_t at, int which) {
    Program *copy = program_copy(s->arena, *program);
    Site site = site_of(copy, at);
    if (site.list == NULL || is_in_elements(copy, &site)) return false;
    Stmt *stmt = site.list->items[site.at];
    if (stmt->kind == S_TILE && stmt->target->kind == X_TENSOR && s->like == NULL) return false;
    const Expr **slots[] = {&stmt->value, &stmt->condition, &stmt->hi};
    const Expr **slot = slots[which / 3], *expr = *slot;
    if (expr == NULL || (slot == &stmt->hi && stmt->range >= 0)) return false;
    const Expr *parts[] = {expr->a, expr->b, number(copy, 1)}, *part = parts[which % 3];
    if (part == NULL || expr->kind == X_NUMBER) return false;
    *slot = part;
    if (!still(s, copy)) return false;
    *program = copy;
    return true;
}

static bool try_role(Shrinker *s, Program **program, int role) {
    Program *copy = program_copy(s->arena, *program);
    if (copy->roles[role].warps > 1 && !copy->roles[role].warpgroups) {
        copy->roles[role].warps = 1;
    } else if (copy->roles[role].warpgroups && !copy->matrix && !copy->roles[role].in_turn &&
               copy->roles[role].instances == 1) {
        copy->roles[role].warpgroups = false;
        copy->roles[role].warps = 1;
    } else {
        return false;
    }
    if (!still(s, copy)) return false;
    *program = copy;
    return true;
}

static Program *shrink_all(Shrinker *s, Program *program) {
    bool any = true;
    while (any && s->tries < TRIES_MOST) {
        any = false;
        for (int group = program->groups; group > 0; group--)
            for (int how = 0; how < 3; how++) any |= try_group(s, &program, group, how);
        for (int range = 0; range < program->range_count; range++)
            for (int which = 0; which < 3; which++) any |= try_range(s, &program, range, which);
        for (size_t at = program_sites(program).count; at-- > 0;) any |= try_drop(s, &program, at);
        for (size_t at = program_sites(program).count; at-- > 0;) {
            any |= try_unwrap(s, &program, at, false);
            any |= try_unwrap(s, &program, at, true);
        }
        for (size_t at = program_sites(program).count; at-- > 0;)
            for (int which = 0; which < 9; which++) any |= try_simpler(s, &program, at, which);
        for (int role = 0; role < program->role_count; role++) any |= try_role(s, &program, role);
    }
    return program;
}

Program *shrink(Program *program, Arena *arena, const Judgement *like) {
    Shrinker s = {.arena = arena, .like = like};
    return shrink_all(&s, program);
}

Program *shrink_alarm(Program *program, Arena *arena, const JudgeOptions *options,
                      const Diag *diag) {
    Shrinker s = {
        .arena = arena, .options = options, .code = diag->code, .severity = diag->severity};
    return shrink_all(&s, program);
}
