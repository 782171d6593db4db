/* Who accesses stages of a pipe, and how: prog/agents.def. */
#ifndef PIPEC_PROG_AGENTS_H
#define PIPEC_PROG_AGENTS_H

#include "util/util.h"

typedef enum ONE_BYTE Agent {
#define AGENT(name, ...) AGENT_##name,
#include "prog/agents.def"
#undef AGENT
    AGENT_COUNT,
    AGENT_NONE = AGENT_COUNT
} Agent;

/* Bits of the ends of a pipe at which an agent may be: 1 << End */
typedef enum ONE_BYTE AgentEnd { AT_PRODUCE = 1, AT_CONSUME = 2, AT_BOTH = 3 } AgentEnd;

typedef enum ONE_BYTE Proxy { PROXY_GENERIC, PROXY_ASYNC } Proxy;

typedef enum ONE_BYTE Completion {
    COMPLETES_ORDER,   /* in the order of the program, for the thread itself */
    COMPLETES_BYTES,   /* the barrier counts them */
    COMPLETES_ARRIVAL, /* the lane's copies arrive at the barrier, or it waits for them */
    COMPLETES_GROUP,   /* the lane that issued them waits for a bulk group */
    COMPLETES_COMMIT,  /* the warpgroup waits for a group of matrix instructions */
    COMPLETES_AUTHOR   /* the program says it */
} Completion;

/* What arrives at the barrier of an end, for each instance */
typedef enum ONE_BYTE Arrives {
    ARRIVES_NOTHING = 0,
    ARRIVES_BYTES = 1,   /* one lane, with the expected bytes */
    ARRIVES_LANES = 2,   /* every lane, when its copies are complete */
    ARRIVES_WARPS = 4,   /* one lane of every warp */
    ARRIVES_INSTANCE = 8 /* one lane */
} Arrives;

typedef struct AgentRow {
    AgentEnd end;
    Proxy proxy;
    Completion completes;
    Arrives arrives;
    const char *text;
} AgentRow;

extern const AgentRow agent_rows[AGENT_COUNT];

typedef unsigned Agents; /* a set: AGENT_BIT of each */

#define AGENT_BIT(name) (1u << AGENT_##name)
#define AGENTS_FILL                                                                                \
    (AGENT_BIT(COPIES_IN) | AGENT_BIT(LANES_IN)) /* copies that fill stages: bytes in flight */

/* Those of the set that are at that End: a role may have both ends of a pipe */
Agents agents_at(Agents set, int end);
/* Those of the set that access memory through the proxy; that complete so */
Agents agents_through(Agents set, Proxy proxy);
Agents agents_completing(Agents set, Completion completes);
/* What they let arrive, together: bits of Arrives */
unsigned agents_arrive(Agents set);

#endif
