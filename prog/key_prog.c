/* The kernel and its roles, as words of a key: what elaboration leaves in a Prog. */
#include "prog/key.h"

/* ---- roles ----------------------------------------------------------------------------------- */

static void write_local(Key *key, const Local *local) {
    key_text(key, local->name);
    key_span(key, local->span);
    KEY_INTS(key, (int)local->kind, (int)local->type, (int)local->uniformity, local->scoped,
             local->in_grid, local->axis);
    key_word(key, local->along);
    key_expr(key, local->value), key_expr(key, local->lo), key_expr(key, local->hi);
}

static void write_handle(Key *key, const Handle *handle) {
    key_text(key, handle->name);
    key_span(key, handle->span);
    KEY_INTS(key, handle->pipe, (int)handle->end, handle->variable, handle->parameter,
             handle->forgotten);
}

static void write_hint(Key *key, const Hint *hint) {
    key_text(key, hint->name);
    key_span(key, hint->span);
    KEY_INTS(key, hint->pipe, (int)hint->end, hint->variable);
}

static void write_role_tile(Key *key, const RoleTile *tile) {
    key_text(key, tile->name);
    key_span(key, tile->span);
    KEY_INTS(key, tile->in_registers, tile->reduced, (int)tile->type, tile->until,
             tile->address_taken);
    key_word(key, (uint32_t)tile->rank);
    for (int i = 0; i < tile->rank; i++) key_wide(key, tile->extents[i]);
}

static void write_role(Key *key, const Prog *prog, const Role *role) {
    key_text(key, role->name);
    key_span(key, role->span);
    KEY_INTS(key, role->instances, role->warps, role->warpgroups, role->in_turn, role->turns,
             role->regs, role->forgotten, role->body != NULL);
    key_word(key, (uint32_t)role->locals.count);
    for (size_t i = 0; i < role->locals.count; i++) write_local(key, &role->locals.items[i]);
    key_word(key, (uint32_t)role->handles.count);
    for (size_t i = 0; i < role->handles.count; i++) write_handle(key, &role->handles.items[i]);
    key_word(key, (uint32_t)role->hints.count);
    for (size_t i = 0; i < role->hints.count; i++) write_hint(key, &role->hints.items[i]);
    key_word(key, (uint32_t)role->tiles.count);
    for (size_t i = 0; i < role->tiles.count; i++) write_role_tile(key, &role->tiles.items[i]);
    key_word(key, role->pipes != NULL);
    for (size_t i = 0; role->pipes != NULL && i < prog->pipes.count; i++)
        key_word(key, role->pipes[i].agents & AGENT_BIT(ADDRESS));
}

/* ---- what the kernel declares ---------------------------------------------------------------- */

static void write_param(Key *key, const Param *param) {
    key_text(key, param->name);
    key_span(key, param->span);
    KEY_INTS(key, param->is_tensor, (int)param->mode, (int)param->type, param->symbol,
             param->by_pointer, param->joined);
    key_word(key, (uint32_t)param->rank);
    for (int i = 0; i < param->rank; i++) key_expr(key, param->extents[i]);
}

static void write_field(Key *key, const Field *field) {
    key_text(key, field->name);
    key_span(key, field->span);
    KEY_INTS(key, (int)field->type, field->count, field->is_array, field->address_taken[0],
             field->address_taken[1]);
    key_wide(key, field->elements);
    key_word(key, (uint32_t)field->rank);
    for (int i = 0; i < field->rank; i++) key_wide(key, field->extents[i]);
}

static void write_pipe(Key *key, const Pipe *pipe) {
    key_text(key, pipe->name);
    key_span(key, pipe->span);
    KEY_INTS(key, pipe->stages, pipe->producer, pipe->unproved, pipe->faulty);
    key_word(key, (uint32_t)pipe->consumers.count);
    key_ints(key, pipe->consumers.count, pipe->consumers.items);
    for (int end = 0; end < 2; end++) {
        key_wide(key, pipe->declared[end]);
        key_span(key, pipe->declared_at[end]);
    }
    key_word(key, (uint32_t)pipe->fields.count);
    for (size_t i = 0; i < pipe->fields.count; i++) write_field(key, &pipe->fields.items[i]);
}

static void write_grid(Key *key, const Prog *prog) {
    key_word(key, (uint32_t)prog->axes.count);
    for (size_t i = 0; i < prog->axes.count; i++) {
        const Axis *axis = &prog->axes.items[i];
        key_text(key, axis->name);
        key_span(key, axis->span);
        key_word(key, (uint32_t)axis->cluster);
        key_expr(key, axis->extent), key_expr(key, axis->padded);
    }
    key_word(key, (uint32_t)prog->domains.count);
    for (size_t i = 0; i < prog->domains.count; i++) {
        const Domain *domain = &prog->domains.items[i];
        key_text(key, domain->name);
        key_span(key, domain->span);
        key_expr(key, domain->lo), key_expr(key, domain->hi), key_expr(key, domain->where);
    }
}

static void write_preconditions(Key *key, const Prog *prog) {
    key_word(key, (uint32_t)prog->preconditions.count);
    for (size_t i = 0; i < prog->preconditions.count; i++) {
        const Precondition *row = &prog->preconditions.items[i];
        key_expr(key, row->condition);
        key_text(key, row->text), key_text(key, row->reason), key_text(key, row->help);
        key_span(key, row->span);
        key_word(key, row->of_width);
        key_word(key, (uint32_t)row->pitch_of);
    }
}

/* ---- `ensures` and `example` ----------------------------------------------------------------- */

static void write_let(Key *key, const Let *let) {
    key_text(key, let->name);
    key_span(key, let->span);
    key_space(key, &let->space);
    KEY_INTS(key, (int)let->type, let->rank);
    key_expr(key, let->value);
}

static void write_claim(Key *key, const Claim *claim) {
    key_span(key, claim->span);
    key_space(key, &claim->space);
    key_access(key, &claim->target);
    key_expr(key, claim->value);
    key_number(key, claim->within), key_number(key, claim->absolute);
}

static void write_example(Key *key, const Example *example) {
    key_text(key, example->name), key_text(key, example->fill);
    key_span(key, example->span);
    KEY_INTS(key, (int)example->kind, example->is_integer, example->param);
    key_number(key, example->number);
    key_wide(key, example->integer);
    key_space(key, &example->space);
    key_expr(key, example->value);
}

static void write_claims(Key *key, const Prog *prog) {
    key_word(key, (uint32_t)prog->lets.count);
    for (size_t i = 0; i < prog->lets.count; i++) write_let(key, &prog->lets.items[i]);
    key_word(key, (uint32_t)prog->claims.count);
    for (size_t i = 0; i < prog->claims.count; i++) write_claim(key, &prog->claims.items[i]);
    key_word(key, (uint32_t)prog->examples.count);
    for (size_t i = 0; i < prog->examples.count; i++) write_example(key, &prog->examples.items[i]);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void write_constants(Key *key, const Prog *prog) {
    key_word(key, (uint32_t)prog->constants.count);
    for (size_t i = 0; i < prog->constants.count; i++) {
        const Constant *constant = &prog->constants.items[i];
        key_text(key, constant->name);
        key_span(key, constant->span);
        KEY_INTS(key, constant->is_static, constant->read, constant->is_type);
        key_expr(key, constant->value);
        key_word(key, (uint32_t)constant->choices.count);
        for (size_t c = 0; c < constant->choices.count; c++)
            key_wide(key, constant->choices.items[c]);
    }
}

static void write_head(Key *key, const Prog *prog) {
    key_text(key, prog->name);
    key_text(key, prog->variant);
    key_span(key, prog->span);
    key_text(key, prog->target->name);
    key_span(key, prog->target_span);
    key_word(key, prog->lacks);
    KEY_INTS(key, prog->persistent, prog->cluster, prog->cluster_refused, prog->touches_peers,
             prog->grouped);
    key_span(key, prog->cluster_span);
    KEY_INTS(key, prog->draws.role, prog->draws.tiles, prog->draws.begun);
    key_span(key, prog->draws.span);
}

void key_prog(Key *key, const Prog *prog) {
    write_head(key, prog);
    write_constants(key, prog);
    key_word(key, (uint32_t)prog->symbols.count);
    for (size_t i = 0; i < prog->symbols.count; i++) {
        const Symbol *symbol = &prog->symbols.items[i];
        key_text(key, symbol->name);
        key_span(key, symbol->span);
        KEY_INTS(key, symbol->is_extent, symbol->param, symbol->axis, symbol->times, symbol->plus);
    }
    key_word(key, (uint32_t)prog->params.count);
    for (size_t i = 0; i < prog->params.count; i++) write_param(key, &prog->params.items[i]);
    write_grid(key, prog);
    key_word(key, (uint32_t)prog->pipes.count);
    for (size_t i = 0; i < prog->pipes.count; i++) write_pipe(key, &prog->pipes.items[i]);
    key_word(key, (uint32_t)prog->roles.count);
    for (size_t i = 0; i < prog->roles.count; i++) write_role(key, prog, &prog->roles.items[i]);
    write_preconditions(key, prog);
    write_claims(key, prog);
}
