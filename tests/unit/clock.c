/* Vector clocks against a model of plain arrays: random joins, copies, fences, intersections and
 * knowledge that travels between clusters. */
#include "emulator/order/clock.h"

#include "tests/unit/expect.h"

enum { CLUSTERS = 40, COMPONENTS = 96, VIEWS = 12, STEPS = 3000, RUNS = 20, FIRST = 250 };

/* Of other clusters only: a view of cluster `owner` */
typedef struct Model {
    uint32_t owner;
    uint32_t times[VIEW_CLOCKS][CLUSTERS][COMPONENTS];
    uint32_t below;
} Model;

static uint64_t state = 1;
static uint32_t draw(uint32_t choices) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % choices;
}

static void model_join(Model *to, const Model *from) {
    if (to->below < from->below) to->below = from->below;
    for (int c = 0; c < VIEW_CLOCKS; c++)
        for (int k = 0; k < CLUSTERS; k++)
            for (int i = 0; i < COMPONENTS; i++)
                if (to->times[c][k][i] < from->times[c][k][i])
                    to->times[c][k][i] = from->times[c][k][i];
}

static bool model_covers(const Model *model, const Model *other) {
    bool covers = model->below >= other->below;
    for (int c = 0; c < VIEW_CLOCKS; c++)
        for (int k = 0; k < CLUSTERS; k++)
            for (int i = 0; i < COMPONENTS; i++)
                covers &= model->times[c][k][i] >= other->times[c][k][i];
    return covers;
}

static void model_intersect(Model *model, const Model *other) {
    if (other->below < model->below) model->below = other->below;
    for (int c = 0; c < VIEW_CLOCKS; c++)
        for (uint32_t k = 0; k < CLUSTERS; k++)
            for (int i = 0; i < COMPONENTS; i++) {
                uint32_t *time = &model->times[c][k][i];
                if (k != model->owner)
                    *time = 0;
                else if (other->times[c][k][i] < *time)
                    *time = other->times[c][k][i];
            }
}

/* Numbers of clusters are not adjacent, so that the trees have several levels. */
static uint64_t number_of(uint32_t cluster) { return FIRST + cluster * (cluster + 1); }

static bool same(const View *view, const Model *model) {
    uint32_t clock = draw(VIEW_CLOCKS), cluster = draw(CLUSTERS), component = draw(COMPONENTS),
             time = model->times[clock][cluster][component];
    uint64_t own = number_of(model->owner), number = number_of(cluster);
    if (number < model->below) return view_knows(view, clock, own, number, component, UINT32_MAX);
    return (time == 0 || view_knows(view, clock, own, number, component, time)) &&
           !view_knows(view, clock, own, number, component, time + 1);
}

static void set(Clocks *clocks, View *view, Model *model) {
    uint32_t row = draw(COMPONENTS / ROW), mask = draw(3) ? 1u << draw(32) : UINT32_MAX,
             which = 1 + draw((1 << VIEW_CLOCKS) - 1), time = 1 + draw(50);
    view_set(clocks, view, which, row, mask, time);
    for (uint32_t c = 0; c < VIEW_CLOCKS; c++)
        for (uint32_t i = 0; i < ROW; i++) {
            uint32_t *at = &model->times[c][model->owner][row * ROW + i];
            if ((which >> c & 1) && (mask >> i & 1) && *at < time) *at = time;
        }
}

static void fence(Clocks *clocks, View *view, Model *model) {
    uint32_t which = draw(1 << VIEW_CLOCKS);
    /* a fence raises a clock that knows no more than the generic one */
    for (uint32_t c = 1; c < VIEW_CLOCKS; c++)
        for (int k = 0; k < CLUSTERS; k++)
            for (int i = 0; i < COMPONENTS; i++)
                if (model->times[c][k][i] > model->times[0][k][i]) return;
    view_fence(clocks, view, which);
    for (uint32_t c = 1; c < VIEW_CLOCKS; c++)
        if (which >> c & 1) memcpy(model->times[c], model->times[0], sizeof model->times[c]);
}

/* What `from` knows travels over a memory location to `to`, perhaps of another cluster. */
static void travel(Clocks *clocks, View *to, Model *model, const View *from, const Model *other) {
    View published = {0};
    view_share(&published, from);
    view_publish(clocks, &published, number_of(other->owner));
    EXPECT(view_adopt(clocks, to, &published, number_of(model->owner)) ||
           model_covers(model, other));
    view_clear(clocks, &published);
    model_join(model, other);
}

static void step(Clocks *clocks, View *views, Model *models) {
    uint32_t a = draw(VIEWS), b = draw(VIEWS);
    switch (draw(8)) {
    case 0:
    case 1:
    case 2: set(clocks, &views[a], &models[a]); break;
    case 3: fence(clocks, &views[a], &models[a]); break;
    case 4:
        if (models[a].owner != models[b].owner || a == b) break;
        EXPECT(!view_covers(&views[a], &views[b]) || model_covers(&models[a], &models[b]));
        view_join(clocks, &views[a], &views[b]);
        model_join(&models[a], &models[b]);
        break;
    case 5:
        if (a != b) travel(clocks, &views[a], &models[a], &views[b], &models[b]);
        break;
    case 6:
        if (draw(10) || models[a].owner != models[b].owner || a == b) break;
        view_intersect(clocks, &views[a], &views[b]);
        model_intersect(&models[a], &models[b]);
        break;
    default:
        if (draw(8)) break;
        view_clear(clocks, &views[a]);
        models[a] = (Model){.owner = draw(3) ? models[b].owner : draw(CLUSTERS)};
        if (models[a].owner != models[b].owner || a == b) break;
        view_share(&views[a], &views[b]);
        models[a] = models[b];
    }
    EXPECT(same(&views[a], &models[a]));
    EXPECT(same(&views[b], &models[b]));
}

static void compare_with_model(void) {
    for (int run = 0; run < RUNS; run++) {
        Scratch scratch = scratch_new();
        Clocks *clocks = clocks_new(scratch.arena);
        View views[VIEWS] = {0};
        Model *models = NEW_ARRAY(scratch.arena, Model, VIEWS);
        for (uint32_t i = 0; i < VIEWS; i++) models[i].owner = i / 3 * 7 % CLUSTERS;
        for (int i = 0; i < STEPS && !failed_expectations; i++) step(clocks, views, models);
        for (uint32_t i = 0; i < VIEWS; i++) view_clear(clocks, &views[i]);
        scratch_free(&scratch);
    }
}

/* Each cluster learns from the last one: memory and time grow linearly, because trees are shared.
 */
static void long_chain(void) {
    enum { LENGTH = 20000 };
    Scratch scratch = scratch_new();
    Clocks *clocks = clocks_new(scratch.arena);
    View location = {0};
    for (uint32_t i = 0; i < LENGTH; i++) {
        View own = {0};
        view_set(clocks, &own, 1u << VIEW_GENERIC, 0, UINT32_MAX, 1 + i);
        view_adopt(clocks, &own, &location, i);
        EXPECT(i == 0 || view_knows(&own, VIEW_GENERIC, i, i / 2, 3, 1 + i / 2));
        EXPECT(!view_knows(&own, VIEW_GENERIC, i, i + 1, 3, 1));
        view_publish(clocks, &own, i);
        view_join(clocks, &location, &own);
        view_clear(clocks, &own);
    }
    EXPECT(arena_bytes(scratch.arena) < (size_t)LENGTH * 400);
    view_clear(clocks, &location);
    scratch_free(&scratch);
}

int main(void) {
    compare_with_model();
    long_chain();
    return expect_failures();
}
