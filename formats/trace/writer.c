/* What callers add to a trace: interning of definitions, columns of samples. The file is flush.c's
 * part. */
#include "formats/trace/writer.h"

#include "formats/trace/writer_parts.h"
#include "formats/wire/ring.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/wire/events.h"

#define ROW(...) ((const uint64_t[LS_COLUMNS_MAX]){ __VA_ARGS__ })

static void fail(struct ls_trace_writer *w, int error)
{
        if (!w->error)
                w->error = error;
}

static void writer_free(struct ls_trace_writer *w)
{
        if (!w)
                return;
        ls_dict_done(&w->strings.dict);
        free(w->strings.bytes);
        for (unsigned k = 0; k < LS_KINDS; k++)
                ls_dict_done(&w->dict[k]);
        for (unsigned c = 0; c < LS_COLUMNS_MAX; c++)
                free(w->columns[c]);
        ls_buf_free(&w->texts);
        ls_buf_free(&w->text_rows);
        ls_buf_free(&w->maps);
        ls_buf_free(&w->kept_texts.rows);
        ls_buf_free(&w->kept_texts.bytes);
        ls_buf_free(&w->kept_maps.rows);
        ls_buf_free(&w->kept_maps.bytes);
        ls_buf_free(&w->map_rows);
        ls_buf_free(&w->index);
        ls_buf_free(&w->body);
        ls_buf_free(&w->raw);
        ls_buf_free(&w->extra);
        ls_buf_free(&w->out);
        ls_buf_free(&w->trial);
        ls_buf_free(&w->packed);
        free(w->scratch);
        ZSTD_freeCCtx(w->zstd);
        free(w);
}

static int writer_alloc(struct ls_trace_writer *w)
{
        w->zstd = ZSTD_createCCtx();
        w->scratch = malloc(LS_FLUSH_ROWS * sizeof(*w->scratch));
        if (!w->zstd || !w->scratch)
                return -ENOMEM;
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LS_ZSTD_SAMPLES);
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_contentSizeFlag, 0);
        for (unsigned c = 0; c < LS_COLUMNS_MAX; c++) {
                if (!(LS_ROW_COLUMNS >> c & 1))
                        continue;
                w->columns[c] = malloc(LS_FLUSH_ROWS * sizeof(uint64_t));
                if (!w->columns[c])
                        return -ENOMEM;
        }
        ls_dict_init(&w->strings.dict, LS_REC_STRING);
        for (unsigned k = 0; k < LS_KINDS; k++)
                ls_dict_init(&w->dict[k], k);
        return 0;
}

int ls_writer_header(struct ls_trace_writer *w)
{
        struct ls_file_header h = { .major = LS_TRACE_MAJOR,
                                    .minor = LS_TRACE_MINOR,
                                    .interval_ns = w->interval_ns };

        memcpy(h.magic, LS_FILE_MAGIC, sizeof(h.magic));
        h.check = ls_hash(&h, offsetof(struct ls_file_header, check));
        return ls_writer_write(w, &h, sizeof(h));
}

int ls_trace_writer_open(int fd, uint64_t interval_ns, struct ls_trace_writer **ret_writer)
{
        struct ls_trace_writer *w = calloc(1, sizeof(*w));
        struct stat st;
        int r;

        if (!w)
                return -ENOMEM;
        w->fd = fd;
        w->interval_ns = interval_ns ? interval_ns : 1;
        w->seekable = !fstat(fd, &st) && S_ISREG(st.st_mode);
        r = writer_alloc(w);
        if (!r)
                r = ls_writer_header(w);
        if (r) {
                writer_free(w);
                return r;
        }
        ls_trace_info_u64(w, ls_info_key(LS_INFO_INTERVAL), w->interval_ns);
        *ret_writer = w;
        return 0;
}

void ls_trace_writer_brief(struct ls_trace_writer *w)
{
        w->brief = 1;
}

/* Definitions that wait are written before they outgrow a chunk. */
static void pending(struct ls_trace_writer *w, size_t bytes)
{
        w->pending_bytes += bytes;
        if (w->pending_bytes >= LS_FLUSH_BYTES) {
                int r = ls_writer_flush(w);

                if (r)
                        fail(w, r);
        }
}

static uint32_t intern(struct ls_trace_writer *w, unsigned kind, const uint64_t *row)
{
        int is_new;
        uint32_t id = ls_dict_intern(&w->dict[kind], row, &is_new);

        if (!id)
                fail(w, -ENOMEM);
        else if (is_new)
                pending(w, 4 + w->dict[kind].ncol);
        return id;
}

/* Keyed kinds: a row replaces the one with its key. */
static void update(struct ls_trace_writer *w, unsigned kind, const uint64_t *row)
{
        struct ls_dict *d = &w->dict[kind];
        size_t size = d->ncol * sizeof(*row);
        int is_new;
        uint32_t id = ls_dict_intern(d, row, &is_new);

        if (!id) {
                fail(w, -ENOMEM);
                return;
        }
        if (!is_new && !memcmp(ls_dict_row(d, id), row, size))
                return;
        memcpy(ls_dict_row(d, id), row, size);
        d->state[id - 1] |= LS_ROW_DIRTY | LS_ROW_NEW;
        pending(w, 4);
}

void ls_trace_keyed(struct ls_trace_writer *w, unsigned kind, const uint64_t *row)
{
        update(w, kind, row);
}

uint32_t ls_trace_row(struct ls_trace_writer *w, unsigned kind, const uint64_t *row)
{
        uint32_t id = ls_dict_append(&w->dict[kind], row);

        if (!id)
                fail(w, -ENOMEM);
        pending(w, 4 + w->dict[kind].ncol);
        return id;
}

uint32_t ls_trace_string(struct ls_trace_writer *w, const char *bytes, size_t len)
{
        uint32_t n = w->strings.dict.n, id;

        if (len > LS_MAX_STRING)
                len = LS_MAX_STRING;
        id = ls_strings_intern(&w->strings, bytes, len);
        if (!id)
                fail(w, -ENOMEM);
        else if (id > n)
                pending(w, len + 2);
        return id;
}

static uint32_t zstring(struct ls_trace_writer *w, const char *s)
{
        return s ? ls_trace_string(w, s, strlen(s)) : 0;
}

uint32_t ls_trace_source(struct ls_trace_writer *w, const struct ls_source_def *def)
{
        return intern(w, LS_REC_SOURCE, ROW(def->name, def->path, def->size, def->text_hash));
}

void ls_trace_text(struct ls_trace_writer *w, uint32_t source, const char *text, size_t len)
{
        if (len > LS_MAX_TEXT)
                len = LS_MAX_TEXT;
        for (size_t at = 0; at < len || at == 0; ) {
                size_t n = len - at < LS_FLUSH_BYTES / 2 ? len - at : LS_FLUSH_BYTES / 2;
                struct ls_text_row row = { source, (uint32_t)at, (uint32_t)len, (uint32_t)n };

                ls_buf_add(&w->text_rows, &row, sizeof(row));
                ls_buf_add(&w->texts, text + at, n);
                ls_writer_keep(w, &w->kept_texts, &row, sizeof(row), text + at, n);
                pending(w, n + 8);
                at += n;
                if (at >= len)
                        break;
        }
}

uint32_t ls_trace_function(struct ls_trace_writer *w, const struct ls_function_def *def)
{
        return intern(w, LS_REC_FUNCTION,
                      ROW(def->kind, def->flags, def->source, def->first_line, def->last_line,
                          def->hash, def->mapping, def->offset, def->identity_name));
}

void ls_trace_name(struct ls_trace_writer *w, uint32_t function, enum ls_name_rank rank,
                   uint32_t name)
{
        struct ls_dict *d = &w->dict[LS_REC_NAME];
        const uint64_t *row = ROW(function, rank, name);
        int is_new;
        uint32_t id;

        if (!function || !name || rank == LS_NAME_NONE)
                return;
        id = ls_dict_intern(d, row, &is_new);
        if (!id) {
                fail(w, -ENOMEM);
        } else if (is_new) {
                d->state[id - 1] |= LS_ROW_DIRTY | LS_ROW_NEW;
                pending(w, 4);
        } else if (rank > ls_dict_row(d, id)[LS_C_NAME_RANK]) {
                update(w, LS_REC_NAME, row);
        }
}

uint32_t ls_trace_location(struct ls_trace_writer *w, uint32_t function, uint32_t line)
{
        return intern(w, LS_REC_LOCATION, ROW(function, line));
}

uint32_t ls_trace_stack(struct ls_trace_writer *w, uint32_t parent, uint32_t location)
{
        return intern(w, LS_REC_STACK, ROW(parent, location));
}

uint32_t ls_trace_stack_no_line(struct ls_trace_writer *w, uint32_t stack)
{
        uint32_t parent, location, function;
        const uint64_t *row;

        if (!stack)
                return 0;
        row = ls_dict_row(&w->dict[LS_REC_STACK], stack);
        parent = (uint32_t)row[LS_C_STACK_PARENT];
        location = (uint32_t)row[LS_C_STACK_LOCATION];
        row = location ? ls_dict_row(&w->dict[LS_REC_LOCATION], location) : NULL;
        function = row ? (uint32_t)row[LS_C_LOCATION_FUNCTION] : 0;
        row = function ? ls_dict_row(&w->dict[LS_REC_FUNCTION], function) : NULL;
        if (!row || row[LS_C_FUNCTION_KIND] != LS_FUNC_LUA)
                return stack;
        return ls_trace_stack(w, parent, ls_trace_location(w, function, 0));
}

uint32_t ls_trace_zone(struct ls_trace_writer *w, uint32_t parent, uint32_t name)
{
        return intern(w, LS_REC_ZONE, ROW(parent, name));
}

uint32_t ls_trace_label(struct ls_trace_writer *w, uint32_t parent, uint32_t key, uint32_t value)
{
        return intern(w, LS_REC_LABEL, ROW(parent, key, value));
}

uint32_t ls_trace_labels(const struct ls_trace_writer *w)
{
        return w->dict[LS_REC_LABEL].n;
}

uint32_t ls_trace_process(struct ls_trace_writer *w, uint32_t pid, uint32_t name)
{
        return intern(w, LS_REC_PROCESS, ROW(pid, name));
}

uint32_t ls_trace_thread(struct ls_trace_writer *w, uint32_t process, uint32_t tid, uint32_t name)
{
        return intern(w, LS_REC_THREAD, ROW(process, tid, name));
}

uint32_t ls_trace_vm(struct ls_trace_writer *w, uint32_t process, uint32_t number, uint32_t runtime)
{
        return intern(w, LS_REC_VM, ROW(process, number, runtime));
}

uint32_t ls_trace_coroutine(struct ls_trace_writer *w, uint32_t vm, uint32_t function,
                            uint32_t generation)
{
        return intern(w, LS_REC_COROUTINE, ROW(vm, function, generation));
}

uint32_t ls_trace_mapping(struct ls_trace_writer *w, uint32_t path, uint64_t start, uint64_t end,
                          uint64_t file_offset, const uint8_t *build_id, size_t build_id_len)
{
        uint32_t id = build_id_len ? ls_trace_string(w, (const char *)build_id, build_id_len) : 0;

        return intern(w, LS_REC_MAPPING, ROW(path, start, end, file_offset, id));
}

static uint32_t link_kind_name(struct ls_trace_writer *w, uint32_t kind)
{
        /* In LuaJIT's order, which has not changed in version 2.1. */
        static const char *const names[] = { "none",           "root",         "loop",
                                             "tail-recursion", "up-recursion", "down-recursion",
                                             "interpreter",    "return",       "stitch" };

        return kind < sizeof(names) / sizeof(*names) ? zstring(w, names[kind]) : 0;
}

void ls_trace_jittrace(struct ls_trace_writer *w, const struct ls_rec_jittrace *rec, uint32_t size,
                       uint32_t start)
{
        uint32_t location = start ? ls_trace_location(w, start, rec->start_line) : 0;
        uint64_t row[LS_COLUMNS_MAX] = {
                [LS_C_JITTRACE_VM] = rec->vm_id,
                [LS_C_JITTRACE_NUMBER] = rec->number,
                [LS_C_JITTRACE_ROOT] = rec->root,
                [LS_C_JITTRACE_PARENT] = rec->parent_id,
                [LS_C_JITTRACE_EXIT] = rec->parent_exit,
                [LS_C_JITTRACE_START] = location,
                [LS_C_JITTRACE_LINK_KIND] = link_kind_name(w, rec->link_kind),
                [LS_C_JITTRACE_LINK] = rec->link,
                [LS_C_JITTRACE_ADDRESS] = rec->mcode,
                [LS_C_JITTRACE_SIZE] = rec->mcode_size,
                [LS_C_JITTRACE_FUNCTION] = rec->jit_id,
        };

        ls_trace_row(w, LS_REC_JITTRACE, row);
        ls_trace_jitmap(w, rec, size);
}

void ls_trace_jitmap(struct ls_trace_writer *w, const struct ls_rec_jittrace *rec, uint32_t size)
{
        struct ls_map_row map = { rec->jit_id, size };

        ls_buf_add(&w->map_rows, &map, sizeof(map));
        ls_buf_add(&w->maps, rec, size);
        ls_writer_keep(w, &w->kept_maps, &map, sizeof(map), rec, size);
        pending(w, size + 4);
}

void ls_trace_irnames(struct ls_trace_writer *w, uint32_t vm, uint32_t names)
{
        update(w, LS_REC_IRNAMES, ROW(vm, names));
}

void ls_trace_event(struct ls_trace_writer *w, enum ls_event_kind kind, uint64_t period_ns)
{
        const struct ls_event_kind_info *k = ls_event_kind(kind);

        if (k)
                update(w, LS_REC_EVENT,
                       ROW(kind, zstring(w, k->name), zstring(w, k->unit_name),
                           (uint64_t)k->sampled, period_ns, zstring(w, k->clock)));
}

void ls_trace_sample(struct ls_trace_writer *w, const struct ls_sample_row *row)
{
        struct ls_event_total *total = &w->totals[row->event];
        uint64_t rest = row->weight;
        uint8_t flags = row->flags;

        /* A row's weight has 32 bits for the reader; what is more goes on in a row that continues
         * the sample. */
        do {
                uint64_t weight = rest < UINT32_MAX ? rest : UINT32_MAX;

                if (w->nrows == LS_FLUSH_ROWS || (!total->rows && w->nevents == LS_CHUNK_EVENTS)) {
                        int r = ls_writer_flush(w);

                        if (r)
                                fail(w, r);
                }
                w->columns[LS_C_SAMPLE_EVENT][w->nrows] = row->event;
                w->columns[LS_C_SAMPLE_STACK][w->nrows] = row->stack;
                w->columns[LS_C_SAMPLE_FLAGS][w->nrows] = flags;
                w->columns[LS_C_SAMPLE_TIME][w->nrows] = row->time_ns;
                w->columns[LS_C_SAMPLE_WEIGHT][w->nrows] = weight;
#define LS_DIM(NAME, name, bits, KIND, key) w->columns[LS_C_SAMPLE_##NAME][w->nrows] = row->name;
#include "formats/dims.def"
#undef LS_DIM
                w->nrows++;
                w->nevents += !total->rows;
                total->rows++;
                total->samples += !(flags & LS_SAMPLE_CONT);
                total->sum += weight;
                rest -= weight;
                flags |= LS_SAMPLE_CONT;
        } while (rest);
}

void ls_trace_clocks(struct ls_trace_writer *w, uint64_t monotonic_ns, uint64_t realtime_ns,
                     uint64_t boottime_ns)
{
        ls_trace_row(w, LS_REC_CLOCKS, ROW(monotonic_ns, realtime_ns, boottime_ns));
}

void ls_trace_threadcpu(struct ls_trace_writer *w, uint32_t thread, uint64_t monotonic_ns,
                        uint64_t cpu_ns)
{
        update(w, LS_REC_THREADCPU, ROW(thread, monotonic_ns, cpu_ns));
}

void ls_trace_process_totals(struct ls_trace_writer *w, uint32_t process,
                             const struct ls_process_totals *t)
{
        update(w, LS_REC_PROCTOTALS,
               ROW(process, t->ticks, t->samples, t->lost_ticks, t->cpu_ns, t->own_ns, t->from_ns,
                   t->to_ns));
}

void ls_trace_region(struct ls_trace_writer *w, int begin, uint32_t thread, uint64_t time_ns,
                     uint64_t cpu_ns, uint32_t name)
{
        ls_trace_row(w, LS_REC_REGION, ROW(begin ? 1 : 0, thread, time_ns, cpu_ns, name));
}

void ls_trace_mark(struct ls_trace_writer *w, uint32_t thread, uint64_t time_ns, uint32_t name)
{
        ls_trace_event(w, LS_EVENT_MARK, 0);
        ls_trace_row(w, LS_REC_SPAN,
                     (const uint64_t[LS_COLUMNS_MAX]){ [LS_C_SPAN_EVENT] = LS_EVENT_MARK,
                                                       [LS_C_SPAN_VALUE] = 1,
                                                       [LS_C_SPAN_PHASE] = LS_SPAN_INSTANT,
                                                       [LS_C_SPAN_TIME] = time_ns,
                                                       [LS_C_SPAN_THREAD] = thread,
                                                       [LS_C_SPAN_NAME] = name });
}

uint32_t ls_trace_counter(struct ls_trace_writer *w, uint32_t process, uint32_t name, uint32_t what,
                          uint32_t vm)
{
        return intern(w, LS_REC_COUNTER, ROW(process, name, what, vm));
}

void ls_trace_count(struct ls_trace_writer *w, uint32_t counter, uint64_t time_ns, uint64_t value)
{
        ls_trace_row(w, LS_REC_COUNT, ROW(counter, time_ns, value));
}

void ls_trace_notice(struct ls_trace_writer *w, const char *text)
{
        intern(w, LS_REC_NOTICE, ROW(zstring(w, text)));
}

void ls_trace_info_u64(struct ls_trace_writer *w, const char *key, uint64_t value)
{
        update(w, LS_REC_INFO, ROW(zstring(w, key), 0, value, 0));
}

void ls_trace_info_str(struct ls_trace_writer *w, const char *key, const char *value)
{
        update(w, LS_REC_INFO, ROW(zstring(w, key), 1, 0, zstring(w, value)));
}

int ls_trace_flush(struct ls_trace_writer *w, uint64_t now_ns, int force)
{
        int idle = !w->nrows && !w->pending_bytes, r;

        if (!force && (idle || (w->last_flush_ns && now_ns - w->last_flush_ns < LS_FLUSH_NS))) {
                if (idle || !w->last_flush_ns)
                        w->last_flush_ns = now_ns;
                return 0;
        }
        w->last_flush_ns = now_ns;
        w->hold_facts = !force && now_ns - w->last_facts_ns < LS_FACTS_NS;
        if (!w->hold_facts)
                w->last_facts_ns = now_ns;
        r = ls_writer_flush(w);
        w->hold_facts = 0;
        if (r)
                fail(w, r);
        return r;
}

uint64_t ls_trace_size(const struct ls_trace_writer *w)
{
        return w->size;
}

uint64_t ls_trace_dropped_ticks(const struct ls_trace_writer *w)
{
        return w->dropped_before_ticks + w->dropped_ticks;
}

uint64_t ls_trace_dropped(const struct ls_trace_writer *w)
{
        return w->dropped;
}

int ls_writer_end(struct ls_trace_writer *w)
{
        int r = ls_writer_flush(w);

        if (r)
                fail(w, r);
        if (w->dropped) {
                ls_trace_info_u64(w, ls_info_key(LS_INFO_DROPPED_CHUNKS), w->dropped);
                ls_trace_info_u64(w, ls_info_key(LS_INFO_DROPPED_TICKS), w->dropped_ticks);
                r = ls_writer_flush(w);
        }
        r = ls_writer_checkpoint(w, 1);
        if (r)
                fail(w, r);
        r = ls_writer_index(w);
        if (r)
                fail(w, r);
        return w->error;
}

int ls_trace_writer_close(struct ls_trace_writer *w)
{
        int r;

        if (!w)
                return 0;
        r = ls_writer_end(w);
        writer_free(w);
        return r;
}
