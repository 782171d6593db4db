/* The layout of a register tile: converts digits of threads and registers to coordinates and
 * back. derive/threads/tiles_registers.c chooses the layout of each tile; all code that places,
 * moves or counts elements calls these functions. */
#include "prog/prog.h"

#define DIGITS_MOST (PROG_MAX_INDEXES * 4)

/* A digit of the register number, and the spread whose coordinate it changes */
typedef struct Place {
    const Digit *digit;
    int spread;
} Place;

/* The digits of the register number, fastest first */
static int register_digits(const RegisterLayout *layout, Place *places) {
    int count = 0;
    for (int s = layout->count - 1; s >= 0; s--)
        for (int d = 0; d < layout->spreads[s].count; d++) {
            const Digit *digit = &layout->spreads[s].digits[d];
            if (digit->in_thread) continue;
            int at = count++;
            for (; at > 0 && places[at - 1].digit->place > digit->place; at--)
                places[at] = places[at - 1];
            places[at] = (Place){digit, s};
        }
    return count;
}

int64_t layout_registers(const RegisterLayout *layout) {
    int64_t product = 1;
    for (int s = 0; s < layout->count; s++)
        for (int d = 0; d < layout->spreads[s].count; d++)
            if (!layout->spreads[s].digits[d].in_thread &&
                __builtin_mul_overflow(product, layout->spreads[s].digits[d].extent, &product))
                return INT64_MAX;
    return product;
}

void layout_coordinates(const RegisterLayout *layout, int64_t number, int64_t *coordinates) {
    Place places[DIGITS_MOST];
    int count = register_digits(layout, places);
    for (int s = 0; s < layout->count; s++) coordinates[s] = 0;
    for (int i = 0; i < count; i++) {
        coordinates[places[i].spread] += number % places[i].digit->extent * places[i].digit->stride;
        number /= places[i].digit->extent;
    }
}

/* The digit of a coordinate from which the thread's part has been removed */
static int64_t digit_of(const Spread *spread, const Digit *digit, int64_t coordinate) {
    for (int d = spread->count - 1; &spread->digits[d] != digit; d--)
        coordinate %= spread->digits[d].stride;
    return coordinate / digit->stride;
}

int64_t layout_number(const RegisterLayout *layout, const int64_t *coordinates) {
    Place places[DIGITS_MOST];
    int count = register_digits(layout, places);
    int64_t number = 0;
    for (int i = count - 1; i >= 0; i--)
        number = number * places[i].digit->extent + digit_of(&layout->spreads[places[i].spread],
                                                             places[i].digit,
                                                             coordinates[places[i].spread]);
    return number;
}

int layout_vector(const RegisterLayout *layout, int *axis) {
    Place places[DIGITS_MOST];
    int count = register_digits(layout, places);
    *axis = -1;
    if (count == 0 || places[0].digit->place > 0) return 1;
    const Spread *spread = &layout->spreads[places[0].spread];
    *axis = spread->axes[spread->members - 1];
    return (int)places[0].digit->extent;
}

int layout_replicas(const RegisterLayout *layout, int threads, Digit *digits) {
    int count = 0;
    for (int place = 1; place < threads;) {
        /* the next free place, and the end of the previous digit */
        int next = threads;
        int64_t end = threads;
        for (int s = 0; s < layout->count; s++)
            for (int d = 0; d < layout->spreads[s].count; d++) {
                const Digit *digit = &layout->spreads[s].digits[d];
                if (!digit->in_thread || digit->place < place || digit->place >= next) continue;
                next = digit->place, end = digit->place * digit->extent;
            }
        if (next > place) digits[count++] = (Digit){true, place, next / place, 0};
        place = (int)end;
    }
    return count;
}

const Spread *layout_spread(const RegisterLayout *layout, int axis, int *number) {
    for (int s = 0; s < layout->count; s++)
        for (int m = 0; m < layout->spreads[s].members; m++)
            if (layout->spreads[s].axes[m] == axis) {
                if (number) *number = s;
                return &layout->spreads[s];
            }
    return NULL;
}

bool layout_same(const RegisterLayout *a, const RegisterLayout *b) {
    if (a == NULL || b == NULL) return a == b;
    bool same = a->count == b->count;
    for (int s = 0; s < a->count && same; s++) {
        const Spread *x = &a->spreads[s], *y = &b->spreads[s];
        same = x->kind == y->kind && x->members == y->members && x->count == y->count;
        for (int m = 0; m < x->members && same; m++) same = x->axes[m] == y->axes[m];
        for (int d = 0; d < x->count && same; d++)
            same = x->digits[d].in_thread == y->digits[d].in_thread &&
                   x->digits[d].place == y->digits[d].place &&
                   x->digits[d].extent == y->digits[d].extent &&
                   x->digits[d].stride == y->digits[d].stride;
    }
    return same;
}

bool layout_is_blocked(const RegisterLayout *layout) {
    bool blocked = true;
    for (int s = 0; s < layout->count; s++)
        blocked &=
            layout->spreads[s].kind == SPREAD_BLOCKED || layout->spreads[s].kind == SPREAD_EVERY;
    return blocked;
}

bool layout_accumulates(const RegisterLayout *layout) {
    bool rows = false, columns = false;
    for (int s = 0; s < layout->count; s++) {
        rows |= layout->spreads[s].kind == SPREAD_ROWS;
        columns |= layout->spreads[s].kind == SPREAD_COLUMNS;
    }
    return rows && columns;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_spread(const Spread *spread, Str *out) {
    static const char *const words[] = {[SPREAD_ROWS] = "as rows of accumulators",
                                        [SPREAD_COLUMNS] = "as columns of accumulators",
                                        [SPREAD_EVERY] = "whole in every thread"};
    str_add(out, spread->members > 1 ? "axes" : "axis");
    for (int m = 0; m < spread->members; m++)
        str_printf(out, "%s %d", m > 0 ? "," : "", spread->axes[m]);
    if (spread->kind != SPREAD_BLOCKED) {
        str_printf(out, " %s", words[spread->kind]);
        return;
    }
    int64_t vector = 1, threads = 1;
    for (int d = 0; d < spread->count; d++) {
        if (spread->digits[d].in_thread) threads *= spread->digits[d].extent;
        if (!spread->digits[d].in_thread && spread->digits[d].place == 0)
            vector = spread->digits[d].extent;
    }
    if (vector > 1) str_printf(out, " in vectors of %lld", (long long)vector);
    str_printf(out, " over %lld threads", (long long)threads);
}

void layout_print(const RegisterLayout *layout, int threads, Str *out) {
    Digit digits[2 * PROG_MAX_INDEXES + 1];
    int64_t replicas = 1, held = layout_registers(layout);
    int count = layout_replicas(layout, threads, digits);
    for (int d = 0; d < count; d++) replicas *= digits[d].extent;
    for (int s = 0; s < layout->count; s++) {
        print_spread(&layout->spreads[s], out);
        str_add(out, ", ");
    }
    str_printf(out, "%lld element%s per thread", (long long)held, held == 1 ? "" : "s");
    if (replicas > 1) str_printf(out, ", each in %lld threads", (long long)replicas);
}
