/* Names of the kinds of work. */
#include "util/util.h"

const char *const work_names[WORK_KINDS] = {
#define WORK(name, text, ...) text,
#include "util/work.def"
#undef WORK
};
