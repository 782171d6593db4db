/* Rows from top to bottom, bars from left to right on one axis from zero. Only shapes and text,
 * so that every viewer shows it. */
#include "bench/plot.h"

#include <math.h>

#define LEFT   150 /* left end of the axis */
#define WIDTH  640 /* length of the axis */
#define TOP    70
#define BAR    14
#define GAP    14 /* between groups */
#define GROUP  (PLOT_BARS * BAR + GAP)
#define MARGIN 90 /* width of the numbers to the right of the axis */

static const char *const colours[PLOT_BARS] = {"#1b6ca8", "#b8b8b8", "#7a7a7a"};

static void text(FILE *to, double x, double y, const char *anchor, int size, const char *string) {
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\">", x, y, anchor,
            size);
    for (; *string != 0; string++) {
        switch (*string) {
        case '&': fputs("&amp;", to); break;
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        default: fputc(*string, to);
        }
    }
    fputs("</text>\n", to);
}

static void number(FILE *to, double x, double y, const char *anchor, double value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", value);
    text(to, x, y, anchor, 11, digits);
}

static void line(FILE *to, double x1, double y1, double x2, double y2, const char *style) {
    fprintf(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
            style);
}

#define LIMIT_STYLE   "stroke=\"#c03030\" stroke-width=\"2\""
#define WHISKER_STYLE "stroke=\"#202020\" stroke-width=\"1\""
#define GRID_STYLE    "stroke=\"#e4e4e4\" stroke-width=\"1\""

/* The least of 1, 2 and 5 times a power of ten that divides `most` into at most eight steps */
static double step(double most) {
    double unit = 1;
    while (unit * 80 < most) unit *= 10;
    static const double factors[] = {1, 2, 5, 10};
    for (int i = 0; i < 3; i++)
        if (most / (unit * factors[i]) <= 8) return unit * factors[i];
    return unit * factors[3];
}

static double largest(const Plot *plot) {
    double most = 1; /* fmax ignores NaN */
    for (int r = 0; r < plot->count; r++) {
        most = fmax(most, plot->rows[r].limit);
        for (int b = 0; b < PLOT_BARS; b++)
            most = fmax(most, fmax(plot->rows[r].value[b], plot->rows[r].high[b]));
    }
    return most;
}

static void legend(const Plot *plot, FILE *to) {
    double x = LEFT;
    for (int b = 0; b < PLOT_BARS; b++, x += 160) {
        fprintf(to, "<rect x=\"%.1f\" y=\"38\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x,
                colours[b]);
        text(to, x + 17, 48, "start", 12, plot->bars[b]);
    }
    line(to, x + 6, 37, x + 6, 51, LIMIT_STYLE);
    text(to, x + 17, 48, "start", 12, plot->limit_name);
}

static void group(const PlotRow *row, FILE *to, double top, double scale) {
    text(to, LEFT - 8, top + PLOT_BARS * BAR / 2.0 + 4, "end", 12, row->label);
    for (int b = 0; b < PLOT_BARS; b++) {
        double y = top + b * BAR, middle = y + (BAR - 2) / 2.0, end = LEFT + row->value[b] * scale;
        if (!isfinite(row->value[b])) continue;
        fprintf(to, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", LEFT,
                y, row->value[b] * scale, BAR - 2, colours[b]);
        if (isfinite(row->low[b]) && isfinite(row->high[b])) {
            line(to, LEFT + row->low[b] * scale, middle, LEFT + row->high[b] * scale, middle,
                 WHISKER_STYLE);
            end = fmax(end, LEFT + row->high[b] * scale);
        }
        if (isfinite(row->limit) && end < LEFT + row->limit * scale &&
            end + 36 > LEFT + row->limit * scale)
            end = LEFT + row->limit * scale; /* the number would overlap the line */
        number(to, end + 5, y + BAR - 4, "start", row->value[b]);
    }
    if (!isfinite(row->limit)) return;
    double x = LEFT + row->limit * scale;
    line(to, x, top - 3, x, top + PLOT_BARS * BAR + 1, LIMIT_STYLE);
}

bool plot_write(const Plot *plot, FILE *to) {
    double most = largest(plot), scale = WIDTH / most, height = TOP + plot->count * GROUP + 40;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 "
            "%d %.0f\" "
            "font-family=\"sans-serif\" fill=\"#202020\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"#ffffff\"/>\n",
            LEFT + WIDTH + MARGIN, height, LEFT + WIDTH + MARGIN, height);
    text(to, LEFT, 22, "start", 15, plot->title);
    legend(plot, to);
    double bottom = TOP + plot->count * GROUP;
    for (double at = 0; at <= most; at += step(most)) {
        line(to, LEFT + at * scale, TOP - 6, LEFT + at * scale, bottom, GRID_STYLE);
        number(to, LEFT + at * scale, bottom + 14, "middle", at);
    }
    text(to, LEFT + WIDTH, bottom + 32, "end", 12, plot->unit);
    for (int r = 0; r < plot->count; r++) group(&plot->rows[r], to, TOP + r * GROUP, scale);
    fputs("</svg>\n", to);
    return fflush(to) == 0 && ferror(to) == 0;
}
