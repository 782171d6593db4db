/* verdicts, check private: about what the rule `written` of derive/ finds.
 *   written_verdict.c  at each release: the payload, and its bytes
 *   written_report.c   reads without a value, and writes that nothing orders */
#ifndef PIPEC_VERDICTS_H
#define PIPEC_VERDICTS_H

#include "check/passes.h"
#include "derive/written.h"

void report_stages(Written *w);
void report_tiles(Written *w); /* after all errors about stages */

#endif
