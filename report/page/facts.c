/* What a page says of the recording: how well the rate was kept, what was lost, where it ran, what
 * was marked. Called by report/page/page.c. */
#include "cli/command.h"
#include "report/model/facts.h"
#include "report/page/page.h"
#include "formats/json.h"

#include <inttypes.h>
#include <string.h>

#define MOST_MARKS 2000u                /* a program may mark each frame that it draws */

static void put_infos(const struct ls_profile *p, struct ls_js *g)
{
        static const struct { const char *title; enum ls_info_key key;
        } rows[] = {
                { "Command", LS_INFO_COMMAND },
                { "Host", LS_INFO_HOST },
                { "Kernel", LS_INFO_KERNEL },
                { "Runtime", LS_INFO_RUNTIME },
                { "Engine", LS_INFO_ENGINE },
                { "Timer", LS_INFO_TIMER },
                { "Clock", LS_INFO_CLOCK },
                { "Places in compiled code", LS_INFO_JIT_LEAF },
                { "Recorded by luasample", LS_INFO_VERSION },
        };

        ls_js_key_open(g, "infos", '[');
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct ls_str value = ls_profile_str(p, rows[i].key);

                if (!value.len)
                        continue;
                ls_js_open(g, '[');
                ls_js_string(g, rows[i].title);
                ls_js_text(g, value);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
}

/* [what, count, share, kind]: kind 0 = ticks that are missing, 1 = stacks that lack a part, 2 =
 * other. */
static void put_losses(const struct ls_facts *f, const struct ls_profile *p, struct ls_js *g)
{
        ls_js_key_open(g, "losses", '[');
        for (unsigned i = 0; i < f->n_losses; i++) {
                const struct ls_loss_fact *l = &f->losses[i];
                char one[160];

                if (!l->count)
                        continue;
                ls_js_open(g, '[');
                ls_js_string(g, l->is_ticks
                                        ? l->label
                                        : ls_counted_text(l->count, l->label, one, sizeof(one)));
                ls_js_u64(g, l->count);
                ls_js_share(g, l->share);
                ls_js_u64(g, l->is_ticks ? 0 : l->is_stack ? 1 : 2);
                ls_js_close(g, ']');
        }
        if (p->lost_ticks) {
                ls_js_open(g, '[');
                ls_js_string(g, "definitions of the stacks were in damaged chunks");
                ls_js_u64(g, p->lost_ticks);
                ls_js_share(g, ls_share(p->lost_ticks, f->ticks));
                ls_js_u64(g, 1);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
}

static void put_note(struct ls_js *g, uint32_t n, const char *what)
{
        char text[96];

        if (!n)
                return;
        snprintf(text, sizeof(text), "%" PRIu32 " more %s", n, what);
        ls_js_string(g, text);
}

/* Of the threads and the time that the filters leave. */
static int is_shown(const struct ls_filter *f, const struct ls_mark *m)
{
        return (!f->threads || f->threads[m->thread]) &&
               (!f->has_time || (m->time_ns > f->from_ns && m->time_ns <= f->to_ns));
}

static uint32_t marks_left_out(const struct ls_report *r)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < r->profile->n_marks; i++)
                n += is_shown(r->filter, &r->profile->marks[i]) != 0;
        return n > MOST_MARKS ? n - MOST_MARKS : 0;
}

static void put_notes(const struct ls_report *r, const struct ls_page_cells *c, struct ls_js *g)
{
        const struct ls_profile *p = r->profile;

        ls_js_key_open(g, "notes", '[');
        for (uint32_t i = 0; i < p->n_notices && i < 20; i++)
                ls_js_text(g, p->notices[i]);
        if (!p->complete)
                ls_js_string(g, "the trace has no end: it is still being written, or was cut off");
        if (p->n_damages)
                ls_js_string(g, "chunks of the trace are damaged: luasample info lists them");
        put_note(g, c->labels.left_out,
                 "keys of labels are not on the page: --label filters by them");
        put_note(g, marks_left_out(r), "marks are not on the page: luasample dump lists all");
        ls_js_close(g, ']');
}

void ls_page_facts_json(const struct ls_page *page, const struct ls_page_cells *c, struct ls_js *g)
{
        const struct ls_profile *p = page->report->profile;
        struct ls_facts f;

        ls_facts_init(&f, p);
        ls_js_key_open(g, "facts", '{');
        ls_js_key_u64(g, "elapsed_ns", f.elapsed_ns);
        ls_js_key_u64(g, "samples", p->recorded_samples);
        ls_js_key_u64(g, "ticks", f.ticks);
        ls_js_key_share(g, "own_share", f.own_share);
        ls_js_key_u64(g, "start_realtime_ns", ls_profile_u64(p, LS_INFO_START_REALTIME, 0));
        put_infos(p, g);
        put_losses(&f, p, g);
        put_notes(page->report, c, g);
        ls_js_close(g, '}');
}

/* [ns after the start, thread of the page or -1, name] of each. */
void ls_page_marks_json(const struct ls_page_tables *t, struct ls_js *g)
{
        const struct ls_profile *p = t->r->profile;
        uint32_t n = 0;

        ls_js_key_open(g, "marks", '[');
        for (uint32_t i = 0; i < p->n_marks && n < MOST_MARKS; i++) {
                const struct ls_mark *m = &p->marks[i];
                uint32_t thread =
                        t->c->threads->key->group(t->c->threads,
                                                  &(struct ls_cell){ .thread = m->thread });

                if (!is_shown(t->r->filter, m))
                        continue;
                n++;
                ls_js_open(g, '[');
                ls_js_u64(g, m->time_ns > t->c->start_ns ? m->time_ns - t->c->start_ns : 0);
                if (t->threads.of[thread] == UINT32_MAX)
                        ls_js_minus_one(g);
                else
                        ls_js_u64(g, t->threads.of[thread]);
                ls_js_text(g, m->name);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
}
