/* Calls and returns, and the functions that a module may use without their text: vprintf and
 * __assertfail.
 *
 * Each lane has a stack of return addresses, so lanes that call from different places may run a
 * function together, and part at its return. The registers and parameters of a function have fixed
 * places; a call of a function that can call itself saves them, for the lanes that call. */
#include "emulator/machine.h"

enum { MAX_CALLS = 256, MAX_TEXT = 300 };

typedef struct Frame {
    uint32_t back;        /* the instruction after the call */
    unsigned char *saved; /* of the function that is called, see save */
    size_t capacity;
} Frame;

struct Calls {
    uint32_t depth[LANES];
    Frame *frames[MAX_CALLS]; /* [depth][lane]; NULL until it is needed */
};

/* ---- values ---------------------------------------------------------------------------------- */

static unsigned char *local_bytes_of(const Warp *warp, uint32_t lane) {
    return warp->local + (size_t)lane * warp->block->program->local_bytes;
}
static unsigned char *local_state_of(const Warp *warp, uint32_t lane) {
    return warp->local_state + (size_t)lane * warp->block->program->local_bytes;
}

/* A value on its way from one place to another; bytes that no thread has written stay so. */
typedef struct Value {
    uint64_t bits;
    bool valid;
    unsigned char bytes[1024], state[1024]; /* of results in local memory */
} Value;

static void take_register(const Warp *warp, const Operand *from, uint32_t lane, Value *value) {
    value->bits = in_lane(warp, from, lane);
    value->valid = from->bank != BANK_REGISTERS || (warp->valid[from->slot] >> lane & 1);
}

static void put_register(Warp *warp, const Operand *to, uint32_t lane, const Value *value) {
    if (to->sink) return;
    if (to->width == 0)
        put_mask(warp, to, value->bits ? ALL_LANES : 0, 1u << lane);
    else
        put_lane(warp, to, lane, value->bits);
    warp->valid[to->slot] = (warp->valid[to->slot] & ~(1u << lane)) | (uint32_t)value->valid
                                                                          << lane;
}

static void pass_inputs(Warp *warp, const Inst *inst, uint32_t lane) {
    const Operand *ops = &inst->ops[2 * inst->vector];
    uint32_t count = inst->op_count / 2u - inst->vector;
    Value value;
    for (uint32_t i = 0; i < count; i++) {
        const Operand *from = &ops[2 * i], *to = from + 1;
        if (!to->is_local) {
            take_register(warp, from, lane, &value);
            put_register(warp, to, lane, &value);
            continue;
        }
        size_t bytes = (size_t)to->add;
        memmove(local_bytes_of(warp, lane) + to->offset, local_bytes_of(warp, lane) + from->offset,
                bytes);
        memmove(local_state_of(warp, lane) + to->offset, local_state_of(warp, lane) + from->offset,
                bytes);
    }
}

/* ---- saving ---------------------------------------------------------------------------------- */

static const ProgramFunction *function_at(const Program *program, uint32_t first) {
    for (size_t i = 1; i < program->functions.count; i++)
        if (program->functions.items[i].first == first) return &program->functions.items[i];
    return NULL;
}

/* Registers, one byte each for whether they are written, local bytes, their state */
static void save(Warp *warp, const ProgramFunction *function, uint32_t lane, Frame *frame) {
    const Program *program = warp->block->program;
    uint32_t slots = function->end_slot - function->first_slot,
             bytes = function->end_local - function->first_local;
    size_t size = 9 * (size_t)slots + 2 * (size_t)bytes;
    if (frame->capacity < size) {
        frame->saved = arena_alloc(warp->block->machine->arena, size);
        frame->capacity = size;
    }
    unsigned char *to = frame->saved;
    for (uint32_t i = 0; i < slots; i++, to += 9) {
        const Operand *from = &program->registers.items[function->first_slot + i];
        uint64_t bits = in_lane(warp, from, lane);
        memcpy(to, &bits, 8);
        to[8] = warp->valid[from->slot] >> lane & 1;
    }
    memcpy(to, local_bytes_of(warp, lane) + function->first_local, bytes);
    memcpy(to + bytes, local_state_of(warp, lane) + function->first_local, bytes);
}

static void restore(Warp *warp, const ProgramFunction *function, uint32_t lane,
                    const Frame *frame) {
    const Program *program = warp->block->program;
    uint32_t bytes = function->end_local - function->first_local;
    const unsigned char *from = frame->saved;
    for (uint32_t slot = function->first_slot; slot < function->end_slot; slot++, from += 9) {
        Value value = {.valid = from[8]};
        memcpy(&value.bits, from, 8);
        put_register(warp, &program->registers.items[slot], lane, &value);
    }
    memcpy(local_bytes_of(warp, lane) + function->first_local, from, bytes);
    memcpy(local_state_of(warp, lane) + function->first_local, from + bytes, bytes);
}

/* ---- call and ret ---------------------------------------------------------------------------- */

static Frame *frame_of(Warp *warp, uint32_t depth, uint32_t lane) {
    Arena *arena = warp->block->machine->arena;
    if (!warp->calls) warp->calls = NEW(arena, Calls);
    Frame **row = &warp->calls->frames[depth];
    if (!*row) *row = NEW_ARRAY(arena, Frame, LANES);
    return &(*row)[lane];
}

static Step run_call(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const ProgramFunction *saved =
        inst->mods.choice == CALL_SAVES ? function_at(block->program, inst->target) : NULL;
    uint32_t targets[LANES];
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), depth = warp->calls ? warp->calls->depth[lane] : 0;
        if (depth == MAX_CALLS)
            return fault(block, P0761, agent_of(block, warp, lane),
                         "lane %u is in %u calls, each within the one before", lane, depth);
        Frame *frame = frame_of(warp, depth, lane);
        warp->calls->depth[lane] = depth + 1;
        frame->back = warp->split->pc + 1;
        if (saved) save(warp, saved, lane, frame);
        pass_inputs(warp, inst, lane);
        targets[lane] = inst->target;
    }
    return schedule_scatter(warp, mask, targets);
}

/* Results of the call that this lane returns from: taken before its registers are restored */
static void return_lane(Warp *warp, uint32_t lane, const Frame *frame) {
    const Program *program = warp->block->program;
    const Inst *call = &program->code[frame->back - 1];
    Value value;
    const Operand *from = &call->ops[0], *to = &call->ops[1];
    size_t bytes = call->vector && from->is_local ? (size_t)from->add : 0;
    if (call->vector && !from->is_local) take_register(warp, from, lane, &value);
    if (bytes) memcpy(value.bytes, local_bytes_of(warp, lane) + from->offset, bytes);
    if (bytes) memcpy(value.state, local_state_of(warp, lane) + from->offset, bytes);
    if (call->mods.choice == CALL_SAVES)
        restore(warp, function_at(program, call->target), lane, frame);
    if (call->vector && !from->is_local) put_register(warp, to, lane, &value);
    if (bytes && !to->sink) {
        memcpy(local_bytes_of(warp, lane) + to->offset, value.bytes, bytes);
        memcpy(local_state_of(warp, lane) + to->offset, value.state, bytes);
    }
}

/* Lanes that are in no call exit. */
static Step run_return(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t targets[LANES], inside = 0;
    (void)inst;
    for (uint32_t left = mask; left && warp->calls; left &= left - 1)
        inside |= (uint32_t)(warp->calls->depth[first_lane(left)] > 0) << first_lane(left);
    if (!inside) return schedule_exit(block, warp, mask);
    for (uint32_t left = inside; left; left &= left - 1) {
        uint32_t lane = first_lane(left), depth = --warp->calls->depth[lane];
        const Frame *frame = frame_of(warp, depth, lane);
        return_lane(warp, lane, frame);
        targets[lane] = frame->back;
    }
    return schedule_scatter(warp, inside, targets);
}

void call_forget(Warp *warp, uint32_t mask) {
    for (uint32_t left = mask; left && warp->calls; left &= left - 1)
        warp->calls->depth[first_lane(left)] = 0;
}

/* ---- brx ------------------------------------------------------------------------------------- */

/* ops: index; the targets are a count, then instructions */
static Step run_indexed(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const uint32_t *list = &block->program->branch_targets.items[inst->target];
    uint32_t targets[LANES];
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), index = in32(warp, &inst->ops[0])[lane];
        if (index >= list[0])
            return fault(block, P0763, agent_of(block, warp, lane),
                         "lane %u branches to target %u of a list of %u", lane, index, list[0]);
        targets[lane] = list[1 + index];
    }
    return schedule_scatter(warp, mask, targets);
}

/* ---- functions of the driver ----------------------------------------------------------------- */

/* The text at an address, at most MAX_TEXT bytes of it; NULL after a finding */
static const char *text_at(Block *block, Agent agent, uint64_t address) {
    Str out = str_new(block->machine->arena);
    str_add(&out, "");
    for (uint32_t i = 0; i < MAX_TEXT; i++) {
        Access access = {.agent = agent,
                         .kind = ACCESS_READ,
                         .proxy = PROXY_GENERIC,
                         .space = SPACE_GENERIC,
                         .address = address + i,
                         .bytes = 1};
        const unsigned char *byte = memory_access(block, &access);
        if (!byte) return NULL;
        if (*byte == 0) break;
        str_char(&out, (char)*byte);
    }
    return out.text;
}

/* Input i of an external function */
static uint64_t input_of(const Warp *warp, const Inst *inst, uint32_t i, uint32_t lane) {
    const Operand *from = &inst->ops[2 * (inst->vector + i)];
    uint64_t bits = 0;
    if (!from->is_local) return in_lane(warp, from, lane);
    memcpy(&bits, local_bytes_of(warp, lane) + from->offset, from->add < 8 ? (size_t)from->add : 8);
    return bits;
}

/* __assertfail(message, file, line, function, bytes of a character) */
static Step run_assert(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t lane = first_lane(mask);
    Agent agent = agent_of(block, warp, lane);
    const char *texts[3];
    static const uint32_t places[3] = {0, 1, 3};
    for (uint32_t i = 0; i < 3; i++) {
        texts[i] = text_at(block, agent, input_of(warp, inst, places[i], lane));
        if (!texts[i]) return STEP_FAULT;
    }
    return fault(block, P0762, agent, "lane %u: the assertion `%s` fails at %s:%u, in %s", lane,
                 texts[0], texts[1], (uint32_t)input_of(warp, inst, 2, lane), texts[2]);
}

/* vprintf(format, arguments): prints nothing; its result is the number of conversions. */
static Step run_print(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        const char *format =
            text_at(block, agent_of(block, warp, lane), input_of(warp, inst, 0, lane));
        if (!format) return STEP_FAULT;
        uint32_t count = 0;
        for (const char *at = format; (at = strchr(at, '%')) != NULL; at += at[1] ? 2 : 1)
            count += at[1] != '%';
        const Operand *to = &inst->ops[1];
        if (to->sink) continue;
        if (to->is_local) {
            memcpy(local_bytes_of(warp, lane) + to->offset, &count, sizeof count);
            memset(local_state_of(warp, lane) + to->offset, BYTE_WRITTEN, sizeof count);
        } else {
            put_lane(warp, to, lane, count);
        }
    }
    return STEP_NEXT;
}

Run call_external(const char *name, uint32_t *results, uint32_t *inputs) {
    static const struct {
        const char *name;
        uint32_t results, inputs;
        Run run;
    } rows[] = {{"vprintf", 1, 2, run_print}, {"__assertfail", 0, 5, run_assert}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (strcmp(name, rows[i].name) != 0) continue;
        *results = rows[i].results;
        *inputs = rows[i].inputs;
        return rows[i].run;
    }
    return NULL;
}

Run pick_call(const Inst *inst) {
    switch (inst->opcode) {
    case OP_CALL: return run_call;
    case OP_RET: return run_return;
    case OP_BRX: return run_indexed;
    default: return NULL;
    }
}
