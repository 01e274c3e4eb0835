/* The command luasample jit: what the JIT compiler made of a program, and what it is worth. jit.c
 * reads the command line and the samples; text.c shows them; tree.c shows which trace leaves
 * which. */
#ifndef LS_REPORT_JIT_JIT_H
#define LS_REPORT_JIT_JIT_H

#include "cli/command.h"
#include "formats/wire/kinds.h"
#include "report/jit/blame.h"
#include "report/model/report.h"

extern const struct ls_command ls_cmd_jit;

enum ls_jit_by { LS_JIT_BY_ALL, LS_JIT_BY_REASON, LS_JIT_BY_LINE, LS_JIT_BY_FUNCTION };

struct ls_jit {
        struct ls_report r;             /* its aggregate tells samples apart by VM state and
                                         * trace */
        uint64_t states[LS_NVMSTATES];  /* ticks */
        uint64_t ticks_before;          /* without --line */
        uint64_t *ticks;                /* [n_jittraces] */
        uint32_t *order;                /* [n_order] traces with ticks, most first */
        uint32_t n_order;
        struct ls_blame blame;          /* why time was spent outside of compiled code */
};

/* text.c. Both return 0 or -errno. */
int ls_jit_summary(const struct ls_jit *j);
int ls_jit_trace(const struct ls_jit *j, uint32_t number);      /* all traces of this number;
                                                                 * -ENOENT: there is none */

/* narrow.c: leaves only the time of a line "FILE:N" in a. Returns 0, -ENOENT (it has none), -EINVAL
 * (that is no line) or -ENOMEM. */
int ls_jit_narrow(const struct ls_report *r, struct ls_aggregate *a, const char *line);
int ls_jit_is_line(const char *text);   /* "FILE:N" */

/* json.c: what the summary and --aborts show, and all traces. Returns 0 or -errno. */
int ls_jit_json(const struct ls_jit *j);

/* listing.c: a trace's source lines, LuaJIT's instructions and machine code, in the order of the
 * code. Returns 0 or -errno. */
int ls_jit_listing(const struct ls_jit *j, uint32_t trace);
/* text.c, for the listing: the text of a line of source, cut to columns; nothing when it cannot be
 * had. Returns 0 or -errno. */
int ls_jit_source(const struct ls_jit *j, uint32_t source, uint32_t line, size_t columns);

/* tree.c: root traces with those that leave them, by the exit. Returns 0 or -errno. */
int ls_jit_tree(const struct ls_jit *j);

/* graph.c: the same as a drawing, in graphviz's DOT. Returns 0 or -errno. */
int ls_jit_graph(const struct ls_jit *j);

/* text.c, for tree and graph: where a trace starts, "work:33", and goes on to, "itself"; to be
 * freed, NULL = no memory. */
char *ls_jit_start(const struct ls_jit *j, uint32_t trace);
char *ls_jit_link(const struct ls_jit *j, uint32_t trace);

/* why.c and advice.c: parts of the summary. Both return 0 or -errno. */
int ls_jit_why(const struct ls_jit *j);
int ls_jit_advice(const struct ls_jit *j);

/* aborts.c: attempts that were given up. Returns 0 or -errno. */
int ls_jit_aborts(const struct ls_jit *j, enum ls_jit_by by);
/* Why an attempt was given up, in LuaJIT's words, and a place, "work:33"; to be freed, NULL = no
 * memory. */
char *ls_jit_reason(const struct ls_jit *j, uint32_t attempt);
char *ls_jit_place(const struct ls_jit *j, uint32_t location);

#endif
