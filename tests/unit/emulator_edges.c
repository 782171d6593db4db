/* Edges of the PTX memory model one by one (emulator_edges.def): small programs, each with the edge
 * that orders two accesses, which must run clean, and with a weaker one, which must be convicted,
 * on several schedules. All programs are assembled if ptxas is found. */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <stdlib.h>

enum { BYTES = 8192, MAP_AT = 4096, SEEDS = 3 };

/* blocks, threads of a block, blocks of a cluster, distance of the threads %a, %b, %c */
typedef struct Shape {
    uint32_t blocks, threads, cluster, distance;
    uint32_t launches; /* of the same kernel, one after the other; %launch is the number */
    bool programmatic; /* all but the first */
} Shape;

#define WARP                                                                                       \
    { 1, 32, 1, 1, 1, false }
#define WARPS                                                                                      \
    { 1, 96, 1, 32, 1, false }
#define WARPGROUP                                                                                  \
    { 1, 128, 1, 32, 1, false }
#define BLOCKS                                                                                     \
    { 3, 32, 1, 32, 1, false }
#define BLOCKS_OF(n)                                                                               \
    { 3, n, 1, n, 1, false }
#define GRID(n)                                                                                    \
    { n, 32, 1, 32, 1, false }
#define CLUSTER                                                                                    \
    { 2, 32, 2, 32, 1, false }
#define CLUSTERS                                                                                   \
    { 4, 64, 2, 64, 1, false }
#define KERNELS                                                                                    \
    { 1, 32, 1, 1, 2, false }
#define DEPENDENT                                                                                  \
    { 1, 32, 1, 1, 2, true }

typedef struct Row {
    const char *name;
    Shape shape;
    /* The program is `before`, an edge, `after`. NULL: there is no such edge */
    const char *before, *ordered, *weaker;
    const char *code; /* of the finding with the weaker edge */
    const char *after;
} Row;

/* ---- fragments ------------------------------------------------------------------------------- */

/* A loop of the threads `who` until a load gives `value` */
#define POLL(who, load, value)                                                                     \
    "{ @!" who " bra S; L: " load " %r0, [%y+64]; setp.ne.u32 %q, %r0, " #value "; @%q bra L; S: " \
    "}"
/* of the same for a phase of the barrier at `at` */
#define WAIT_BY(who, words, at, parity)                                                            \
    "{ @!" who " bra S; L: mbarrier.try_wait.parity" words ".shared::cta.b64 %q, [%s+" #at         \
    "], " #parity "; @!%q bra L; S: }"
#define WAIT(who, at, parity) WAIT_BY(who, "", at, parity)
#define INIT(at, count)                                                                            \
    "@%a mbarrier.init.shared::cta.b64 [%s+" #at "], " #count "; @%a fence.proxy.async;"
#define ARRIVE(at) "mbarrier.arrive.shared::cta.b64 _, [%s+" #at "];"
#define LOAD(to, from, bytes, at)                                                                  \
    "@%a mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s+" #at "], " #bytes                     \
    "; @%a cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s+" #to             \
    "], [%y+" #from "], " #bytes ", [%s+" #at "];" ARRIVE(at)
#define STORE(to, from, bytes)                                                                     \
    "@%a cp.async.bulk.global.shared::cta.bulk_group [%y+" #to "], [%s+" #from "], " #bytes        \
    "; @%a cp.async.bulk.commit_group;"
#define CLUSTER_SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"

static const Row rows[] = {
#define EDGE(...) {__VA_ARGS__},
#include "tests/unit/emulator_edges.def"
#undef EDGE
};

/* ---- programs -------------------------------------------------------------------------------- */

static const char prologue[] =
    "(.param .u64 Y, .param .u32 Launch)\n.reqntid %u\n{\n"
    "  .reg .b32 %%t, %%lane, %%g, %%block, %%s, %%far, %%launch, %%r<8>;\n"
    "  .reg .b64 %%y, %%own, %%map, %%rd<8>; .reg .pred %%a, %%b, %%c, %%p, %%q, %%first;\n"
    "  .shared .align 1024 .b8 smem_%zu[4096];\n"
    "  ld.param.u64 %%y, [Y]; ld.param.u32 %%launch, [Launch]; mov.u32 %%s, smem_%zu;\n"
    "  mov.u32 %%t, %%tid.x; mov.u32 %%block, %%ctaid.x; and.b32 %%lane, %%t, 31;\n"
    "  mad.lo.u32 %%g, %%block, %u, %%t; mad.wide.u32 %%own, %%g, 4, %%y;\n"
    "  setp.eq.u32 %%a, %%g, 0; setp.eq.u32 %%b, %%g, %u; setp.eq.u32 %%c, %%g, %u;\n"
    "  add.u64 %%map, %%y, %d; setp.eq.u32 %%first, %%launch, 0; mov.u32 %%far, %%s;\n";

static void add_entry(Str *out, size_t index, const Row *row, const char *edge) {
    const Shape *shape = &row->shape;
    str_printf(out, ".visible .entry edge_%zu", index);
    str_printf(out, prologue, shape->threads, index, index, shape->threads, shape->distance,
               2 * shape->distance, MAP_AT);
    if (shape->cluster > 1)
        str_add(out, "  xor.b32 %r7, %block, 1; and.b32 %r7, %r7, 1;\n"
                     "  mapa.shared::cluster.u32 %far, %s, %r7;\n");
    str_printf(out, "  %s\n  %s\n  %s\n  ret;\n}\n", row->before, edge, row->after);
}

static const char head[] = ".version 8.6\n.target sm_90a\n.address_size 64\n";

static RunStatus run(Scratch *scratch, const Row *row, const char *edge, uint64_t seed) {
    Str text = str_new(scratch->arena);
    str_add(&text, head);
    add_entry(&text, 0, row, edge);
    EmulatorKernel kernel;
    RunStatus status =
        emulator_read(scratch->arena, text.text, text.length, NULL, &kernel, scratch->diags);
    if (status != RUN_DONE) return status;
    EmulatorRegion region = {
        .bytes = BYTES, .data = NEW_ARRAY(scratch->arena, unsigned char, BYTES), .name = "Y"};
    emulator_place(&region, 1);
    EmulatorMap map = {.type = 2,
                       .rank = 2,
                       .address = region.base,
                       .extents = {16, 6},
                       .strides = {0, 64},
                       .box = {8, 4}};
    EXPECT(emulator_encode_map(&map, "Y", region.data + MAP_AT, scratch->diags) == RUN_DONE);
    EmulatorLaunch launches[2];
    for (uint32_t i = 0; i < row->shape.launches; i++) {
        unsigned char *parameters =
            NEW_ARRAY(scratch->arena, unsigned char, kernel.parameter_bytes);
        memcpy(parameters + kernel.parameters[0].offset, &region.base, 8);
        memcpy(parameters + kernel.parameters[1].offset, &i, 4);
        launches[i] = (EmulatorLaunch){.kernel = &kernel,
                                       .grid = {row->shape.blocks, 1, 1},
                                       .block = {row->shape.threads, 1, 1},
                                       .cluster = {row->shape.cluster, 1, 1},
                                       .parameters = parameters,
                                       .programmatic = i > 0 && row->shape.programmatic};
    }
    EmulatorWork work = {.regions = &region,
                         .region_count = 1,
                         .launches = launches,
                         .launch_count = row->shape.launches};
    EmulatorOptions options = {.seed = seed};
    RunResult result;
    return emulator_run_work(scratch->arena, &work, &options, &result, scratch->diags);
}

/* `code`: of the only finding; NULL: none */
static void check(const Row *row, const char *edge, const char *code) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Scratch scratch = scratch_new();
        RunStatus status = run(&scratch, row, edge, seed);
        const Diags *diags = scratch.diags;
        bool fine = code ? status == RUN_FINDING && diags->items.count == 1 &&
                               !strcmp(code_rows[diags->items.items[0]->code].name, code)
                         : status == RUN_DONE && diags->items.count == 0;
        if (!fine) {
            Str text = str_new(scratch.arena);
            str_add(&text, "");
            diags_render(diags, false, &text);
            fprintf(stderr, "%s, `%s` (seed %d): expected %s, status %d\n%s\n", row->name, edge,
                    (int)seed, code ? code : "no finding", (int)status, text.text);
            failed_expectations++;
            seed = SEEDS;
        }
        scratch_free(&scratch);
    }
}

static void assemble(void) {
    Scratch scratch = scratch_new();
    Str text = str_new(scratch.arena);
    str_add(&text, head);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].ordered) add_entry(&text, 2 * i, &rows[i], rows[i].ordered);
        if (rows[i].weaker) add_entry(&text, 2 * i + 1, &rows[i], rows[i].weaker);
    }
    FILE *pipe = popen("ptxas -O0 -arch=sm_90a -o /dev/null - 2>&1", "w");
    if (EXPECT(pipe != NULL)) {
        fwrite(text.text, 1, text.length, pipe);
        EXPECT(pclose(pipe) == 0);
    }
    scratch_free(&scratch);
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (argc > 1 && !strstr(rows[i].name, argv[1])) continue;
        if (rows[i].ordered) check(&rows[i], rows[i].ordered, NULL);
        if (rows[i].weaker) check(&rows[i], rows[i].weaker, rows[i].code);
    }
    if (system("command -v ptxas >/dev/null 2>&1") == 0) assemble();
    return expect_failures();
}
