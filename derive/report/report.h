/* derive, private: --report, as text for readers and as JSON for tools: each fact is printed to
 * both at once, so that both contain the same.
 *   report.c      the kernel, pipes, tensor maps, the map of shared memory
 *   report_role.c roles: registers, copies, matrix instructions, waits, loads
 *   report_json.c the writer, and shapes */
#ifndef PIPEC_REPORT_H
#define PIPEC_REPORT_H

#include "derive/plan.h"

typedef struct Report {
    Arena *arena;
    const Prog *prog;
    Str text, json;
} Report;

/* The fields of JSON; `name` NULL: an element of an array */
void fact_open(Report *report, const char *name, char bracket);
void fact_close(Report *report, char bracket);
void fact_text(Report *report, const char *name, const char *text);
void fact_integer(Report *report, const char *name, int64_t value);
void fact_bool(Report *report, const char *name, bool value);
void fact_integers(Report *report, const char *name, const int64_t *values, int count);

/* "f32[64, 256]" to the text; type and extents to JSON */
void report_shape(Report *report, Element type, int rank, const int64_t *extents);
void report_role(Report *report, const Role *role);

#endif
