/* Adjacent elements in shared or global memory: loads and stores of 4, 8 and 16 bytes. */
#include "codegen/gen.h"

static const char *op_of(Gen *gen, const char *op, bool global, int words) {
    return arena_printf(gen->arena, "%s.%s%s.b32", op, global ? "global" : "shared",
                        words == 4   ? ".v4"
                        : words == 2 ? ".v2"
                                     : "");
}

static int words_at_once(int left) { return left >= 4 ? 4 : left >= 2 ? 2 : 1; }

static Operand address_of(Gen *gen, Point *point, const Access *access) {
    return access->space == SPACE_GLOBAL ? global_address(gen, point, access)
                                         : shared_address(gen, point, access);
}

static Operand moved(Operand address, int64_t by) {
    address.value += by;
    return address;
}

void vector_load(Gen *gen, Point *point, const Access *access, int bytes, Reg *words) {
    int count = bytes / 4;
    bool global = access->space == SPACE_GLOBAL;
    Reg inside = read_guard(gen, point, access); /* of the first element, for all */
    Operand address = address_of(gen, point, access);
    for (int i = 0; i < count; i++) {
        words[i] = ptx_new_reg(gen->ptx, REG_32);
        if (inside.class != REG_NONE) INS(gen->ptx, "mov.b32", ptx_reg(words[i]), ptx_int(0));
    }
    for (int done = 0, step; done < count; done += step) {
        step = words_at_once(count - done);
        Operand to = step == 1 ? ptx_reg(words[done]) : ptx_vector(&words[done], step);
        ptx_ins(gen->ptx, inside, false, op_of(gen, "ld", global, step),
                (Operand[]){to, moved(address, done * 4)}, 2);
    }
}

void vector_store(Gen *gen, Point *point, const Access *access, const Reg *words, int count,
                  Reg where) {
    bool global = access->space == SPACE_GLOBAL;
    Reg inside = global ? global_inside(gen, point, access) : PTX_NONE; /* the same */
    inside = ptx_both(gen->ptx, inside, where);
    Operand address = address_of(gen, point, access);
    for (int done = 0, step; done < count; done += step) {
        step = words_at_once(count - done);
        Operand from = step == 1 ? ptx_reg(words[done]) : ptx_vector(&words[done], step);
        ptx_ins(gen->ptx, inside, false, op_of(gen, "st", global, step),
                (Operand[]){moved(address, done * 4), from}, 2);
    }
}

/* ---- whether tensors allow vectors ----------------------------------------------------------- */

/* A register that is a multiple of a power of two */
static Reg is_multiple(Gen *gen, Reg reg, int64_t of) {
    Reg low = reg.class == REG_64 ? PURE(gen->ptx, REG_32, "cvt.u32.u64", ptx_reg(reg)) : reg;
    low = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(low), ptx_int(of - 1));
    return PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(low), ptx_int(0));
}

Reg pointer_aligned(Gen *gen, int param, int bytes) {
    return is_multiple(gen, gen->pointers[param], bytes);
}

static Reg is_aligned(Gen *gen, const WideTensor *tensor) {
    const Param *param = &gen->prog->params.items[tensor->param];
    Reg aligned = PTX_NONE;
    if (tensor->base) aligned = pointer_aligned(gen, tensor->param, tensor->bytes);
    for (int axis = 0; tensor->strides && axis + 1 < param->rank; axis++)
        aligned = ptx_both(gen->ptx, aligned,
                           is_multiple(gen, gen->strides[tensor->param * PROG_MAX_RANK + axis],
                                       tensor->bytes / (int)element_rows[param->type].bytes));
    return aligned;
}

Reg vectors_hold(Gen *gen, const Wide *wide) {
    Reg holds = PTX_NONE;
    if (wide->when != NULL) holds = value_in_reg(gen, eval_scalar(gen, wide->when));
    for (int i = 0; i < wide->tensor_count; i++)
        holds = ptx_both(gen->ptx, holds, is_aligned(gen, &wide->tensors[i]));
    return holds;
}
