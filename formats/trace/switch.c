/* A trace goes on in another file: what the writer has in memory is said again there, so that each
 * file is whole. Called by record/rotate.c. */
#include "formats/trace/schema.h"
#include "formats/trace/writer.h"
#include "formats/trace/writer_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Of the file that ends: the next one gets its own. */
static const uint8_t forgotten[] = { LS_REC_CLOCKS, LS_REC_THREADCPU, LS_REC_PROCTOTALS,
                                     LS_REC_COUNT, LS_REC_ATTEMPT };

void ls_trace_writer_repeat(struct ls_trace_writer *w)
{
        w->repeats = 1;
}

void ls_writer_keep(struct ls_trace_writer *w, struct ls_writer_kept *k, const void *row,
                    size_t row_len, const void *bytes, size_t len)
{
        if (!w->repeats)
                return;
        ls_buf_add(&k->rows, row, row_len);
        ls_buf_add(&k->bytes, bytes, len);
}

static void say_all_again(struct ls_trace_writer *w, struct ls_dict *d)
{
        d->written = d->kept = d->staged = 0;
        if (ls_schemas[d->kind].rows == LS_ROWS_KEYED)
                for (uint32_t i = 0; i < d->n; i++)
                        d->state[i] = LS_ROW_SEEN | LS_ROW_DIRTY | LS_ROW_NEW;
        w->pending_bytes += d->n;
}

/* Memory ran out while it was kept: what is there would not fit together. */
static int say_kept_again(struct ls_writer_kept *k, struct ls_buf *rows, struct ls_buf *bytes)
{
        if (k->rows.failed || k->bytes.failed)
                return -ENOMEM;
        rows->len = bytes->len = 0;
        ls_buf_add(rows, k->rows.data, k->rows.len);
        ls_buf_add(bytes, k->bytes.data, k->bytes.len);
        return rows->failed || bytes->failed ? -ENOMEM : 0;
}

static int begin_file(struct ls_trace_writer *w, int fd)
{
        struct stat st;
        int r, r2;

        if (w->dropped) {
                ls_trace_info_u64(w, ls_info_key(LS_INFO_DROPPED_CHUNKS), 0);
                ls_trace_info_u64(w, ls_info_key(LS_INFO_DROPPED_TICKS), 0);
        }
        w->fd = fd;
        w->seekable = !fstat(fd, &st) && S_ISREG(st.st_mode);
        w->error = 0;
        w->dropped_before_ticks += w->dropped_ticks;
        w->size = w->dropped = w->dropped_ticks = w->since_full = w->definition_bytes =
                w->last_facts_ns = 0;
        w->number = w->since_checkpoint = 0;
        w->index.len = 0;
        for (size_t i = 0; i < sizeof(forgotten); i++) {
                ls_dict_done(&w->dict[forgotten[i]]);
                ls_dict_init(&w->dict[forgotten[i]], forgotten[i]);
        }
        for (unsigned k = 0; k < LS_KINDS; k++)
                if (k != LS_REC_STRING && ls_schemas[k].name)
                        say_all_again(w, &w->dict[k]);
        say_all_again(w, &w->strings.dict);
        r = ls_writer_header(w);
        r2 = say_kept_again(&w->kept_maps, &w->map_rows, &w->maps);
        if (!r2)
                r2 = say_kept_again(&w->kept_texts, &w->text_rows, &w->texts);
        return r ? r : r2;
}

int ls_trace_writer_switch(struct ls_trace_writer *w, int fd, int *ret_begun)
{
        int r = ls_writer_end(w);

        *ret_begun = begin_file(w, fd);
        return r;
}

int ls_trace_writer_leave(struct ls_trace_writer *w, int fd)
{
        return begin_file(w, fd);
}
