/* Pending samples become a chunk: times in units of the interval, and for each column the encoding that compresses
 * best. Called by trace_flush.c. */
#include "formats/record.h"
#include "formats/writer.h"

/* Times become sixteenths of the interval from the first row's time, each rounded for itself, so that no error adds
 * up. Rows of several threads may be out of order: differences have a sign. */
static void round_times(struct ls_trace_writer *w, uint64_t base)
{
        uint64_t *t = w->columns[LS_C_SAMPLE_TIME];

        for (uint32_t i = 0; i < w->nrows; i++) {
                __int128 d = (__int128)(int64_t)(t[i] - base) * 16 + w->interval_ns / 2;
                __int128 q = d / w->interval_ns;

                t[i] = (uint64_t)(int64_t)(d % (__int128)w->interval_ns < 0 ? q - 1 : q);
        }
}

/* The encoding of a sample column that compresses best: which one that is differs from program to program, and is
 * worth a tenth of the file. Few rows, so the tries cost little. */
static unsigned best_encoding(struct ls_trace_writer *w, unsigned column, const uint64_t *values)
{
        static const uint8_t tries[] = { LS_ENC_PLANES, LS_ENC_RUNS, LS_ENC_DELTA, LS_ENC_VARINT };
        unsigned best = ls_columns[LS_REC_SAMPLE][column].encoding;
        size_t best_len = SIZE_MAX;

        for (unsigned i = 0; i < sizeof(tries); i++) {
                size_t bound, n;

                w->trial.len = w->packed.len = 0;
                ls_column_put(&w->trial, column, tries[i], 0, values, w->nrows);
                if (w->trial.len < 16)          /* constant */
                        break;
                bound = ZSTD_compressBound(w->trial.len);
                if (!ls_buf_room(&w->packed, bound))
                        break;
                n = ZSTD_compress2(w->zstd, w->packed.data, bound, w->trial.data, w->trial.len);
                if (!ZSTD_isError(n) && n < best_len) {
                        best_len = n;
                        best = tries[i];
                }
        }
        return best;
}

static void build_samples(struct ls_trace_writer *w)
{
        uint64_t base = w->columns[LS_C_SAMPLE_TIME][0];

        round_times(w, base);
        ls_record_begin(&w->body, 0, w->nrows);
        ls_column_put(&w->body, LS_C_SAMPLE_BASE, LS_ENC_CONST, 0, &base, 1);
        ls_column_put(&w->body, LS_C_SAMPLE_INTERVAL, LS_ENC_CONST, 0, &w->interval_ns, 1);
        for (unsigned c = 0; c < LS_SAMPLE_COLUMNS; c++) {
                unsigned encoding = c == LS_C_SAMPLE_TIME ? LS_ENC_DELTA : best_encoding(w, c, w->columns[c]);

                ls_column_put(&w->body, c, encoding, 0, w->columns[c], w->nrows);
        }
        ls_record_end(&w->raw, LS_REC_SAMPLE, &w->body);
}

/* A sample chunk that cannot be written is dropped and leaves a gap in the numbers; the next one may do. */
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
