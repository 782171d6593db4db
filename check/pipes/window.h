/* window: pipes over which roles cannot deadlock, because their two ends together hold less than
 * the ring. */
#ifndef PIPEC_WINDOW_H
#define PIPEC_WINDOW_H

#include "prog/prog.h"

typedef struct PipeEdge { /* the producer of a pipe and one of its consumers */
    int pipe, consumer;
} PipeEdge;

/* Needs equal counts at both ends of the edges, and held stages (flow/held.h) with derived lags.
 * True: the roles of these edges cannot deadlock over them. False: unknown. */
bool window_proves(Arena *arena, const Prog *prog, const PipeEdge *edges, size_t count);

#endif
