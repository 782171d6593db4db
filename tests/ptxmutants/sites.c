/* The places of operators.def: which of the matching instructions an operator applies to. Each
 * function is asked only for instructions that fit the operator's pattern. */
#include "tests/ptxmutants/ptxmutants.h"

#include <stdlib.h>
#include <string.h>

static const Line *here(const Site *site) { return &site->lines->items[site->at]; }

/* The next instruction, or an empty line */
static const Line *next(const Site *site) {
    static const Line none = {.role = ""};
    size_t at = line_next(site->lines, site->at);
    return at < site->lines->count ? &site->lines->items[at] : &none;
}

static bool same_role(const Line *a, const Line *b) { return strcmp(a->role, b->role) == 0; }

bool site_anywhere(const Site *site) {
    (void)site;
    return true;
}

/* The constant in the address of an mbarrier; 0 if the instruction has none */
static int64_t barrier(const Line *line) {
    if (line_is(line, "mbarrier.init")) return address_constant(line->operands[0]);
    return line->operand_count > 1 ? address_constant(line->operands[1]) : 0;
}

/* The parity of the role's first wait with this register or number */
static bool starts_with_1(const Lines *lines, const Line *wait) {
    const char *parity = wait->operands[2];
    for (size_t i = 0; i < lines->count && parity[0] == '%'; i++) {
        const Line *line = &lines->items[i];
        if (same_role(line, wait) && line_is(line, "mov.b32") &&
            strcmp(line->operands[0], parity) == 0)
            parity = line->operands[1];
    }
    return strcmp(parity, "1") == 0;
}

/* The first wait for the phase before the first, and no other, never waits */
static bool can_block(const Lines *lines, const Line *wait) {
    return wait->looped || !starts_with_1(lines, wait);
}

/* The waits for this mbarrier. A ring has its barriers one after the other, and waits name the
 * first of them. */
typedef struct Waits {
    bool any_blocks;
    bool for_empty; /* they begin with the phase before the first: all stages are empty */
} Waits;

static Waits waits_for(const Lines *lines, int64_t address) {
    int64_t first = INT64_MIN;
    Waits waits = {0};
    for (size_t i = 0; i < lines->count; i++) {
        const Line *line = &lines->items[i];
        if (!line_is(line, "mbarrier.try_wait") || barrier(line) > address) continue;
        if (barrier(line) < first) continue;
        if (barrier(line) > first) waits = (Waits){0};
        first = barrier(line);
        waits.any_blocks |= can_block(lines, line);
        waits.for_empty |= starts_with_1(lines, line);
    }
    return waits;
}

static bool is_awaited(const Lines *lines, int64_t address) {
    return waits_for(lines, address).any_blocks;
}

/* The same instruction for the same barrier */
static bool repeats(const Site *site, const Line *before) {
    const Line *line = here(site);
    if (!same_role(before, line) || !line_is(before, site->row->instruction)) return false;
    return line_is(line, "bar") ? strcmp(before->operands[0], line->operands[0]) == 0
                                : barrier(before) == barrier(line);
}

/* Not the copy behind a loop of what the loop does for the stage before: nobody waits for the
 * last stages any more */
bool site_in_use(const Site *site) {
    const Line *line = here(site);
    if (line_is(line, "mbarrier") && !is_awaited(site->lines, barrier(line))) return false;
    if (line->looped) return true;
    for (size_t i = 0; i < site->at; i++)
        if (site->lines->items[i].looped && repeats(site, &site->lines->items[i])) return false;
    return true;
}

bool site_guarded_in_use(const Site *site) {
    return here(site)->guard != NULL && site_in_use(site);
}

static bool has(const Lines *lines, const char *pattern) {
    for (size_t i = 0; i < lines->count; i++)
        if (line_is(&lines->items[i], pattern)) return true;
    return false;
}

/* Behind an access, or the wait for one, since the role last waited for an mbarrier */
bool site_releases(const Site *site) {
    const Lines *lines = site->lines;
    if (!site_in_use(site)) return false;
    for (size_t i = site->at; i-- > 0 && same_role(&lines->items[i], here(site));) {
        const Line *line = &lines->items[i];
        if (line_is(line, "mbarrier.try_wait")) return false;
        if (line_accesses(line) || line_is(line, "st.global") || line_is(line, "cp.async -bulk") ||
            line_is(line, "wgmma.wait_group") || line_is(line, "cp.async.bulk.wait_group"))
            return true;
    }
    return false;
}

/* Copies complete at mbarriers */
bool site_before_copies(const Site *site) {
    return has(site->lines, "cp.async.bulk +mbarrier::complete_tx::bytes");
}

/* A wait for a group, and then this arrival, without a wait for an mbarrier between them */
bool site_behind_group_wait(const Site *site) {
    for (size_t i = site->at; i-- > 0 && same_role(&site->lines->items[i], here(site));) {
        const Line *line = &site->lines->items[i];
        if (line_is(line, "wgmma.wait_group") || line_is(line, "cp.async.bulk.wait_group"))
            return site_in_use(site);
        if (line_is(line, "mbarrier") || line_is(line, "bar")) return false;
    }
    return false;
}

bool site_initialises_awaited(const Site *site) {
    return is_awaited(site->lines, barrier(here(site)));
}

bool site_counts_several(const Site *site) {
    return strtol(here(site)->operands[1], NULL, 10) > 1 && site_initialises_awaited(site);
}

/* A wait that may block, and a branch that repeats it if it fails */
bool site_blocks(const Site *site) {
    const Line *branch = next(site), *line = here(site);
    return can_block(site->lines, line) && line_is(branch, "bra") && branch->guard != NULL &&
           branch->guard[0] == '!' && strcmp(branch->guard + 1, line->operands[0]) == 0;
}

/* `xor x, x, 1` of the parity of a wait in the same role that comes again */
bool site_flips_parity(const Site *site) {
    const Line *line = here(site);
    if (!line->looped || line->operand_count != 3 || strcmp(line->operands[2], "1") != 0)
        return false;
    for (size_t i = 0; i < site->lines->count; i++) {
        const Line *wait = &site->lines->items[i];
        if (line_is(wait, "mbarrier.try_wait") && same_role(wait, line) &&
            strcmp(wait->operands[2], line->operands[0]) == 0)
            return true;
    }
    return false;
}

bool site_flips_parity_of_ring(const Site *site) {
    return here(site)->guard != NULL && site_flips_parity(site);
}

/* `mov stage, cursor`, where the cursor of a ring is what `selp cursor, 0, cursor, p` steps */
bool site_takes_stage(const Site *site) {
    const Line *line = here(site);
    for (size_t i = site->at; i < site->lines->count; i++) {
        const Line *step = &site->lines->items[i];
        if (!same_role(step, line) || line_is(step, "mbarrier")) return false;
        if (line_is(step, "selp.b32") && strcmp(step->operands[1], "0") == 0 &&
            strcmp(step->operands[0], line->operands[1]) == 0 &&
            strcmp(step->operands[2], line->operands[1]) == 0)
            return true;
    }
    return false;
}

bool site_several_coordinates(const Site *site) {
    for (size_t i = 0; i < here(site)->operand_count; i++) {
        const char *list = strchr(here(site)->operands[i], '{');
        const char *comma = list != NULL ? strchr(list, ',') : NULL;
        if (comma == NULL) continue;
        size_t first = (size_t)(comma - list - 1), second = strcspn(comma + 2, ",}");
        return first != second || strncmp(list + 1, comma + 2, first) != 0;
    }
    return false;
}

/* At least two warps; a count that is not given is that of all threads */
bool site_counts_warps(const Site *site) {
    const Line *line = here(site);
    return (line->operand_count < 2 || strtol(line->operands[1], NULL, 10) >= 64) &&
           site_in_use(site);
}

/* Not behind another fence of the same block, unless registers of the next matrix instruction were
 * written since */
bool site_behind_register_writes(const Site *site) {
    const Line *product = here(site);
    for (size_t at = site->at; at < site->lines->count && !line_is(product, "wgmma.mma_async");)
        product = &site->lines->items[at++];
    for (size_t i = site->at; i-- > 0;) {
        const Line *line = &site->lines->items[i];
        if (line_is(line, "wgmma.fence")) return false;
        if (line->label != NULL || line_is(line, "bra")) break;
        if (line->operand_count > 1 && operand_uses(product->operands[0], line->operands[0])) break;
    }
    return true;
}

/* Something was committed since the last wait for all groups */
bool site_behind_commit(const Site *site) {
    for (size_t i = site->at; i-- > 0;) {
        const Line *line = &site->lines->items[i];
        if (line_is(line, "wgmma.commit_group")) return true;
        if (line_is(line, "wgmma.wait_group") && strcmp(line->operands[0], "0") == 0) return false;
    }
    return false;
}

/* Accesses since the one before, and a signal to other threads or an asynchronous operation as
 * the next thing that synchronises */
bool site_before_signal(const Site *site) {
    const Lines *lines = site->lines;
    bool accesses = false;
    size_t after = site->at;
    for (size_t i = site->at; i-- > 0 && same_role(&lines->items[i], here(site));) {
        if (line_is(&lines->items[i], "bar")) break;
        accesses |= line_accesses(&lines->items[i]);
    }
    do after = line_next(lines, after);
    while (after < lines->count && same_role(&lines->items[after], here(site)) &&
           !line_accesses(&lines->items[after]) && !line_is(&lines->items[after], "bar") &&
           !line_is(&lines->items[after], "barrier") && !line_is(&lines->items[after], "cp") &&
           !line_is(&lines->items[after], "mbarrier"));
    return accesses && after < lines->count &&
           (line_is(&lines->items[after], "mbarrier.arrive") ||
            line_is(&lines->items[after], "cp.async.bulk"));
}

/* bar.sync and bar.arrive of one number, by different threads */
bool site_has_partner(const Site *site) {
    if (!site_in_use(site)) return false;
    for (size_t i = 0; i < site->lines->count; i++) {
        const Line *line = &site->lines->items[i];
        if (line_is(line, "bar.arrive") && strcmp(line->operands[0], here(site)->operands[0]) == 0)
            return true;
    }
    return false;
}

/* The first of its instruction */
bool site_begins(const Site *site) {
    for (size_t i = 0; i < site->at; i++)
        if (line_is(&site->lines->items[i], site->row->instruction)) return false;
    return true;
}

/* Outside of roles, what follows the first one is for warps beyond all roles, which do not exist */
bool site_reached(const Site *site) { return here(site)->role[0] != '\0' || site_begins(site); }

bool site_in_role(const Site *site) { return here(site)->role[0] != '\0'; }

bool site_selects_block(const Site *site) {
    return here(site)->looped && strcmp(here(site)->operands[2], "0") != 0;
}

/* Some role gets the registers that others give */
bool site_registers_move(const Site *site) {
    for (size_t i = 0; i < site->lines->count; i++)
        if (line_is(&site->lines->items[i], "setmaxnreg.inc")) return true;
    return false;
}

/* The waits behind the loop are the only ones for the last store */
bool site_drains(const Site *site) {
    for (size_t i = 0; i < site->at; i++) {
        const Line *line = &site->lines->items[i];
        if (line->looped && same_role(line, here(site)) &&
            line_is(line, "cp.async.bulk.wait_group") && strcmp(line->operands[0], "0") == 0)
            return false;
    }
    return true;
}

static bool follows_write(const Site *site) {
    bool global = !line_is(here(site), "fence.proxy.async +shared::cta");
    for (size_t i = site->at; i-- > 0 && same_role(&site->lines->items[i], here(site));) {
        const Line *line = &site->lines->items[i];
        if (line_writes(line) || (global && line_is(line, "st.global"))) return true;
        if (line_is(line, "fence.proxy.async")) return false;
    }
    return false;
}

/* A write since the fence before, to memory that this fence serves, in a kernel that has
 * operations of the async proxy; and then no release of a
 * stage that was only read: such writes are to other memory */
bool site_behind_write(const Site *site) {
    const Lines *lines = site->lines;
    size_t at = site->at;
    if (!follows_write(site)) return false;
    if (!has(lines, "cp.async.bulk") && !has(lines, "wgmma.mma_async")) return false;
    do at = line_next(lines, at);
    while (at < lines->count && !line_is(&lines->items[at], "mbarrier.arrive") &&
           !line_is(&lines->items[at], "fence") && !line_is(&lines->items[at], "cp"));
    return at == lines->count || !line_is(&lines->items[at], "mbarrier.arrive") ||
           !waits_for(lines, barrier(&lines->items[at])).for_empty;
}

/* The next instruction is a branch around what the elected lane does */
bool site_guards_next(const Site *site) {
    return line_is(next(site), "bra") && next(site)->guard != NULL;
}
