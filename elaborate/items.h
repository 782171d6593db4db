/* The steps of elaborate over a kernel's items; private to elaborate.c, params.c, items.c and
 * domain.c. */
#ifndef PIPEC_ELABORATE_ITEMS_H
#define PIPEC_ELABORATE_ITEMS_H

#include "elaborate/private.h"

void elab_pend(Elab *e, const char *name, Span span);
void elab_unpend(Elab *e);
void elab_report_cycle(Elab *e, const char *name, Span span, Span use);

/* names of parameters, extents, axes, ranges, pipes and roles */
void elab_kernel_declare(Elab *e);
void elab_kernel_evaluate(Elab *e); /* all other parts, roles last */
void elab_params_declare(Elab *e);
void elab_grid_evaluate(Elab *e, const AstItem *item);
void elab_domains_declare(Elab *e);
void elab_domains_evaluate(Elab *e);
/* `grid dynamic`, dynamic.c: adds the role and the pipes that hand out tiles, after all others;
 * then their statements, after all bodies */
void elab_dynamic_declare(Elab *e, Span span);
void elab_dynamic_evaluate(Elab *e);
void elab_requires_item(Elab *e, const AstItem *item);

#endif
