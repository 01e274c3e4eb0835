/* From the reader's tables to the profile: strings for string ids, and every reference valid. What
 * lost its definition is named so, and never takes the name of something else. */
#include "formats/trace/reader_parts.h"

#include <errno.h>

#define COL(KIND, NAME) row[LS_C_##KIND##_##NAME]

static struct ls_str lost_str(void)
{
        return (struct ls_str){ LS_LOST_NAME, sizeof(LS_LOST_NAME) - 1 };
}

struct ls_str ls_reader_str(const struct ls_reader *r, uint64_t string)
{
        const struct ls_dict *d = &r->dict[LS_REC_STRING];
        const uint64_t *row;

        if (string == 0)
                return (struct ls_str){ "", 0 };
        if (!ls_dict_has(d, string))
                return lost_str();
        row = ls_dict_row(d, (uint32_t)string);
        return (struct ls_str){ (const char *)(uintptr_t)row[1], (uint32_t)row[0] };
}

static uint32_t u32(uint64_t v)
{
        return v > UINT32_MAX ? 0 : (uint32_t)v;
}

/* A reference to a row of kind: as it is when the table has a place for it, else lost. */
static uint32_t ref(const struct ls_reader *r, unsigned kind, uint64_t id, uint32_t lost)
{
        return id <= r->dict[kind].n ? (uint32_t)id : lost;
}

/* The row of an id, or NULL when it is not defined. */
static const uint64_t *row_of(const struct ls_reader *r, unsigned kind, uint32_t id)
{
        return ls_dict_has(&r->dict[kind], id) ? ls_dict_row(&r->dict[kind], id) : NULL;
}

/* A table with entry 0, one entry for each id, and extra ones. */
static int table(struct ls_reader *r, unsigned kind, unsigned extra, size_t size, void *ret_table,
                 uint32_t *ret_n)
{
        uint32_t n = r->dict[kind].n + 1 + extra;
        void *t = calloc(n, size);

        if (!t)
                return -ENOMEM;
        memcpy(ret_table, &t, sizeof(t));
        *ret_n = n;
        return 0;
}
#define TABLE(KIND, name, extra)                                                                   \
        table(r, LS_REC_##KIND, extra, sizeof(*p->name), &p->name, &p->n_##name)

static int resolve_sources(struct ls_reader *r, struct ls_profile *p)
{
        if (TABLE(SOURCE, sources, 1))
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_sources; i++) {
                const uint64_t *row = row_of(r, LS_REC_SOURCE, i);
                struct ls_source *s = &p->sources[i];

                s->name = i ? lost_str() : ls_reader_str(r, 0);
                s->path = s->text = ls_reader_str(r, 0);
                if (!row)
                        continue;
                s->name = ls_reader_str(r, COL(SOURCE, NAME));
                s->path = ls_reader_str(r, COL(SOURCE, PATH));
                s->size = COL(SOURCE, SIZE);
                s->text_hash = COL(SOURCE, TEXT_HASH);
        }
        return 0;
}

static int by_place(const void *a, const void *b)
{
        const struct ls_text_piece *x = a, *y = b;

        if (x->source != y->source)
                return x->source < y->source ? -1 : 1;
        return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Joins the pieces [t, end) of one source. A text with a hole is left out: its line numbers would
 * be wrong. */
static int join_text(struct ls_reader *r, const struct ls_text_piece *t,
                     const struct ls_text_piece *end, struct ls_str *ret_text)
{
        uint32_t total = t->total, at = 0;
        char *s;

        for (const struct ls_text_piece *q = t; q < end; q++) {
                if (q->total != total || q->offset > at)
                        return 0;
                if (q->offset == at)
                        at += q->len;
        }
        if (at != total || total == 0)
                return 0;
        s = ls_block_alloc(r, (size_t)total + 1);
        if (!s)
                return -ENOMEM;
        for (at = 0; t < end; t++) {
                if (t->offset != at || !t->len)
                        continue;
                memcpy(s + at, t->bytes, t->len);
                at += t->len;
        }
        s[total] = '\0';
        *ret_text = (struct ls_str){ s, total };
        return 0;
}

static int resolve_texts(struct ls_reader *r, struct ls_profile *p)
{
        int e = 0;

        if (r->n_texts)
                qsort(r->texts, r->n_texts, sizeof(*r->texts), by_place);
        for (uint32_t i = 0, j; i < r->n_texts && !e; i = j) {
                uint32_t source = r->texts[i].source;

                for (j = i + 1; j < r->n_texts && r->texts[j].source == source; j++)
                        ;
                if (ls_dict_has(&r->dict[LS_REC_SOURCE], source))
                        e = join_text(r, r->texts + i, r->texts + j, &p->sources[source].text);
        }
        return e;
}

static void resolve_function(struct ls_reader *r, struct ls_profile *p, struct ls_function *f,
                             const uint64_t *row)
{
        f->kind = (uint8_t)COL(FUNCTION, KIND);
        f->flags = (uint8_t)COL(FUNCTION, FLAGS);
        f->source = ref(r, LS_REC_SOURCE, COL(FUNCTION, SOURCE), p->n_sources - 1);
        f->mapping = ref(r, LS_REC_MAPPING, COL(FUNCTION, MAPPING), 0);
        f->first_line = u32(COL(FUNCTION, FIRST_LINE));
        f->last_line = u32(COL(FUNCTION, LAST_LINE));
        f->hash = COL(FUNCTION, HASH);
        f->offset = COL(FUNCTION, OFFSET);
        f->name = ls_reader_str(r, COL(FUNCTION, NAME));
        f->name_rank = COL(FUNCTION, NAME) ? LS_NAME_GLOBAL : LS_NAME_NONE;
}

static int resolve_functions(struct ls_reader *r, struct ls_profile *p)
{
        const struct ls_dict *names = &r->dict[LS_REC_NAME];

        if (TABLE(FUNCTION, functions, 1))
                return -ENOMEM;
        r->lost_function = p->n_functions - 1;
        p->functions[0].name = ls_reader_str(r, 0);
        for (uint32_t i = 1; i < p->n_functions; i++) {
                const uint64_t *row = row_of(r, LS_REC_FUNCTION, i);

                if (row)
                        resolve_function(r, p, &p->functions[i], row);
                else
                        p->functions[i] = (struct ls_function){ .kind = LS_FUNC_PSEUDO,
                                                                .name = lost_str(),
                                                                .name_rank = LS_NAME_GLOBAL };
        }
        for (uint32_t i = 1; i <= names->n; i++) {
                const uint64_t *row = ls_dict_row(names, i);
                struct ls_function *f;

                if (!ls_dict_has(&r->dict[LS_REC_FUNCTION], COL(NAME, FUNCTION)))
                        continue;
                f = &p->functions[COL(NAME, FUNCTION)];
                if (COL(NAME, RANK) <= LS_NAME_GLOBAL && COL(NAME, RANK) > f->name_rank) {
                        f->name = ls_reader_str(r, COL(NAME, NAME));
                        f->name_rank = (uint8_t)COL(NAME, RANK);
                }
        }
        return 0;
}

/* Locations and stacks that are not defined are one pseudo frame, so that a stack on top of one
 * still has its own frames right. */
static int resolve_stacks(struct ls_reader *r, struct ls_profile *p)
{
        if (TABLE(LOCATION, locations, 1) || TABLE(STACK, stacks, 1))
                return -ENOMEM;
        r->lost_location = p->n_locations - 1;
        p->lost_stack = p->n_stacks - 1;
        for (uint32_t i = 1; i < p->n_locations; i++) {
                const uint64_t *row = row_of(r, LS_REC_LOCATION, i);
                struct ls_location *l = &p->locations[i];

                l->function = r->lost_function;
                if (!row)
                        continue;
                l->function = ref(r, LS_REC_FUNCTION, COL(LOCATION, FUNCTION), r->lost_function);
                l->line = u32(COL(LOCATION, LINE));
        }
        for (uint32_t i = 1; i < p->n_stacks; i++) {
                const uint64_t *row = row_of(r, LS_REC_STACK, i);
                struct ls_stack *s = &p->stacks[i];

                if (row && COL(STACK, PARENT) < i) {
                        s->parent = (uint32_t)COL(STACK, PARENT);
                        s->location =
                                ref(r, LS_REC_LOCATION, COL(STACK, LOCATION), r->lost_location);
                        s->depth = p->stacks[s->parent].depth + 1;
                        continue;
                }
                s->location = r->lost_location;
                s->depth = 1;
                if (i == p->lost_stack)
                        break;
                r->holes = 1;
                r->dict[LS_REC_STACK].state[i - 1] &= (uint8_t)~LS_ROW_SEEN;
        }
        return 0;
}

static int resolve_zones(struct ls_reader *r, struct ls_profile *p)
{
        if (TABLE(ZONE, zones, 1))
                return -ENOMEM;
        r->lost[LS_REC_ZONE] = p->n_zones - 1;
        p->zones[0].name = ls_reader_str(r, 0);
        for (uint32_t i = 1; i < p->n_zones; i++) {
                const uint64_t *row = row_of(r, LS_REC_ZONE, i);

                p->zones[i].name = lost_str();
                if (!row || COL(ZONE, PARENT) >= i)
                        continue;
                p->zones[i].name = ls_reader_str(r, COL(ZONE, NAME));
                p->zones[i].parent = (uint32_t)COL(ZONE, PARENT);
        }
        return 0;
}

static int resolve_sample_labels(struct ls_reader *r, struct ls_profile *p)
{
        if (TABLE(LABEL, sample_labels, 1))
                return -ENOMEM;
        r->lost[LS_REC_LABEL] = p->n_sample_labels - 1;
        p->sample_labels[0].key = p->sample_labels[0].value = ls_reader_str(r, 0);
        for (uint32_t i = 1; i < p->n_sample_labels; i++) {
                const uint64_t *row = row_of(r, LS_REC_LABEL, i);

                p->sample_labels[i] =
                        (struct ls_sample_label){ 0, ls_reader_str(r, 0), lost_str() };
                if (row && COL(LABEL, PARENT) < i)
                        p->sample_labels[i] = (struct ls_sample_label){
                                (uint32_t)COL(LABEL, PARENT), ls_reader_str(r, COL(LABEL, KEY)),
                                ls_reader_str(r, COL(LABEL, VALUE)) };
        }
        return 0;
}

static void resolve_process_totals(struct ls_reader *r, struct ls_profile *p)
{
        const struct ls_dict *d = &r->dict[LS_REC_PROCTOTALS];

        for (uint32_t i = 1; i <= d->n; i++) {
                const uint64_t *row = ls_dict_row(d, i);

                if (!ls_dict_has(&r->dict[LS_REC_PROCESS], COL(PROCTOTALS, PROCESS)))
                        continue;
                p->processes[COL(PROCTOTALS, PROCESS)].totals = (struct ls_process_totals){
                        .ticks = COL(PROCTOTALS, TICKS),
                        .samples = COL(PROCTOTALS, SAMPLES),
                        .lost_ticks = COL(PROCTOTALS, LOST),
                        .cpu_ns = COL(PROCTOTALS, CPU),
                        .own_ns = COL(PROCTOTALS, OWN),
                        .from_ns = COL(PROCTOTALS, FROM),
                        .to_ns = COL(PROCTOTALS, TO),
                };
        }
}

static int resolve_processes(struct ls_reader *r, struct ls_profile *p)
{
        const struct ls_dict *cpu = &r->dict[LS_REC_THREADCPU];

        if (TABLE(PROCESS, processes, 0) || TABLE(THREAD, threads, 0) || TABLE(VM, vms, 0))
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_processes; i++) {
                const uint64_t *row = row_of(r, LS_REC_PROCESS, i);

                p->processes[i].name = i && !row ? lost_str()
                                                 : ls_reader_str(r, row ? COL(PROCESS, NAME) : 0);
                p->processes[i].pid = row ? u32(COL(PROCESS, PID)) : 0;
        }
        resolve_process_totals(r, p);
        for (uint32_t i = 0; i < p->n_threads; i++) {
                const uint64_t *row = row_of(r, LS_REC_THREAD, i);

                p->threads[i].name = i && !row ? lost_str()
                                               : ls_reader_str(r, row ? COL(THREAD, NAME) : 0);
                p->threads[i].process = row ? ref(r, LS_REC_PROCESS, COL(THREAD, PROCESS), 0) : 0;
                p->threads[i].tid = row ? u32(COL(THREAD, TID)) : 0;
        }
        for (uint32_t i = 1; i <= cpu->n; i++) {
                const uint64_t *row = ls_dict_row(cpu, i);

                if (ls_dict_has(&r->dict[LS_REC_THREAD], COL(THREADCPU, THREAD)))
                        p->threads[COL(THREADCPU, THREAD)].cpu_ns = COL(THREADCPU, CPU);
        }
        for (uint32_t i = 0; i < p->n_vms; i++) {
                const uint64_t *row = row_of(r, LS_REC_VM, i);

                p->vms[i].runtime = i && !row ? lost_str()
                                              : ls_reader_str(r, row ? COL(VM, RUNTIME) : 0);
                p->vms[i].process = row ? ref(r, LS_REC_PROCESS, COL(VM, PROCESS), 0) : 0;
                p->vms[i].number = row ? u32(COL(VM, NUMBER)) : 0;
        }
        return 0;
}

static int resolve_others(struct ls_reader *r, struct ls_profile *p)
{
        if (TABLE(COROUTINE, coroutines, 0) || TABLE(MAPPING, mappings, 0))
                return -ENOMEM;
        for (uint32_t i = 1; i < p->n_coroutines; i++) {
                const uint64_t *row = row_of(r, LS_REC_COROUTINE, i);
                struct ls_coroutine *c = &p->coroutines[i];

                c->function = r->lost_function;
                if (!row)
                        continue;
                c->vm = ref(r, LS_REC_VM, COL(COROUTINE, VM), 0);
                c->function = ref(r, LS_REC_FUNCTION, COL(COROUTINE, FUNCTION), r->lost_function);
                c->generation = u32(COL(COROUTINE, GENERATION));
        }
        for (uint32_t i = 0; i < p->n_mappings; i++) {
                const uint64_t *row = row_of(r, LS_REC_MAPPING, i);
                struct ls_mapping *m = &p->mappings[i];

                m->path = i ? lost_str() : ls_reader_str(r, 0);
                m->build_id = ls_reader_str(r, 0);
                if (!row)
                        continue;
                m->path = ls_reader_str(r, COL(MAPPING, PATH));
                m->start = COL(MAPPING, START);
                m->end = COL(MAPPING, END);
                m->file_offset = COL(MAPPING, FILE_OFFSET);
                m->build_id = ls_reader_str(r, COL(MAPPING, BUILD_ID));
        }
        return 0;
}

/* Lists without entry 0, of the rows that are there. */
static int resolve_lists(struct ls_reader *r, struct ls_profile *p)
{
        const struct ls_dict *clocks = &r->dict[LS_REC_CLOCKS], *regions = &r->dict[LS_REC_REGION];
        const struct ls_dict *notices = &r->dict[LS_REC_NOTICE], *infos = &r->dict[LS_REC_INFO];
        const struct ls_dict *spans = &r->dict[LS_REC_SPAN];

        p->clocks = calloc(clocks->n + 1, sizeof(*p->clocks));
        p->regions = calloc(regions->n + 1, sizeof(*p->regions));
        p->notices = calloc(notices->n + 1, sizeof(*p->notices));
        p->infos = calloc(infos->n + 1, sizeof(*p->infos));
        p->marks = calloc(spans->n + 1, sizeof(*p->marks));
        if (!p->clocks || !p->regions || !p->marks || !p->notices || !p->infos)
                return -ENOMEM;
        for (uint32_t i = 1; i <= clocks->n; i++) {
                const uint64_t *row = row_of(r, LS_REC_CLOCKS, i);

                if (row)
                        p->clocks[p->n_clocks++] = (struct ls_clocks){ COL(CLOCKS, MONOTONIC),
                                                                       COL(CLOCKS, REALTIME),
                                                                       COL(CLOCKS, BOOTTIME) };
        }
        for (uint32_t i = 1; i <= regions->n; i++) {
                const uint64_t *row = row_of(r, LS_REC_REGION, i);

                if (row)
                        p->regions[p->n_regions++] =
                                (struct ls_region){ COL(REGION, TIME), COL(REGION, CPU),
                                                    ref(r, LS_REC_THREAD, COL(REGION, THREAD), 0),
                                                    COL(REGION, BEGIN) != 0,
                                                    ls_reader_str(r, COL(REGION, NAME)) };
        }
        for (uint32_t i = 1; i <= spans->n; i++) {
                const uint64_t *row = row_of(r, LS_REC_SPAN, i);

                if (row && COL(SPAN, EVENT) == LS_EVENT_MARK && COL(SPAN, PHASE) == LS_SPAN_INSTANT)
                        p->marks[p->n_marks++] = (struct ls_mark){
                                COL(SPAN, TIME), ref(r, LS_REC_THREAD, COL(SPAN, THREAD), 0),
                                ls_reader_str(r, COL(SPAN, NAME)) };
        }
        for (uint32_t i = 1; i <= notices->n; i++) {
                const uint64_t *row = row_of(r, LS_REC_NOTICE, i);

                if (row)
                        p->notices[p->n_notices++] = ls_reader_str(r, COL(NOTICE, STR));
        }
        for (uint32_t i = 1; i <= infos->n; i++) {
                const uint64_t *row = row_of(r, LS_REC_INFO, i);

                p->infos[p->n_infos++] = (struct ls_info){
                        ls_reader_str(r, COL(INFO, KEY)), !COL(INFO, IS_STR), COL(INFO, NUMBER),
                        ls_reader_str(r, COL(INFO, IS_STR) ? COL(INFO, STR) : 0) };
        }
        return 0;
}

/* The index says how many ticks were in the chunks that are lost: each goes to the damage that has
 * its number, or that swallowed it. Chunks, damages and index are all in order of number. */
static void resolve_damages(struct ls_reader *r, struct ls_profile *p)
{
        const struct ls_dict *index = &r->dict[LS_REC_INDEX];
        uint32_t chunk = 0, damage = 0;

        for (uint32_t i = 1; i <= index->n && p->n_damages; i++) {
                const uint64_t *row = ls_dict_row(index, i);

                while (chunk < r->n_chunks && r->chunks[chunk].number < COL(INDEX, NUMBER))
                        chunk++;
                if (chunk < r->n_chunks && r->chunks[chunk].number == COL(INDEX, NUMBER))
                        continue;
                while (damage + 1 < p->n_damages &&
                       p->damages[damage + 1].chunk <= COL(INDEX, NUMBER))
                        damage++;
                p->damages[damage].ticks += COL(INDEX, TICKS);
        }
}

int ls_resolve_totals(struct ls_reader *r)
{
        struct ls_profile *p = r->p;
        const struct ls_dict *d = &r->dict[LS_REC_EVENT];
        const uint64_t *rows[256] = { NULL };
        enum ls_event_kind first;

        if (!p->events)
                p->events = calloc(256, sizeof(*p->events));
        if (!p->events)
                return -ENOMEM;
        for (uint32_t i = 1; i <= d->n; i++)
                if (ls_dict_row(d, i)[LS_C_EVENT_EVENT] < 256)
                        rows[ls_dict_row(d, i)[LS_C_EVENT_EVENT]] = ls_dict_row(d, i);
        p->n_events = 0;
        for (uint32_t number = 0; number < 256; number++) {
                const uint64_t *row = rows[number];
                struct ls_event e = { .id = number,
                                      .rows = r->sums[number].rows + r->exact[number].rows,
                                      .sum = r->sums[number].sum + r->exact[number].sum };

                e.name = ls_reader_str(r, row ? COL(EVENT, NAME) : 0);
                e.unit = ls_reader_str(r, row ? COL(EVENT, UNIT) : 0);
                e.sampled = row && COL(EVENT, SAMPLED);
                e.period_ns = row ? COL(EVENT, PERIOD) : 0;
                if (row || e.rows)
                        p->events[p->n_events++] = e;
        }
        /* A trace of wall time alone has the time on a CPU in it. */
        first = rows[LS_EVENT_WALL] && !rows[LS_EVENT_CPU] ? LS_EVENT_WALL : LS_EVENT_CPU;
        p->recorded_ticks = r->sums[first].sum;
        p->recorded_samples = r->sums[first].samples;
        return 0;
}

int ls_resolve(struct ls_reader *r)
{
        struct ls_profile *p = r->p;

        if (resolve_sources(r, p) || resolve_texts(r, p) || resolve_functions(r, p) ||
            resolve_stacks(r, p) || resolve_zones(r, p) || resolve_sample_labels(r, p) ||
            resolve_processes(r, p) || resolve_others(r, p) || resolve_lists(r, p) ||
            ls_resolve_counters(r) || ls_resolve_attempts(r) || ls_resolve_no_line(r) ||
            ls_resolve_jit(r) || ls_resolve_totals(r))
                return -ENOMEM;
        resolve_damages(r, p);
        p->interval_ns = r->interval_ns ? r->interval_ns : ls_profile_u64(p, LS_INFO_INTERVAL, 0);
        p->n_chunks = r->n_chunks;
        return 0;
}
