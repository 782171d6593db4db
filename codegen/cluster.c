/* Clusters: each block's position in its cluster, the masks of multicast, arrivals at other
 * blocks' barriers, and the barriers of the cluster at both ends of the kernel: no block
 * accesses another's memory before it is initialised, or after the other has exited. Without
 * multicast copies, blocks of a cluster do not interact. */
#include "codegen/gen.h"

/* ---- positions ------------------------------------------------------------------------------- */

/* `block / stride % size`: the position along one axis */
static Reg place_along(Gen *gen, Reg block, int stride, int size) {
    Reg place = block;
    if (stride > 1) place = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(place), ptx_int(stride));
    if (stride * size < gen->prog->cluster)
        place = PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(place), ptx_int(size));
    return place;
}

static Reg weighted(Gen *gen, Reg sum, Reg place, int weight) {
    if (sum.class == REG_NONE)
        return weight == 1 ? place
                           : PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(place), ptx_int(weight));
    return PURE(gen->ptx, REG_32, "mad.lo.s32", ptx_reg(place), ptx_int(weight), ptx_reg(sum));
}

/* Computes the blocks along a set of axes that contains this block: its index among them, and
 * their mask. */
static void open_group(Gen *gen, uint32_t axes) {
    const Prog *prog = gen->prog;
    ClusterRegs *regs = &gen->cluster;
    Reg part = PTX_NONE, first = PTX_NONE;
    int weight = 1;
    for (size_t a = 0; a < prog->axes.count; a++) {
        int size = prog->axes.items[a].cluster;
        if (size == 1) continue;
        if (axes >> a & 1) {
            part = weighted(gen, part, regs->along[a], weight);
            weight *= size;
        } else {
            first = weighted(gen, first, regs->along[a], cluster_stride(prog, (int)a));
        }
    }
    regs->part[axes] = part;
    regs->group[axes] = ptx_new_reg(gen->ptx, REG_32);
    regs->mask[axes] = ptx_new_reg(gen->ptx, REG_16);
    INS(gen->ptx, "mov.b32", ptx_reg(regs->group[axes]), ptx_int(cluster_group(prog, axes)));
    if (first.class != REG_NONE)
        INS(gen->ptx, "shl.b32", ptx_reg(regs->group[axes]), ptx_reg(regs->group[axes]),
            ptx_reg(first));
    INS(gen->ptx, "cvt.u16.u32", ptx_reg(regs->mask[axes]), ptx_reg(regs->group[axes]));
}

void cluster_open(Gen *gen) {
    const Prog *prog = gen->prog;
    if (prog->cluster == 1) return;
    uint32_t sets = 0;
    Reg block = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.u32", ptx_reg(block), ptx_text("%cluster_ctarank"));
    for (size_t a = 0; a < prog->axes.count; a++) {
        int size = prog->axes.items[a].cluster;
        if (size > 1)
            gen->cluster.along[a] = place_along(gen, block, cluster_stride(prog, (int)a), size);
    }
    for (size_t p = 0; p < prog->pipes.count; p++) sets |= prog->pipes.items[p].multicast;
    for (uint32_t axes = 1; axes < COUNT_OF(gen->cluster.mask); axes++)
        if (sets >> axes & 1) open_group(gen, axes);
}

/* ---- the ends of the kernel ------------------------------------------------------------------ */

void cluster_start(Gen *gen) {
    if (!cluster_shares_memory(gen->prog)) {
        INS(gen->ptx, "bar.sync", ptx_int(0));
        return;
    }
    /* Relaxed: the fence of the thread that initialised the barriers is enough (PTX ISA 9.7.13.4,
     * fence.mbarrier_init), and a release would wait for the memory of the device. */
    INS0(gen->ptx, "barrier.cluster.arrive.relaxed.aligned");
    INS0(gen->ptx, "barrier.cluster.wait.acquire.aligned");
}

bool cluster_fills(const Gen *gen, int role, int pipe) {
    const Pipe *row = &gen->prog->pipes.items[pipe];
    return row->multicast != 0 && row->producer == role;
}

bool cluster_waits(const Gen *gen, int role) {
    bool waits = false;
    for (size_t p = 0; p < gen->prog->pipes.count; p++) waits |= cluster_fills(gen, role, (int)p);
    return waits && cluster_drains(gen->prog);
}

/* All threads synchronise, including idle warps and unelected lanes, because the barrier counts
 * whole warps. */
void cluster_return(Gen *gen) {
    if (cluster_shares_memory(gen->prog) && !cluster_drains(gen->prog)) {
        ptx_comment(gen->ptx, "no block leaves while another may touch its memory");
        warp_join(gen);
        INS0(gen->ptx, "barrier.cluster.arrive.release.aligned");
        INS0(gen->ptx, "barrier.cluster.wait.acquire.aligned");
    }
    INS0(gen->ptx, "ret");
}

/* ---- remote arrivals ------------------------------------------------------------------------- */

/* One bit for each block whose copies into the pipe reach this one: the relation is symmetric. */
static Reg reaching(Gen *gen, const Pipe *pipe) {
    Reg all = PTX_NONE;
    for (uint32_t axes = 1; axes < COUNT_OF(gen->cluster.group); axes++) {
        if (!(pipe->multicast >> axes & 1)) continue;
        Reg group = gen->cluster.group[axes];
        all = all.class == REG_NONE
                  ? group
                  : PURE(gen->ptx, REG_32, "or.b32", ptx_reg(all), ptx_reg(group));
    }
    return all;
}

/* Each thread arrives at one block: lane t of a warp, or thread t of an instance that arrives as
 * a whole, at block t. */
static Reg arrives_at_peer(Gen *gen, Reg reached, Reg number) {
    Reg few = PURE(gen->ptx, REG_PRED, "setp.lt.u32", ptx_reg(number), ptx_int(gen->prog->cluster));
    Reg bit = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(reached), ptx_reg(number));
    Reg odd = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(bit), ptx_int(1));
    Reg reaches = PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(odd), ptx_int(0));
    return PURE(gen->ptx, REG_PRED, "and.pred", ptx_reg(few), ptx_reg(reaches));
}

void cluster_open_role(Gen *gen) {
    RoleState *state = gen->role;
    const Prog *prog = gen->prog;
    state->reached = NEW_ARRAY(gen->arena, Reg, prog->pipes.count);
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        const PipeUse *use = &state->role->pipes[p];
        if (!use->uses || pipe->multicast == 0 || !pipe_consumed_by(pipe, state->number)) continue;
        Reg reached = reaching(gen, pipe), number = state->thread;
        if (!state->role->one_lane && use->arrives[END_CONSUME] != ARRIVES_INSTANCE)
            number = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(state->thread), ptx_int(31));
        state->reached[p] = state->role->one_lane ? reached : arrives_at_peer(gen, reached, number);
    }
}

/* The address is mapped for each arrival: in a register it could exceed the budget of matrix
 * roles. All threads map it, because a register that only some write would be live from before. */
static void arrive_at(Gen *gen, Reg guard, Operand barrier, Operand block) {
    Reg mapped = PURE(gen->ptx, REG_32, "mapa.shared::cluster.u32", ptx_reg(barrier.reg), block);
    INS_IF(gen->ptx, guard, "mbarrier.arrive.shared::cluster.b64", ptx_text("_"),
           ptx_at(mapped, barrier.value));
}

void cluster_arrive_each(Gen *gen, int pipe_index, Operand barrier) {
    Reg reached = reaching(gen, &gen->prog->pipes.items[pipe_index]);
    for (int block = 0; block < gen->prog->cluster; block++) {
        Reg bit = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(reached), ptx_int(INT64_C(1) << block));
        Reg reaches = PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(bit), ptx_int(0));
        arrive_at(gen, reaches, barrier, ptx_int(block));
    }
}

void cluster_arrive(Gen *gen, int pipe_index, Reg stage) {
    const RoleState *state = gen->role;
    Operand barrier = stage_barrier(gen, &gen->prog->pipes.items[pipe_index], false, stage);
    if (!state->role->one_lane) {
        Reg lane = PURE(gen->ptx, REG_32, "mov.u32", ptx_text("%laneid"));
        Reg block =
            PURE(gen->ptx, REG_32, "min.u32", ptx_reg(lane), ptx_int(gen->prog->cluster - 1));
        arrive_at(gen, state->reached[pipe_index], barrier, ptx_reg(block));
        return;
    }
    for (int block = 0; block < gen->prog->cluster; block++) {
        Reg bit = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(state->reached[pipe_index]),
                       ptx_int(INT64_C(1) << block));
        Reg reaches = PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(bit), ptx_int(0));
        arrive_at(gen, reaches, barrier, ptx_int(block));
    }
}
