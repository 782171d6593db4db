/* `grid dynamic`: a role of its own draws the numbers of tiles in order, the next one when a tile
 * is begun, and hands each to every role that loops over the grid. The number after the last tile
 * ends their loops.
 *
 * One of these roles tells that it begins a tile, the one that waits for others least. Numbers that
 * some role has not taken yet are kept in a ring, so a role that waits for another one in front of
 * its loop stops all. */
#include "tests/adversary/machine.h"

#define KEPT_LEAST 2
#define KEPT_MOST  32

static bool takes_numbers(const Role *role) {
    for (size_t i = 0; i < role->body.count; i++)
        if (role->body.items[i]->kind == S_GRID) return true;
    return false;
}

/* 2: it waits for no other role. Instances in turn wait for each other. */
static int earliness(const Program *program, int role) {
    int early = program->roles[role].in_turn ? 0 : 2;
    for (int i = 0; i < program->pipe_count && early == 2; i++)
        for (int c = 0; c < program->pipes[i].consumer_count; c++)
            if (program->pipes[i].consumers[c] == role && pipe_is_used(program, i)) early = 1;
    return early;
}

Draws draws_of(const Program *program) {
    Draws draws = {.kept = KEPT_LEAST, .first = -1};
    if (!is_dynamic(program)) return draws;
    for (int i = 0; i < program->pipe_count; i++)
        if (pipe_is_used(program, i)) draws.kept += program->pipes[i].depth;
    if (draws.kept > KEPT_MOST) draws.kept = KEPT_MOST;
    for (int r = 0; r < program->role_count; r++)
        if (takes_numbers(&program->roles[r]) &&
            (draws.first < 0 || earliness(program, r) > earliness(program, draws.first)))
            draws.first = r;
    return draws;
}

bool draws_have_next(const Machine *m, const Process *p) {
    if (m->draws.first < 0) return true;
    for (int i = 0; i < m->process_count; i++) {
        const Process *other = m->processes[i];
        bool waits = other->role_number == m->draws.first && other->begun < p->taken;
        if (waits || (takes_numbers(other->role) && other->taken <= p->taken - m->draws.kept))
            return false;
    }
    return true;
}
