/* Pending samples become a chunk: times in units of the interval, and for each column the encoding
 * that compresses best. Called by flush.c. */
#include "formats/trace/coded.h"
#include "formats/trace/schema.h"
#include "formats/trace/writer.h"
#include "formats/trace/writer_parts.h"

/* Times become sixteenths of the interval from the first row's time, each rounded for itself, so
 * that no error adds up. Rows of several threads may be out of order: differences have a sign. */
static void round_times(struct ls_trace_writer *w, uint64_t base)
{
        uint64_t *t = w->columns[LS_C_SAMPLE_TIME];

        for (uint32_t i = 0; i < w->nrows; i++) {
                __int128 d = (__int128)(int64_t)(t[i] - base) * 16 + w->interval_ns / 2;
                __int128 q = d / w->interval_ns;

                t[i] = (uint64_t)(int64_t)(d % (__int128)w->interval_ns < 0 ? q - 1 : q);
        }
}

/* The encoding of a sample column that compresses best, and its bytes then: which one that is
 * differs from program to program, and is worth a tenth of the file. Few rows, so the tries cost
 * little. Times are differences. */
static unsigned best_encoding(struct ls_trace_writer *w, unsigned column, const uint64_t *values,
                              size_t *ret_len)
{
        static const uint8_t tries[] = { LS_ENC_PLANES, LS_ENC_RUNS, LS_ENC_VARINT, LS_ENC_DELTA };
        unsigned best = ls_columns[LS_REC_SAMPLE][column].encoding;

        *ret_len = SIZE_MAX;
        for (unsigned i = column == LS_C_SAMPLE_TIME ? sizeof(tries) - 1 : 0; i < sizeof(tries);
             i++) {
                size_t bound, n;

                w->trial.len = w->packed.len = 0;
                ls_column_put(&w->trial, column, tries[i], 0, values, w->nrows);
                if (w->trial.len < 16) {        /* constant, or nearly */
                        *ret_len = 0;
                        return tries[i];
                }
                bound = ZSTD_compressBound(w->trial.len);
                if (!ls_buf_room(&w->packed, bound))
                        break;
                n = ZSTD_compress2(w->zstd, w->packed.data, bound, w->trial.data, w->trial.len);
                if (!ZSTD_isError(n) && n < *ret_len) {
                        *ret_len = n;
                        best = tries[i];
                }
        }
        return best;
}

static void put_column(struct ls_trace_writer *w, unsigned column)
{
        const uint64_t *values = w->columns[column],
                       *context = w->columns[ls_coded_context(column)];
        size_t len, start = w->body.len;
        unsigned encoding = ls_columns[LS_REC_SAMPLE][column].encoding;

        len = 0;
        if (!w->brief)
                encoding = best_encoding(w, column, values, &len);
        if (len && w->nrows <= LS_CODED_ROWS &&
            !ls_coded_put(&w->body, column, values, context, w->nrows)) {
                if (w->body.len - start <= len)
                        return;
                w->body.len = start;
        }
        ls_column_put(&w->body, column, encoding, 0, values, w->nrows);
}

void ls_writer_coroutines(struct ls_trace_writer *w)
{
        const struct ls_dict *d = &w->dict[LS_REC_STACK];

        for (uint32_t i = 0; i < w->nrows; i++) {
                uint64_t stack = w->columns[LS_C_SAMPLE_STACK][i];

                if (stack > w->homed && stack <= d->n &&
                    !ls_dict_row(d, (uint32_t)stack)[LS_C_STACK_COROUTINE])
                        ls_dict_row(d, (uint32_t)stack)[LS_C_STACK_COROUTINE] =
                                w->columns[LS_C_SAMPLE_COROUTINE][i];
        }
        w->homed = d->n;
}

/* Where there are coroutines, most samples of a stack are in that of its first one: said so,
 * instead of which one. */
static void refer_coroutines(struct ls_trace_writer *w)
{
        const struct ls_dict *d = &w->dict[LS_REC_STACK];
        const uint64_t *stack = w->columns[LS_C_SAMPLE_STACK];
        uint64_t *coroutine = w->columns[LS_C_SAMPLE_COROUTINE], any = 0;

        for (uint32_t i = 0; i < w->nrows; i++)
                any |= coroutine[i] ^ coroutine[0];
        for (uint32_t i = 0; any && i < w->nrows; i++)
                if (ls_dict_has(d, stack[i]) &&
                    ls_dict_row(d, (uint32_t)stack[i])[LS_C_STACK_COROUTINE] == coroutine[i])
                        coroutine[i] = LS_COROUTINE_OF_STACK;
}

/* Columns that came later than the format's first are left out where they say nothing. */
static int is_needed(const struct ls_trace_writer *w, unsigned column)
{
        for (uint32_t i = 0; column > LS_C_SAMPLE_INTERVAL && i < w->nrows; i++)
                if (w->columns[column][i])
                        return 1;
        return column < LS_C_SAMPLE_INTERVAL;
}

static void build_samples(struct ls_trace_writer *w)
{
        uint64_t base = w->columns[LS_C_SAMPLE_TIME][0];

        round_times(w, base);
        refer_coroutines(w);
        ls_record_begin(&w->body, 0, w->nrows);
        ls_column_put(&w->body, LS_C_SAMPLE_BASE, LS_ENC_CONST, 0, &base, 1);
        ls_column_put(&w->body, LS_C_SAMPLE_INTERVAL, LS_ENC_CONST, 0, &w->interval_ns, 1);
        for (unsigned c = 0; c < LS_COLUMNS_MAX; c++)
                if ((LS_ROW_COLUMNS >> c & 1) && is_needed(w, c))
                        put_column(w, c);
        ls_record_end(&w->raw, LS_REC_SAMPLE, &w->body);
}

/* A sample chunk that cannot be written is dropped and leaves a gap in the numbers; the next one
 * may do. */
int ls_writer_samples(struct ls_trace_writer *w)
{
        uint64_t ticks = 0;
        uint32_t number = w->number;
        int r;

        if (!w->nrows)
                return 0;
        for (unsigned e = 0; e <= UINT8_MAX; e++) {
                const struct ls_event_total *t = &w->totals[e];

                if (!t->rows)
                        continue;
                ls_buf_varint(&w->extra, e);
                ls_buf_varint(&w->extra, t->rows);
                ls_buf_varint(&w->extra, t->samples);
                ls_buf_varint(&w->extra, t->sum);
                ticks += t->sum;
        }
        build_samples(w);
        r = ls_writer_put_chunk(w, LS_CHUNK_SAMPLES, 0, ticks);
        if (r) {
                w->number += w->number == number;
                w->dropped++;
                w->dropped_ticks += ticks;
        }
        w->nrows = w->nevents = 0;
        memset(w->totals, 0, sizeof(w->totals));
        return r;
}
