/* Effects of rows: what a rule asks instead of the kind. rows.def has them, a column each. */
#ifndef PIPEC_FLOW_EFFECTS_H
#define PIPEC_FLOW_EFFECTS_H

#include "util/util.h"

typedef enum ONE_BYTE RowKind {
#define ROW(name, ...) ROW_##name,
#include "flow/rows.def"
#undef ROW
    ROW_COUNT
} RowKind;

/* Where the path goes on. ON: at the next row; the others: code.h, `Region`. */
typedef enum ONE_BYTE ControlEffect {
    CONTROL_ON,
    CONTROL_LOOP,
    CONTROL_NEXT,
    CONTROL_IF,
    CONTROL_ELSE,
    CONTROL_BLOCK,
    CONTROL_END,
    CONTROL_LEAVE,
    CONTROL_EXIT,
    CONTROL_COUNT
} ControlEffect;

/* What happens to a stage */
typedef enum ONE_BYTE StageEffect {
    STAGE_NONE,
    STAGE_ASK,       /* nothing: whether the next one is ready is read */
    STAGE_TAKE,      /* the handle holds the next one */
    STAGE_GIVE,      /* the handle gives its own up */
    STAGE_GIVE_LATE, /* a late set takes it over */
    STAGE_GIVE_ALL,  /* the late set gives all up */
    STAGE_MOVE,      /* the handle takes over that of another */
    STAGE_LEND,      /* it is used by a function */
    STAGE_STEP,      /* one is passed over */
    STAGE_COUNT
} StageEffect;

typedef enum ONE_BYTE ScopeEffect {
    SCOPE_NONE,
    SCOPE_OPENS,
    SCOPE_CLOSES,
    SCOPE_COUNT
} ScopeEffect;

/* What is read and written: row_accesses and row_exprs visit it */
typedef enum ONE_BYTE RowAccess {
    ACCESS_NOTHING,
    ACCESS_EVALUATES, /* bounds or a condition */
    ACCESS_SETS,      /* a local gets a value */
    ACCESS_WRITES,    /* elements of a tile, stage or tensor */
    ACCESS_FETCHES,   /* addresses are evaluated, and no element is read */
    ACCESS_RAW,       /* an operation of an `unsafe` block */
    ACCESS_COUNT
} RowAccess;

/* Which threads must be there */
typedef enum ONE_BYTE Executes {
    EXECUTES_EACH,     /* those that are */
    EXECUTES_INSTANCE, /* all of the instance, or none */
    EXECUTES_ROLE,     /* all of the role, or none */
    EXECUTES_IN_TURN   /* all of the role, one instance after the other */
} Executes;

/* What it does to barriers */
typedef enum ONE_BYTE Signals {
    SIGNALS_NOTHING,
    SIGNALS_TESTS,   /* whether a phase is complete */
    SIGNALS_WAITS,   /* for a phase */
    SIGNALS_ARRIVES, /* at the next phase */
    SIGNALS_STEPS    /* counts as a wait */
} Signals;

typedef struct RowEffects {
    ControlEffect control;
    StageEffect stage;
    ScopeEffect scope;
    RowAccess access;
    Executes executes;
    Signals signals;
} RowEffects;

extern const RowEffects row_effects[ROW_COUNT];
extern const char *const row_names[ROW_COUNT];

/* True for rows that change which stage one handle holds */
static inline bool row_changes_hold(RowKind kind) {
    StageEffect stage = row_effects[kind].stage;
    return stage == STAGE_TAKE || stage == STAGE_GIVE || stage == STAGE_GIVE_LATE ||
           stage == STAGE_MOVE;
}

/* True for heads of regions */
static inline bool row_begins(RowKind kind) {
    ControlEffect control = row_effects[kind].control;
    return control == CONTROL_LOOP || control == CONTROL_IF || control == CONTROL_BLOCK;
}
/* True for ends of iterations, arms and regions */
static inline bool row_ends(RowKind kind) {
    ControlEffect control = row_effects[kind].control;
    return control == CONTROL_NEXT || control == CONTROL_ELSE || control == CONTROL_END;
}
/* True for rows whose values decide which rows follow */
static inline bool row_decides(RowKind kind) {
    return row_effects[kind].access == ACCESS_EVALUATES;
}
/* True for rows that may set a local as their effect */
static inline bool row_computes(RowKind kind) {
    RowAccess access = row_effects[kind].access;
    return access == ACCESS_SETS || access == ACCESS_RAW;
}
/* True for rows after which the handle holds another stage than before */
static inline bool row_gains(RowKind kind) {
    StageEffect stage = row_effects[kind].stage;
    return stage == STAGE_TAKE || stage == STAGE_MOVE;
}
/* True for releases, at once or late */
static inline bool row_releases(RowKind kind) {
    StageEffect stage = row_effects[kind].stage;
    return (stage == STAGE_GIVE || stage == STAGE_GIVE_LATE) &&
           row_effects[kind].signals == SIGNALS_ARRIVES;
}
static inline bool row_in_turn(RowKind kind) {
    return row_effects[kind].executes == EXECUTES_IN_TURN;
}

/* True for rows that only the next row follows and that execute nothing but arrivals */
static inline bool row_issues_nothing(RowKind kind) {
    const RowEffects *row = &row_effects[kind];
    return row->control == CONTROL_ON && row->access == ACCESS_NOTHING &&
           (row->signals == SIGNALS_NOTHING || row->signals == SIGNALS_ARRIVES);
}

#endif
