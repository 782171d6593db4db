/* prog: ways to access a stage, and questions about sets of them. */
#include "prog/agents.h"

const AgentRow agent_rows[AGENT_COUNT] = {
#define AGENT(name, end, proxy, completes, arrives, text)                                          \
    [AGENT_##name] = {AT_##end, PROXY_##proxy, COMPLETES_##completes, ARRIVES_##arrives, text},
#include "prog/agents.def"
#undef AGENT
};

Agents agents_at(Agents set, int end) {
    for (int a = 0; a < AGENT_COUNT; a++)
        if (!(agent_rows[a].end >> end & 1)) set &= ~(1u << a);
    return set;
}

Agents agents_through(Agents set, Proxy proxy) {
    for (int a = 0; a < AGENT_COUNT; a++)
        if (agent_rows[a].proxy != proxy) set &= ~(1u << a);
    return set;
}

Agents agents_completing(Agents set, Completion completes) {
    for (int a = 0; a < AGENT_COUNT; a++)
        if (agent_rows[a].completes != completes) set &= ~(1u << a);
    return set;
}

unsigned agents_arrive(Agents set) {
    unsigned all = ARRIVES_NOTHING;
    for (int a = 0; a < AGENT_COUNT; a++)
        if (set >> a & 1) all |= agent_rows[a].arrives;
    return all;
}
