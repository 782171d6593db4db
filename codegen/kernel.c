/* The kernel's frame: entry and parameters, barrier initialisation, register reallocation, and
 * branches to the roles. */
#include "codegen/gen.h"
#include "launch/launch.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- parameters ------------------------------------------------------------------------------ */

/* The name of a PTX parameter; a prefix separates authors' names from PTX keywords. */
static const char *argument_name(const Gen *gen, const ManifestArgument *argument) {
    const Prog *prog = gen->prog;
    switch (argument->kind) {
    case ARGUMENT_TENSOR_MAP:
        return arena_printf(gen->arena, "map%d_%s", argument->index,
                            prog->params.items[gen->plan->maps.items[argument->index].param].name);
    case ARGUMENT_POINTER:
        return arena_printf(gen->arena, "ptr_%s", prog->params.items[argument->index].name);
    case ARGUMENT_STRIDE: {
        const ManifestSymbol *stride = &gen->manifest->symbols.items[argument->index];
        return arena_printf(gen->arena, "stride%d_%s", stride->axis,
                            prog->params.items[stride->parameter].name);
    }
    case ARGUMENT_EXTENT:
        return arena_printf(gen->arena, "extent_%s", prog->symbols.items[argument->index].name);
    case ARGUMENT_SCALAR:
        return arena_printf(gen->arena, "arg_%s", prog->params.items[argument->index].name);
    case ARGUMENT_COUNTER: return "counter";
    case ARGUMENT_WATCHDOG: break;
    }
    return "watchdog";
}

static void print_parameters(const Gen *gen, uint32_t *line, Str *out) {
    const Manifest *manifest = gen->manifest;
    for (size_t i = 0; i < manifest->arguments.count; i++) {
        const ManifestArgument *argument = &manifest->arguments.items[i];
        const char *name = argument_name(gen, argument),
                   *comma = i + 1 < manifest->arguments.count ? "," : "";
        if (argument->kind == ARGUMENT_TENSOR_MAP)
            str_printf(out, "    .param .align 64 .b8 %s[128]%s\n", name, comma);
        else
            str_printf(out, "    .param .%s %s%s\n", manifest_passed(manifest, argument), name,
                       comma);
        (*line)++;
    }
}

static Reg load_pointer(Gen *gen, const char *name) {
    Reg reg = ptx_new_reg(gen->ptx, REG_64);
    INS(gen->ptx, "ld.param.u64", ptx_reg(reg), ptx_at_text(name, 0));
    INS(gen->ptx, "cvta.to.global.u64", ptx_reg(reg), ptx_reg(reg));
    return reg;
}

static void load_stride(Gen *gen, int symbol, const char *name) {
    const ManifestSymbol *stride = &gen->manifest->symbols.items[symbol];
    bool wide = stride_is_wide(gen->manifest, stride);
    Reg reg = ptx_new_reg(gen->ptx, wide ? REG_64 : REG_32);
    INS(gen->ptx, wide ? "ld.param.u64" : "ld.param.u32", ptx_reg(reg), ptx_at_text(name, 0));
    gen->strides[stride->parameter * PROG_MAX_RANK + stride->axis] = reg;
}

static Reg load_scalar(Gen *gen, const Param *param, const char *name) {
    Element type = element_rows[param->type].widens;
    Reg reg = ptx_new_reg(gen->ptx, class_of(type));
    INS(gen->ptx, arena_printf(gen->arena, "ld.param.%s", scalar_passed(param->type)), ptx_reg(reg),
        ptx_at_text(name, 0));
    return reg;
}

static void load_arguments(Gen *gen) {
    const Prog *prog = gen->prog;
    gen->maps = NEW_ARRAY(gen->arena, Reg, gen->plan->maps.count);
    gen->pointers = NEW_ARRAY(gen->arena, Reg, prog->params.count);
    gen->strides = NEW_ARRAY(gen->arena, Reg, prog->params.count * PROG_MAX_RANK);
    gen->symbols = NEW_ARRAY(gen->arena, Reg, prog->symbols.count);
    gen->scalars = NEW_ARRAY(gen->arena, Reg, prog->params.count);
    for (size_t i = 0; i < gen->manifest->arguments.count; i++) {
        const ManifestArgument *argument = &gen->manifest->arguments.items[i];
        const char *name = argument_name(gen, argument);
        int index = argument->index;
        switch (argument->kind) {
        /* the generic address of a kernel parameter takes two instructions */
        case ARGUMENT_TENSOR_MAP:
            gen->maps[index] = ptx_new_reg(gen->ptx, REG_64);
            INS(gen->ptx, "mov.b64", ptx_reg(gen->maps[index]), ptx_text(name));
            INS(gen->ptx, "cvta.param.u64", ptx_reg(gen->maps[index]), ptx_reg(gen->maps[index]));
            break;
        case ARGUMENT_POINTER: gen->pointers[index] = load_pointer(gen, name); break;
        case ARGUMENT_STRIDE: load_stride(gen, index, name); break;
        case ARGUMENT_COUNTER: gen->counter = load_pointer(gen, name); break;
        case ARGUMENT_WATCHDOG: gen->watchdog = load_pointer(gen, name); break;
        case ARGUMENT_EXTENT:
            gen->symbols[index] = ptx_new_reg(gen->ptx, REG_32);
            INS(gen->ptx, "ld.param.u32", ptx_reg(gen->symbols[index]), ptx_at_text(name, 0));
            break;
        case ARGUMENT_SCALAR: {
            const Param *param = &prog->params.items[index];
            Reg reg = load_scalar(gen, param, name);
            if (param->symbol >= 0)
                gen->symbols[param->symbol] = reg;
            else
                gen->scalars[index] = reg;
            break;
        }
        }
    }
}

/* ---- prologue -------------------------------------------------------------------------------- */

/* One thread initialises all barriers and makes them visible to the async proxy and peers. */
static void init_barriers(Gen *gen, Reg thread) {
    const Prog *prog = gen->prog;
    int done = ptx_new_label(gen->ptx);
    Reg others = PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(thread), ptx_int(0));
    INS_IF(gen->ptx, others, "bra", ptx_label(done));
    for (size_t i = 0; i < gen->plan->maps.count; i++)
        INS(gen->ptx, "prefetch.tensormap", ptx_at(gen->maps[i], 0));
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        const PipePlan *plan = &gen->plan->pipes[p];
        ptx_comment(gen->ptx, "pipe %s[%d]: full %u arrivals, empty %u", pipe->name, pipe->stages,
                    plan->arrivals[END_PRODUCE], plan->arrivals[END_CONSUME]);
        for (int s = 0; s < pipe->stages; s++)
            for (End end = END_PRODUCE; end <= END_CONSUME; end++)
                INS(gen->ptx, "mbarrier.init.shared::cta.b64",
                    ptx_at(gen->shared, plan->barriers[end] + 8 * s), ptx_int(plan->arrivals[end]));
    }
    if (target_has(gen, CAP_CLUSTERS)) INS0(gen->ptx, "fence.mbarrier_init.release.cluster");
    ptx_place_label(gen->ptx, done);
}

/* A grid that was launched early has run this far in parallel with the end of the previous grid;
 * from here it accesses global memory. Its own successor may start as soon as there is room (PTX
 * ISA 9.7.13.18, griddepcontrol). */
static void wait_for_grids(Gen *gen) {
    if (!target_has(gen, CAP_EARLY_STARTS)) return;
    INS0(gen->ptx, "griddepcontrol.launch_dependents");
    INS0(gen->ptx, "griddepcontrol.wait");
}

static void begin(Gen *gen, Reg thread) {
    bool pipes = gen->prog->pipes.count > 0;
    if (pipes) init_barriers(gen, thread);
    wait_for_grids(gen);
    if (pipes) cluster_start(gen);
}

/* Branches to `label` in the warps first .. first + count - 1. */
static void branch_warps(Gen *gen, int first, int count, int label) {
    Reg from = PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(gen->warp), ptx_int(first));
    Reg mine = PURE(gen->ptx, REG_PRED, "setp.lt.u32", ptx_reg(from), ptx_int(count));
    INS_IF(gen->ptx, mine, "bra.uni", ptx_label(label));
}

static void branch_role(Gen *gen, int role, int label) {
    branch_warps(gen, gen->plan->roles[role].first_warp, role_warps(&gen->prog->roles.items[role]),
                 label);
}

static void set_registers(Gen *gen, int value) {
    if (value == 0) return;
    INS(gen->ptx,
        value < gen->plan->launch_registers ? "setmaxnreg.dec.sync.aligned.u32"
                                            : "setmaxnreg.inc.sync.aligned.u32",
        ptx_int(value));
}

/* Registers first, then each warp goes to its role. */
static void gen_group(Gen *gen, const SharedGroup *group, const int *labels) {
    int others = ptx_new_label(gen->ptx), own = ptx_new_label(gen->ptx);
    branch_warps(gen, group->first_warp, 4, own);
    INS(gen->ptx, "bra.uni", ptx_label(others));
    ptx_place_label(gen->ptx, own);
    set_registers(gen, group->registers);
    for (size_t i = 0; i < group->roles.count; i++) {
        int role = group->roles.items[i];
        branch_role(gen, role, labels[role]);
    }
    cluster_return(gen);
    ptx_place_label(gen->ptx, others);
}

/* One chain leads to the roles that their warps go to from here, and to the warpgroups of
 * others. */
static void gen_roles(Gen *gen) {
    const Prog *prog = gen->prog;
    int *labels = NEW_ARRAY(gen->arena, int, prog->roles.count);
    for (size_t r = 0; r < prog->roles.count; r++) {
        labels[r] = ptx_new_label(gen->ptx);
        if (gen->plan->roles[r].direct) branch_role(gen, (int)r, labels[r]);
    }
    for (size_t g = 0; g < gen->plan->groups.count; g++)
        gen_group(gen, &gen->plan->groups.items[g], labels);
    cluster_return(gen);
    for (size_t r = 0; r < prog->roles.count; r++) {
        ptx_place_label(gen->ptx, labels[r]);
        set_registers(gen, gen->plan->roles[r].entered_with);
        gen_role(gen, (int)r);
    }
}

static void gen_body(Gen *gen) {
    ptx_mark(gen->ptx, gen->prog->span, -1, NULL, NULL);
    load_arguments(gen);
    Reg thread = ptx_new_reg(gen->ptx, REG_32), warp = ptx_new_reg(gen->ptx, REG_32);
    gen->shared = ptx_new_reg(gen->ptx, REG_32);
    gen->warp = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.u32", ptx_reg(thread), ptx_text("%tid.x"));
    INS(gen->ptx, "mov.u32", ptx_reg(gen->shared), ptx_text("pipec_shared"));
    INS(gen->ptx, "shr.u32", ptx_reg(warp), ptx_reg(thread), ptx_int(5));
    /* The shuffle tells ptxas that the value is uniform in a warp, so that branches on it are
     * uniform */
    INS(gen->ptx, "shfl.sync.idx.b32", ptx_reg(gen->warp), ptx_reg(warp), ptx_int(0), ptx_int(31),
        ptx_int(0xffffffff));
    cluster_open(gen);
    begin(gen, thread);
    gen_roles(gen);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The files that places are in, with characters replaced that a PTX string cannot contain. Number 1
 * is the first one; an included one is only listed if a line is of it. */
static void print_files(const Gen *gen, uint32_t *line, Str *out) {
    const Source *source = gen->prog->source;
    bool *used = NEW_ARRAY(gen->arena, bool, source->file_count);
    used[0] = true;
    ptx_files(gen->ptx, source, used);
    for (uint32_t file = 0; file < source->file_count; file++) {
        if (!used[file]) continue;
        const char *shown = source->files[file].name;
        char *name = arena_copy(gen->arena, shown, strlen(shown));
        for (char *c = name; *c != '\0'; c++)
            if (*c == '"' || *c == '\\' || (unsigned char)*c < 0x20) *c = '_';
        str_printf(out, ".file %u \"%s\"\n", (unsigned)file + 1, name);
        (*line)++;
    }
}

static void print_kernel(Gen *gen, Str *out) {
    const Manifest *manifest = gen->manifest;
    uint32_t line = 9;
    str_printf(out, "// kernel %s\n.version %d.%d\n.target %s\n.address_size 64\n",
               manifest->kernel, manifest->ptx_major, manifest->ptx_minor, manifest->target);
    print_files(gen, &line, out);
    str_printf(out, "\n.extern .shared .align 1024 .b8 pipec_shared[];\n\n.visible .entry %s(\n",
               manifest->kernel);
    print_parameters(gen, &line, out);
    str_printf(out, ")\n.reqntid %d, 1, 1\n.minnctapersm %" PRId64 "\n", manifest->threads,
               gen->plan->blocks);
    if (manifest->cluster[0] > 1) {
        str_printf(out, ".explicitcluster\n.reqnctapercluster %d, 1, 1\n", manifest->cluster[0]);
        line += 2;
    }
    str_add(out, "{\n");
    line += 4;
    ptx_print(gen->ptx, manifest->source, gen->manifest, &line, out);
    str_add(out, "}\n");
}

void codegen_emit(Arena *arena, const Prog *prog, const CodegenOptions *options, Str *ptx,
                  Manifest *manifest) {
    Gen gen = {
        .arena = arena, .prog = prog, .plan = prog->plan, .options = options, .manifest = manifest};
    if (prog->plan->work.count == 0) { /* a check needs neither */
        plan_work(arena, prog);
        plan_sums(arena, prog);
    }
    manifest_fill(arena, prog, options, manifest);
    gen.ptx = ptx_new(arena);
    gen_body(&gen);
    print_kernel(&gen, ptx);
    manifest->ptx_hash = fnv1a(FNV_START, ptx->text, ptx->length);
}
