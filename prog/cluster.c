/* Clusters: the blocks of one, and which of them copy into each other's stages. The rank of a
 * block in its cluster is its position along the clustered axes in mixed radix, first axis
 * fastest; results for block 0 hold for the others, shifted. */
#include "prog/prog.h"

uint32_t cluster_axes(const Prog *prog) {
    uint32_t axes = 0;
    for (size_t a = 0; a < prog->axes.count; a++)
        if (prog->axes.items[a].cluster > 1) axes |= (uint32_t)1 << a;
    return axes;
}

int cluster_stride(const Prog *prog, int axis) {
    int stride = 1;
    for (int a = 0; a < axis; a++) stride *= prog->axes.items[a].cluster;
    return stride;
}

int cluster_count(const Prog *prog, uint32_t axes) {
    int count = 1;
    for (size_t a = 0; a < prog->axes.count; a++)
        if (axes >> a & 1) count *= prog->axes.items[a].cluster;
    return count;
}

uint32_t cluster_group(const Prog *prog, uint32_t axes) {
    uint32_t group = 0;
    for (int block = 0; block < prog->cluster; block++) {
        bool in = true;
        for (size_t a = 0; a < prog->axes.count && in; a++)
            in = (axes >> a & 1) ||
                 block / cluster_stride(prog, (int)a) % prog->axes.items[a].cluster == 0;
        if (in) group |= (uint32_t)1 << block;
    }
    return group;
}

uint32_t cluster_reach(const Prog *prog, const Pipe *pipe) {
    uint32_t reach = 1;
    for (uint32_t axes = 1; axes < (uint32_t)1 << PROG_MAX_RANK; axes++)
        if (pipe->multicast >> axes & 1) reach |= cluster_group(prog, axes);
    return reach;
}

/* Cursors of several instances may be ahead of what was produced. */
bool cluster_drains(const Prog *prog) {
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        if (pipe->multicast != 0 && prog->roles.items[pipe->producer].instances > 1) return false;
    }
    return !prog->touches_peers;
}

bool cluster_shares_memory(const Prog *prog) {
    if (prog->touches_peers && prog->cluster > 1) return true;
    for (size_t p = 0; p < prog->pipes.count; p++)
        if (prog->pipes.items[p].multicast != 0) return true;
    return false;
}
