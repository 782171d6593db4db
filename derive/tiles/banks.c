/* Bank conflicts: pads the rows of tiles whose rows would put a warp's lanes into a few banks of
 * shared memory.
 *
 * Shared memory has 32 banks of 4 bytes; lanes that access different words of one bank are
 * served one after another. Lanes traverse a statement's elements with the last index innermost,
 * so a tile that this index subscripts in an axis other than its last is traversed column by
 * column: if a row is a multiple of 32 words, all lanes access one bank. A word of padding after
 * each row spreads them. Only tiles that ordinary loads and stores alone access may be padded:
 * copy engine and matrix unit have layouts of their own (swizzles). A tile is padded if that at
 * least halves the rounds of its statements. */
#include "derive/tiles.h"
#include "flow/elements.h"

#define BANKS 32
#define LANES 32

/* A tile that may be padded: its layout, and one access for its shape */
typedef struct Candidate {
    Layout *layout;
    const Role *role;
    const Access *access;
    int64_t unit;          /* padding, in elements, that keeps every access aligned */
    int64_t plain, padded; /* rounds of its statements, without and with padding */
    int64_t worst;         /* rounds of the worst access without padding */
    bool fixed;            /* accessed by other than ordinary loads and stores */
} Candidate;

typedef VEC(Candidate) Candidates;

/* ---- one access ------------------------------------------------------------------------------ */

static int64_t divided(int64_t a, int64_t by) { return a >= 0 ? a / by : -((-a + by - 1) / by); }

/* Number of elements that a lane accesses at once, and their index (-1: in the order of the
 * traversal) */
static int vector_of(const Site *site, int *axis) {
    *axis = -1;
    if (site->tile->spread) return layout_vector(site->tile->spread, axis);
    return site->tile->class == TILE_LANES ? site->tile->piece.elements : 1;
}

static void split(const IndexSpace *space, const int *axes, int count, int64_t flat,
                  int64_t *indexes) {
    for (int i = count - 1; i >= 0; i--) {
        int64_t extent = space->items[axes[i]].extent;
        indexes[axes[i]] = i == 0 ? flat : flat % extent;
        flat /= extent;
    }
}

/* The indexes of a lane's first element; false if the statement has fewer */
static bool place_lane(const Site *site, int lane, int64_t *indexes) {
    const IndexSpace *space = &site->tile->space;
    const RegisterLayout *spread = site->tile->spread;
    int axes[PROG_MAX_INDEXES], axis;
    int64_t total = 1, flat = (int64_t)lane * vector_of(site, &axis);
    for (int i = 0; i < space->bound; i++) {
        axes[i] = i;
        if (__builtin_mul_overflow(total, space->items[i].extent, &total)) total = INT64_MAX;
    }
    if (!spread) split(space, axes, space->bound, flat, indexes);
    for (int s = 0; spread && s < spread->count; s++) {
        const Spread *part = &spread->spreads[s];
        int64_t at = 0;
        for (int d = 0; d < part->count; d++)
            if (part->digits[d].in_thread)
                at +=
                    lane / part->digits[d].place % part->digits[d].extent * part->digits[d].stride;
        split(space, part->axes, part->members, at, indexes);
    }
    return spread || flat < total;
}

/* Element offset in the tile for these indexes, up to a constant; rows are `pitch` elements
 * apart */
static int64_t element_at(Tiles *tiles, const Site *site, const Access *access, int64_t pitch,
                          const int64_t *indexes) {
    int64_t position = 0;
    for (int d = 0; d < access->rank; d++) {
        int64_t coordinate = 0;
        for (int i = 0; i < site->tile->space.bound; i++)
            coordinate += access->affine[d].coef[i] * indexes[i];
        position =
            position *
                (d + 1 == access->rank ? pitch : tile_extent(tiles->prog, site->role, access, d)) +
            coordinate;
    }
    return position;
}

/* Rounds in which the banks serve a warp, each lane `words` words from its element: in groups of
 * lanes that use each bank once. */
static int64_t rounds_of(Tiles *tiles, const Site *site, const Access *access, int64_t pitch,
                         int words) {
    int64_t bytes = element_rows[access->type].bytes, rounds = 0;
    for (int first = 0; first < LANES; first += LANES / words) {
        int64_t seen[BANKS][BANKS], most = 0; /* the words of each bank */
        int count[BANKS] = {0};
        for (int lane = first; lane < first + LANES / words; lane++) {
            int64_t indexes[PROG_MAX_INDEXES] = {0};
            if (!place_lane(site, lane, indexes)) break;
            int64_t start =
                divided(element_at(tiles, site, access, pitch, indexes) * bytes, BANK_BYTES);
            for (int64_t word = start; word < start + words; word++) {
                int64_t bank = word - divided(word, BANKS) * BANKS;
                int at = 0;
                while (at < count[bank] && seen[bank][at] != word) at++;
                if (at == count[bank]) seen[bank][count[bank]++] = word;
                if (count[bank] > most) most = count[bank];
            }
        }
        rounds += most;
    }
    return rounds;
}

/* Rounds for as many elements per lane as the longest vector has. A vector within one row,
 * aligned, is one access. */
static int64_t cost_of(Tiles *tiles, const Site *site, const Access *access, int64_t row,
                       int64_t padding) {
    int64_t bytes = element_rows[access->type].bytes;
    int axis, vector = vector_of(site, &axis);
    bool whole = row % vector == 0 && padding % vector == 0;
    for (int d = 0; d < access->rank && axis >= 0; d++)
        whole &= access->affine[d].coef[axis] == (d + 1 == access->rank ? 1 : 0);
    int64_t width = (whole ? vector : 1) * bytes;
    int64_t rounds = rounds_of(tiles, site, access, row + padding,
                               width > BANK_BYTES ? (int)(width / BANK_BYTES) : 1);
    return rounds * (whole ? VECTOR_MOST / vector : VECTOR_MOST);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* A tile that exceeds a block's shared memory is refused later, so padding is pointless. */
static bool holds_too_much(Tiles *tiles, const Role *role, const Access *access) {
    int64_t elements = 1;
    for (int d = 0; d < access->rank; d++)
        if (__builtin_mul_overflow(elements, tile_extent(tiles->prog, role, access, d), &elements))
            return true;
    return elements > MAX_ELEMENTS;
}

static Candidate *candidate_of(Tiles *tiles, Candidates *all, const Site *site,
                               const Access *access) {
    Layout *layout = access_layout(tiles->prog, site->role, access);
    if (layout == NULL) return NULL;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].layout == layout) return &all->items[i];
    Candidate candidate = {.layout = layout, .role = site->role, .access = access, .unit = 1};
    int64_t bytes = element_rows[access->type].bytes;
    if (bytes < BANK_BYTES) candidate.unit = BANK_BYTES / bytes;
    candidate.fixed =
        access->rank < 2 || layout->addressed || layout->swizzle ||
        layout->panel != tile_extent(tiles->prog, site->role, access, access->rank - 1) ||
        holds_too_much(tiles, site->role, access);
    vec_push(tiles->arena, all, candidate);
    return &all->items[all->count - 1];
}

/* Accumulators are moved by ldmatrix and stmatrix, whose rows are 16 contiguous bytes. */
static bool is_ordinary(const Site *site) {
    if (site->poisoned || (site->tile->class != TILE_MAP && site->tile->class != TILE_LANES))
        return false;
    for (int i = 0; i < site->tile->space.bound; i++)
        if (site->tile->space.items[i].extent < 0) return false;
    return !site->tile->spread || !layout_accumulates(site->tile->spread);
}

static bool is_affine(const Access *access) {
    for (int d = 0; d < access->rank; d++)
        if (!access->affine[d].is) return false;
    return true;
}

static void weigh(Tiles *tiles, Candidates *all, const Site *site, const Access *access,
                  bool measure) {
    Candidate *candidate = candidate_of(tiles, all, site, access);
    if (candidate == NULL) return;
    if (!is_ordinary(site)) candidate->fixed = true;
    if (site->tile->class == TILE_LANES && site->tile->piece.elements > candidate->unit)
        candidate->unit = site->tile->piece.elements;
    if (!measure || candidate->fixed || !is_affine(access)) return;
    int64_t row = candidate->layout->panel;
    candidate->plain += cost_of(tiles, site, access, row, 0);
    candidate->padded += cost_of(tiles, site, access, row, candidate->unit);
    int64_t rounds = rounds_of(tiles, site, access, row, 1);
    if (rounds > candidate->worst) candidate->worst = rounds;
}

static void weigh_all(Tiles *tiles, Candidates *all, bool measure) {
    for (size_t i = 0; i < tiles->sites.count; i++) {
        const Site *site = tiles->sites.items[i];
        weigh(tiles, all, site, &site->tile->target, measure);
        for (size_t k = 0; k < site->reads.count; k++)
            weigh(tiles, all, site, site->reads.items[k], measure);
    }
}

void tiles_banks(Tiles *tiles) {
    Candidates all = {0};
    weigh_all(tiles, &all, false); /* possible paddings */
    weigh_all(tiles, &all, true);  /* their rounds */
    for (size_t i = 0; i < all.count; i++) {
        const Candidate *candidate = &all.items[i];
        if (candidate->fixed || 2 * candidate->padded > candidate->plain) continue;
        candidate->layout->padding = candidate->unit;
        candidate->layout->rounds = candidate->worst;
    }
}
