/* window: pipes on which no roles wait for each other for ever, because their two ends hold less
 * than the ring. */
#ifndef PIPEC_WINDOW_H
#define PIPEC_WINDOW_H

#include "prog/prog.h"

typedef struct PipeEdge { /* the producer of a pipe and one of its consumers */
    int pipe, consumer;
} PipeEdge;

/* Needs equal counts at both ends of the edges, and what the roles hold (flow/held.h) with the lags
 * derived. True: the roles of these edges do not wait for each other for ever over them. False:
 * that is not known. */
bool window_proves(Arena *arena, const Prog *prog, const PipeEdge *edges, size_t count);

#endif
