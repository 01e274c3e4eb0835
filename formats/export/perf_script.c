/* Exporter "perf-script": text as `perf script` prints it, for FlameGraph's stackcollapse-perf.pl,
 * speedscope, the Firefox Profiler and others that read perf. The period of an event is the CPU
 * time that it stands for, in ns.
 *
 * Readers that look at the times, as speedscope does, let an event last to the middle between it
 * and its neighbours. So an event of one tick has the middle of that tick as its time; a sample of
 * more ticks is two events, in the middle of its first tick and of its last; and where the thread
 * did not run there are two events without a stack and with period 0, half a tick after the last
 * one and before the next. */
#include "formats/escape.h"
#include "formats/export/timeline.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_COMM 64                 /* columns */

struct script {
        struct ls_timeline *t;
        FILE *out;
        char **head;                    /* [n_threads] "comm pid/tid", made when first needed */
        char **frame;                   /* [n_frames] "symbol (file)", likewise */
        uint64_t half_ns;               /* half a tick */
        uint64_t *to_ns;                /* [n_threads] end of the last sample */
};

/* Readers split at these: blanks, and in files parentheses too. To be freed. */
static char *without(const char *text, const char *bad)
{
        char *out = malloc(strlen(text) * 4 + 1), *p = out;

        for (; out && *text; text++) {
                if (strchr(bad, *text))
                        p += sprintf(p, "\\x%02x", (unsigned char)*text);
                else
                        *p++ = *text;
        }
        if (out)
                *p = '\0';
        return out;
}

static char *file_text(const struct script *x, uint32_t frame)
{
        struct ls_str file = ls_timeline_file(x->t, frame);
        char *visible, *text;

        if (!file.len)
                return strdup(ls_timeline_kind(x->t, frame)[0] == 'b' ? "[builtin]" : "[unknown]");
        visible = ls_visible(file.s, file.len);
        text = visible ? without(visible, " ()") : NULL;
        free(visible);
        return text;
}

/* Readers cut "+0x..." off the end of a symbol, and drop those that begin with a parenthesis. */
static char *symbol_text(const struct script *x, uint32_t frame)
{
        const char *name = x->t->in->frame_text(x->t->in->ctx, frame);
        const char *plus = strrchr(name, '+');
        int has_offset = plus && plus[1] == '0' && plus[2] == 'x';
        char *text;

        if (!name[strspn(name, " ")])
                name = "[no name]";
        return asprintf(&text, "%s%s%s", name[0] == '(' ? "\\x28" : "", name + (name[0] == '('),
                        has_offset ? "+0x0" : "") < 0 ? NULL : text;
}

static const char *frame_text(struct script *x, uint32_t frame)
{
        if (!x->frame[frame]) {
                char *symbol = symbol_text(x, frame), *file = file_text(x, frame);

                if (!symbol || !file || asprintf(&x->frame[frame], "%s (%s)", symbol, file) < 0)
                        x->frame[frame] = NULL;
                free(symbol);
                free(file);
        }
        return x->frame[frame];
}

/* The kernel's names have 15 bytes; readers take time that grows with the square of a name's
 * length. A name of one character has two blanks after it: readers want two characters before the
 * blank at which they split. */
static const char *head_text(struct script *x, uint32_t thread)
{
        if (!x->head[thread]) {
                char *name = ls_timeline_thread_name(x->t, thread), *comm;

                if (name)
                        name[ls_fit(name, LONGEST_COMM)] = '\0';
                comm = name ? without(name, " #") : NULL;
                if (!comm ||
                    asprintf(&x->head[thread], "%s%s %u/%u", comm, comm[0] && comm[1] ? "" : " ",
                             ls_timeline_pid(x->t, thread), x->t->p->threads[thread].tid) < 0)
                        x->head[thread] = NULL;
                free(name);
                free(comm);
        }
        return x->head[thread];
}

static int put_head(struct script *x, uint32_t thread, uint64_t ns, uint64_t period)
{
        const char *head = head_text(x, thread);

        if (!head)
                return -ENOMEM;
        fprintf(x->out, "%s %" PRIu64 ".%09" PRIu64 ": %" PRIu64 " %s-clock:\n", head,
                ns / 1000000000, ns % 1000000000, period, x->t->in->event);
        return 0;
}

static int put_idle(struct script *x, uint32_t thread, uint64_t ns)
{
        int r = put_head(x, thread, ns, 0);

        putc_unlocked('\n', x->out);
        return r;
}

/* Where code of a module is in memory; 0 for all else. */
static uint64_t address_of(const struct script *x, uint32_t frame)
{
        const struct ls_profile *p = x->t->p;
        const struct ls_function *f =
                &p->functions[p->locations[x->t->frames[frame].location].function];
        const struct ls_mapping *m = &p->mappings[f->mapping];

        return f->mapping && f->offset >= m->file_offset ? m->start + (f->offset - m->file_offset)
                                                         : 0;
}

static int put_stack(struct script *x, uint32_t node)
{
        const struct ls_calltree_node *nodes = x->t->tree->nodes;

        for (; node; node = nodes[node].parent) {
                const char *text = frame_text(x, nodes[node].label);

                if (!text)
                        return -ENOMEM;
                fprintf(x->out, "\t%16" PRIx64 " %s\n", address_of(x, nodes[node].label), text);
        }
        putc_unlocked('\n', x->out);
        return 0;
}

static int put_event(struct script *x, const struct ls_timeline_sample *s, uint64_t ns,
                     uint32_t ticks)
{
        int r = put_head(x, s->thread, ns, ls_timeline_ns(x->t, ticks));

        return r ? r : put_stack(x, s->node);
}

static int add_sample(void *ctx, const struct ls_timeline_sample *s)
{
        struct script *x = ctx;
        int r = 0;

        if (s->gap_ns)
                r = put_idle(x, s->thread, x->to_ns[s->thread] + x->half_ns);
        if (!r && (s->first || s->gap_ns))
                r = put_idle(x, s->thread, s->from_ns > x->half_ns ? s->from_ns - x->half_ns : 0);
        if (!r)
                r = put_event(x, s, s->from_ns + x->half_ns, 1);
        if (!r && s->ticks > 1)
                r = put_event(x, s, s->to_ns - x->half_ns, s->ticks - 1);
        x->to_ns[s->thread] = s->to_ns;
        return r ? r : ferror(x->out) ? -EIO : 0;
}

static void put_fact(struct script *x, const char *what, enum ls_info_key key)
{
        struct ls_str s = ls_profile_str(x->t->p, key);
        char *text = s.len ? ls_visible(s.s, s.len) : NULL;

        if (text)
                fprintf(x->out, "# %s : %s\n", what, text);
        free(text);
}

static int put_file(struct script *x)
{
        int r;

        fputs_unlocked("# ========\n", x->out);
        fprintf(x->out, "# created by : luasample %s\n", LS_VERSION);
        put_fact(x, "hostname", LS_INFO_HOST);
        put_fact(x, "os release", LS_INFO_KERNEL);
        put_fact(x, "cmdline", LS_INFO_COMMAND);
        fputs_unlocked("# ========\n#\n\n", x->out);
        r = ls_timeline_each(x->t, add_sample, x);
        for (uint32_t i = 0; !r && i < x->t->p->n_threads; i++)
                if (x->t->threads[i].rows)
                        r = put_idle(x, i, x->to_ns[i] + x->half_ns);
        return r;
}

static int perf_script_write(FILE *out, const struct ls_export *in)
{
        struct script x = { .out = out, .half_ns = in->interval_ns / 2 };
        size_t n = (size_t)in->profile->n_threads + 1;
        int r = ls_timeline_new(in, &x.t);

        if (!r) {
                x.head = calloc(n, sizeof(*x.head));
                x.to_ns = calloc(n, sizeof(*x.to_ns));
                x.frame = calloc((size_t)in->n_frames + 1, sizeof(*x.frame));
                r = x.head && x.to_ns && x.frame ? put_file(&x) : -ENOMEM;
        }
        for (size_t i = 0; x.head && i < n; i++)
                free(x.head[i]);
        for (uint32_t i = 0; x.frame && i < in->n_frames; i++)
                free(x.frame[i]);
        free(x.head);
        free(x.frame);
        free(x.to_ns);
        ls_timeline_free(x.t);
        return ferror(out) ? 0 : r;     /* the caller says what is wrong with out */
}

const struct ls_exporter ls_export_perf_script = {
        .name = "perf-script",
        .suffix = ".linux-perf.txt",
        .help = "text as perf script prints it, for all that reads perf",
        .flags = LS_EXPORT_ROWS | LS_EXPORT_TIMELINE,
        .write = perf_script_write,
};
