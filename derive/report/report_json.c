/* JSON of a report: fields in the order of their reports. */
#include "derive/report/report.h"

#include <inttypes.h>

static void begin(Report *report, const char *name) {
    Str *json = &report->json;
    char last = json->length > 0 ? json->text[json->length - 1] : '{';
    if (json->length > 0 && last != '{' && last != '[') str_char(json, ',');
    if (name == NULL) return;
    str_json(json, name);
    str_char(json, ':');
}

void fact_open(Report *report, const char *name, char bracket) {
    begin(report, name);
    str_char(&report->json, bracket);
}

void fact_close(Report *report, char bracket) { str_char(&report->json, bracket); }

void fact_text(Report *report, const char *name, const char *text) {
    begin(report, name);
    str_json(&report->json, text);
}

void fact_integer(Report *report, const char *name, int64_t value) {
    begin(report, name);
    str_integer(&report->json, value);
}

void fact_bool(Report *report, const char *name, bool value) {
    begin(report, name);
    str_add(&report->json, value ? "true" : "false");
}

void fact_integers(Report *report, const char *name, const int64_t *values, int count) {
    fact_open(report, name, '[');
    for (int i = 0; i < count; i++) fact_integer(report, NULL, values[i]);
    fact_close(report, ']');
}

void report_shape(Report *report, Element type, int rank, const int64_t *extents) {
    str_printf(&report->text, "%s[", element_rows[type].spelling);
    for (int axis = 0; axis < rank; axis++)
        str_printf(&report->text, "%s%" PRId64, axis > 0 ? ", " : "", extents[axis]);
    str_char(&report->text, ']');
    fact_text(report, "type", element_rows[type].spelling);
    fact_integers(report, "extents", extents, rank);
}
