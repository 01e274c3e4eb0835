/* Small things that all text views share: colours, cutting to the width, shares. */
#include "report/view/view.h"
#include "formats/escape.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct { double least; const char *on; } heats[] = {       /* as perf: red from 5 % */
        { 0.20, "\033[1;31m" },
        { 0.05, "\033[31m" },
        { 0.02, "\033[33m" },
        { 0.005, "\033[32m" },
};

unsigned ls_heat_level(double share)
{
        unsigned n = sizeof(heats) / sizeof(heats[0]), i;

        for (i = 0; i < n && share < heats[i].least; i++)
                ;
        return n - i;
}

const char *ls_heat(const struct ls_report *r, double share)
{
        unsigned level = r->color ? ls_heat_level(share) : 0;

        return level ? heats[LS_HEAT_LEVELS - level].on : "";
}

const char *ls_dim(const struct ls_report *r)
{
        return r->color ? "\033[2m" : "";
}

const char *ls_plain(const struct ls_report *r)
{
        return r->color ? "\033[m" : "";
}

void ls_put_fit(FILE *out, const char *text, size_t columns, int pad)
{
        size_t has = ls_text_columns(text);

        if (columns && has > columns) {
                size_t keep = columns > 6 ? columns - 3 : columns;

                has = ls_fit(text, keep);
                fprintf(out, "%.*s%s", (int)has, text, columns > 6 ? "..." : "");
                return;
        }
        fputs(text, out);
        for (; pad && has < columns; has++)
                fputc(' ', out);
}

double ls_share(uint64_t part, uint64_t whole)
{
        return whole ? (double)part / (double)whole : 0;
}

static const struct { const char *share, *raw; } number_titles[] = {
        { "Self", "Self ticks" }, { "Total", "Total ticks" }, { "Share", "Ticks" },
};

unsigned ls_number_width(const struct ls_report *r)
{
        if (ls_events_amount(&r->filter->choice) && !r->o->raw)
                return 10;              /* 999.9 MB and two spaces */
        return r->o->raw ? 13 : 8;      /* "# " and the longest title, or 100.00% and a space */
}

unsigned ls_margin_width(const struct ls_report *r)
{
        return ls_events_amount(&r->filter->choice) ? 16 : 8;
}

const char *ls_margin_title(const struct ls_report *r)
{
        if (ls_events_count(&r->filter->choice))
                return "  Share";
        return ls_events_amount(&r->filter->choice) ? "  Share   +-95%" : "  +-95%";
}

const char *ls_number_title(const struct ls_report *r, const char *share_title)
{
        if (ls_events_count(&r->filter->choice))
                return strcmp(share_title, "Share") ? share_title : "Count";
        if (ls_events_amount(&r->filter->choice))
                return strcmp(share_title, "Share") ? share_title : "Amount";
        for (size_t i = 0; r->o->raw && i < sizeof(number_titles) / sizeof(number_titles[0]); i++)
                if (!strcmp(number_titles[i].share, share_title))
                        return number_titles[i].raw;
        return share_title;
}

void ls_put_number(const struct ls_report *r, uint64_t part, uint64_t whole)
{
        int width = (int)ls_number_width(r);

        char amount[LS_AMOUNT];

        if (r->o->raw)
                fprintf(r->out, "%*" PRIu64, width, part);
        else if (ls_events_amount(&r->filter->choice))
                fprintf(r->out, "%*s", width,
                        ls_amount_text(r->filter->choice.id[0], (double)part, amount));
        else
                fprintf(r->out, "%*.2f%%", width - 1, 100 * ls_share(part, whole));
}

void ls_put_margin(const struct ls_report *r, double share, double n, uint64_t whole)
{
        double margin = ls_margin(share, n);

        if (ls_events_count(&r->filter->choice)) {      /* it has none: its share beside the
                                                         * number */
                fprintf(r->out, " %s%6.2f%%%s", ls_dim(r), 100 * share, ls_plain(r));
                return;
        }
        if (ls_events_amount(&r->filter->choice)) {
                fprintf(r->out, " %s%6.2f%% %6.2f%%%s", ls_dim(r), 100 * share, 100 * margin,
                        ls_plain(r));
                return;
        }
        if (r->o->raw)
                fprintf(r->out, " %s%7.0f%s", ls_dim(r), margin * (double)whole, ls_plain(r));
        else
                fprintf(r->out, " %s%6.2f%%%s", ls_dim(r), 100 * margin, ls_plain(r));
}

/* -jp rounds to whole percents before it compares; with a fraction in --min there is nothing to
 * round to. */
int ls_below_min(const struct ls_report *r, uint64_t part, uint64_t whole)
{
        double percent = ls_share(part, whole) * 100;

        if (r->o->min == floor(r->o->min))
                percent = floor(percent + 0.5);
        return percent < r->o->min;
}

char *ls_place_text(const struct ls_report *r, uint32_t function)
{
        const struct ls_profile *p = r->profile;
        const struct ls_function *f = &p->functions[function];
        const struct ls_str *path = &p->mappings[f->mapping].path;
        char *text = NULL;

        if (f->kind == LS_FUNC_LUA && f->source) {
                if (f->flags & LS_FUNCF_MAIN)
                        return strdup(r->labels->source[f->source]);
                if (asprintf(&text, "%s:%u", r->labels->source[f->source], f->first_line) < 0)
                        return NULL;
        } else if (f->kind == LS_FUNC_C && f->mapping && path->len) {
                const char *slash = r->o->full_path ? NULL : memrchr(path->s, '/', path->len);

                return slash ? ls_visible(slash + 1, path->len - (size_t)(slash + 1 - path->s))
                             : ls_visible(path->s, path->len);
        } else if (f->kind == LS_FUNC_BUILTIN) {
                return strdup("[builtin]");
        }
        return text;
}
