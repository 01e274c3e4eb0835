/* Writes a trace file: interns what samples refer to, and appends compressed, checksummed chunks.
 * Called by record/ (and by the generator of tests/). Not thread-safe: one thread owns a writer. */
#ifndef LS_FORMATS_TRACE_WRITER_H
#define LS_FORMATS_TRACE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "formats/dims.h"
#include "formats/profile.h"
#include "formats/wire/kinds.h"

struct ls_trace_writer;

/* All ids below are the writer's own: dense from 1 in order of first use, 0 = none. Every add
 * interns: an equal one returns the id that it had. Strings are bytes with a length and may hold
 * anything. */

struct ls_function_def {                /* a function's identity */
        uint8_t kind;                   /* enum ls_function_kind */
        uint8_t flags;                  /* LS_FUNCF_* */
        uint32_t source;                /* LUA: source id */
        uint32_t first_line, last_line; /* LUA */
        uint64_t hash;                  /* LUA: of its bytecode */
        uint32_t mapping;               /* C: mapping id, 0 = not known */
        uint64_t offset;                /* C: offset in that file. TRACE: the recording's number of
                                         * it (hash: tells those of one number apart) */
        uint32_t identity_name;         /* PSEUDO, BUILTIN: string id of the name, which is the
                                         * identity */
};

struct ls_source_def {                  /* a source's identity */
        uint32_t name;                  /* string id of the chunk name as Lua has it ("@file",
                                         * "=name", "code") */
        uint64_t text_hash;             /* xxh64 of the file's bytes, or of the text; 0 = not
                                         * known */
        uint64_t size;                  /* bytes of the file or text; 0 with text_hash 0 */
        uint32_t path;                  /* string id of the absolute path of the file, 0 = none */
};

struct ls_sample_row {                  /* one row; several rows with LS_SAMPLE_CONT make one sample
                                         * of many states */
        uint8_t event;                  /* enum ls_event_kind */
        uint8_t flags;                  /* LS_SAMPLE_* */
#define LS_DIM(NAME, name, bits, KIND, key) LS_DIM_TYPE_##bits name;
#include "formats/dims.def"
#undef LS_DIM
        uint32_t stack;
        uint64_t time_ns;               /* CLOCK_MONOTONIC */
        uint64_t weight;                /* ticks (sampled events) */
};

/* A row as the reader has it, with its ids: blocks have them in columns. */
static inline struct ls_sample_row ls_sample_row_of(const struct ls_sample_block *b, uint32_t i)
{
        return (struct ls_sample_row){
#define LS_DIM(NAME, name, bits, KIND, key) .name = b->name[i],
#include "formats/dims.def"
#undef LS_DIM
                .event = b->event[i], .flags = b->flags[i], .stack = b->stack[i],
                .time_ns = b->time_ns ? b->time_ns[i] : 0, .weight = b->weight[i] };
}

/* Opens: writes the file header to fd (kept by the writer until close; a pipe is allowed).
 * interval_ns gives the time unit of samples (interval / 16). The process ignores SIGPIPE and
 * SIGXFSZ: both are errors here. Returns 0 or -errno. */
int ls_trace_writer_open(int fd, uint64_t interval_ns, struct ls_trace_writer **ret_writer);

/* The file is read once, at once: it is written fast rather than small. */
void ls_trace_writer_brief(struct ls_trace_writer *w);

uint32_t ls_trace_string(struct ls_trace_writer *w, const char *bytes, size_t len);
uint32_t ls_trace_source(struct ls_trace_writer *w, const struct ls_source_def *def);
/* Text of a source that is in no file; the caller keeps to its limits. May come in any order, once
 * per source. */
void ls_trace_text(struct ls_trace_writer *w, uint32_t source, const char *text, size_t len);
uint32_t ls_trace_function(struct ls_trace_writer *w, const struct ls_function_def *def);
void ls_trace_name(struct ls_trace_writer *w, uint32_t function, enum ls_name_rank rank,
                   uint32_t name);
uint32_t ls_trace_location(struct ls_trace_writer *w, uint32_t function, uint32_t line);
/* parent: the stack of the caller, 0 = this is the root frame. */
uint32_t ls_trace_stack(struct ls_trace_writer *w, uint32_t parent, uint32_t location);
/* The same stack, where the line of the Lua function that is its leaf is not known. */
uint32_t ls_trace_stack_no_line(struct ls_trace_writer *w, uint32_t stack);
uint32_t ls_trace_zone(struct ls_trace_writer *w, uint32_t parent, uint32_t name);
/* A key and value (strings) that hold together with the label parent, 0 = alone. */
uint32_t ls_trace_label(struct ls_trace_writer *w, uint32_t parent, uint32_t key, uint32_t value);
/* How many there are: the id of the last one. */
uint32_t ls_trace_labels(const struct ls_trace_writer *w);
uint32_t ls_trace_process(struct ls_trace_writer *w, uint32_t pid, uint32_t name);
uint32_t ls_trace_thread(struct ls_trace_writer *w, uint32_t process, uint32_t tid, uint32_t name);
uint32_t ls_trace_vm(struct ls_trace_writer *w, uint32_t process, uint32_t number,
                     uint32_t runtime);
uint32_t ls_trace_coroutine(struct ls_trace_writer *w, uint32_t vm, uint32_t function,
                            uint32_t generation);
uint32_t ls_trace_mapping(struct ls_trace_writer *w, uint32_t path, uint64_t start, uint64_t end,
                          uint64_t file_offset, const uint8_t *build_id, size_t build_id_len);
/* A trace of the JIT compiler: the record as on the wire, with the writer's ids: jit_id and
 * parent_id are functions of kind TRACE (parent 0 = none), vm_id is the VM, functions[] are
 * functions. start: the function that it starts in, 0 = not known. Once per function; size of
 * LS_TRACE_JIT_MAX at most, as its counts say. */
struct ls_rec_jittrace;
#define LS_TRACE_JIT_MAX (1u << 20)
void ls_trace_jittrace(struct ls_trace_writer *w, const struct ls_rec_jittrace *rec, uint32_t size,
                       uint32_t start);
/* Names of the instructions that the traces of a VM are in. */
void ls_trace_irnames(struct ls_trace_writer *w, uint32_t vm, uint32_t names);
void ls_trace_event(struct ls_trace_writer *w, enum ls_event_kind kind, uint64_t period_ns);

void ls_trace_sample(struct ls_trace_writer *w, const struct ls_sample_row *row);
void ls_trace_clocks(struct ls_trace_writer *w, uint64_t monotonic_ns, uint64_t realtime_ns,
                     uint64_t boottime_ns);
void ls_trace_process_totals(struct ls_trace_writer *w, uint32_t process,
                             const struct ls_process_totals *totals);
void ls_trace_threadcpu(struct ls_trace_writer *w, uint32_t thread, uint64_t monotonic_ns,
                        uint64_t cpu_ns);
void ls_trace_region(struct ls_trace_writer *w, int begin, uint32_t thread, uint64_t time_ns,
                     uint64_t cpu_ns, uint32_t name);
/* An instant that the program marked. */
void ls_trace_mark(struct ls_trace_writer *w, uint32_t thread, uint64_t time_ns, uint32_t name);
/* A counter of a process by its name, what: enum ls_counter_what, vm: 0 = of none; and its value
 * from an instant on: the bits of a double. */
uint32_t ls_trace_counter(struct ls_trace_writer *w, uint32_t process, uint32_t name, uint32_t what,
                          uint32_t vm);
void ls_trace_count(struct ls_trace_writer *w, uint32_t counter, uint64_t time_ns, uint64_t value);
void ls_trace_notice(struct ls_trace_writer *w, const char *text);
/* Header facts and totals; the last value of a key counts. Keys: see the table in
 * formats/info.def. */
void ls_trace_info_u64(struct ls_trace_writer *w, const char *key, uint64_t value);
void ls_trace_info_str(struct ls_trace_writer *w, const char *key, const char *value);

/* Adds a row of a kind of the schema as it is; for kinds that have no function of their own yet.
 * Returns the id. */
uint32_t ls_trace_row(struct ls_trace_writer *w, unsigned kind, const uint64_t *row);
/* The same for kinds whose rows have a key: a row replaces that of its key. */
void ls_trace_keyed(struct ls_trace_writer *w, unsigned kind, const uint64_t *row);
/* What the map of a trace is made from, alone. */
void ls_trace_jitmap(struct ls_trace_writer *w, const struct ls_rec_jittrace *rec, uint32_t size);

/* Writes what is pending as a chunk if it is more than 256 KiB or older than 1 s (now_ns:
 * CLOCK_MONOTONIC), or always with force. Returns 0 or -errno of the write; after an error the
 * writer drops whole chunks and counts them, and what is in the file stays a valid trace. */
int ls_trace_flush(struct ls_trace_writer *w, uint64_t now_ns, int force);

/* The trace may go on in another file: from the beginning what that one would lack is kept in
 * memory. */
void ls_trace_writer_repeat(struct ls_trace_writer *w);
/* The file becomes whole, as by close; the trace goes on in fd, where everything is said again that
 * samples refer to, under the same ids. Clocks and totals are not. The caller closes the old
 * descriptor. Returns 0 or the first -errno of the old file; *ret_begun is that of the new one. */
int ls_trace_writer_switch(struct ls_trace_writer *w, int fd, int *ret_begun);

/* The same, and the old file stays as it is. All that was added must have been flushed. */
int ls_trace_writer_leave(struct ls_trace_writer *w, int fd);

/* Bytes written so far. */
uint64_t ls_trace_size(const struct ls_trace_writer *w);
/* Chunks that could not be written. */
uint64_t ls_trace_dropped(const struct ls_trace_writer *w);
/* Ticks of the samples that were dropped, in all files of the writer. */
uint64_t ls_trace_dropped_ticks(const struct ls_trace_writer *w);

/* Flushes, writes checkpoint and index, frees the writer; the caller closes fd. Returns 0 or the
 * first -errno. */
int ls_trace_writer_close(struct ls_trace_writer *w);

#endif
