/* Rows and regions, as words of a key (prog/key.h). Fields that passes set are left out, and also
 * the statements, because rows represent them. */
#include "flow/code.h"
#include "prog/key.h"

static void write_region(Key *key, const Region *region, size_t axes) {
    KEY_INTS(key, (int)region->kind, region->parent, region->depth, region->loop, region->begin,
             region->end, region->next, region->otherwise, region->left, region->var,
             region->domain, region->whole, region->unroll, region->nonempty, region->search,
             region->turn, region->taken, region->body);
    key_span(key, region->span), key_span(key, region->head);
    KEY_INTS(key, (int)region->control, (int)region->along);
    if (region->kind == REGION_GRID) key_ints(key, axes, region->axes);
    key_expr(key, region->lo), key_expr(key, region->hi), key_expr(key, region->where);
    key_expr(key, region->condition), key_expr(key, region->from), key_expr(key, region->to);
}

static void write_row(Key *key, const Row *row) {
    KEY_INTS(key, (int)row->kind, row->region, row->handle, row->other, row->hint, row->late,
             row->lag, row->turn, row->target, row->again, row->leaving, row->block, row->unwaited,
             row->after_block, row->every, row->index, row->local, (int)row->object);
    key_span(key, row->span), key_span(key, row->head), key_span(key, row->statement);
    key_expr(key, row->value);
    key_tile(key, row->tile);
    key_unsafe(key, row->unsafe);
    (void)key_has(key, row->stmt);
}

static void write_code(Key *key, const FlowCode *code) {
    key_word(key, (uint32_t)code->rows.count);
    for (size_t i = 0; i < code->rows.count; i++) write_row(key, &code->rows.items[i]);
    key_word(key, (uint32_t)code->regions.count);
    for (size_t i = 0; i < code->regions.count; i++)
        write_region(key, &code->regions.items[i], code->prog->axes.count);
    key_word(key, (uint32_t)code->lates.count);
    for (size_t i = 0; i < code->lates.count; i++) {
        const Late *late = &code->lates.items[i];
        KEY_INTS(key, late->handle, late->loop, late->acquire, late->lag, late->direct);
        key_span(key, late->head);
    }
}

void code_key(Key *key, const Prog *prog) {
    key_prog(key, prog);
    for (size_t r = 0; r < prog->roles.count; r++) write_code(key, prog->roles.items[r].code);
}
