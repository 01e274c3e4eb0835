/* The command luasample jit: what the JIT compiler made of a program, and what it is worth. jit.c
 * reads the command line; model.c the samples; text.c shows them; tree.c shows which trace leaves
 * which. The page and the terminal browser show the same model. */
#ifndef LS_REPORT_JIT_JIT_H
#define LS_REPORT_JIT_JIT_H

#include "cli/command.h"
#include "formats/wire/kinds.h"
#include "report/jit/blame.h"
#include "report/model/report.h"
#include "report/model/source.h"

extern const struct ls_command ls_cmd_jit;

enum ls_jit_by { LS_JIT_BY_ALL, LS_JIT_BY_REASON, LS_JIT_BY_LINE, LS_JIT_BY_FUNCTION };

struct ls_jit_text {                    /* text.c */
        uint32_t source;                /* 0 = none yet */
        struct ls_source_text t;
};

struct ls_jit {                         /* model.c */
        struct ls_report r;             /* its aggregate tells samples apart by VM state and
                                         * trace */
        struct ls_aggregate *own;       /* that aggregate */
        uint64_t states[LS_NVMSTATES];  /* ticks */
        uint64_t ticks_before;          /* without --line */
        uint64_t *ticks;                /* [n_jittraces] */
        uint32_t *order;                /* [n_order] traces with ticks, most first */
        uint32_t n_order;
        struct ls_blame blame;          /* why time was spent outside of compiled code */
        long *row_at;                   /* [n_order] set by ls_jit_summary: where in r.out the row
                                         * of each trace begins, -1 = it is hidden; NULL = not
                                         * asked for */
        struct ls_jit_text *text;       /* the source that was read last */
        int only_recorded;              /* 1 = no line of a source that is not known to be what was
                                         * recorded: for what is passed on */
};

/* model.c: adds up the samples of j->r, of which profile, labels, filter and options are set; makes
 * its aggregate. line: only the time of that line, "FILE:N"; NULL = of all. Returns 0, -ENOENT (the
 * line has no time) or -errno; ls_jit_done frees what was made, after an error too. */
int ls_jit_init(struct ls_jit *j, const char *line);
void ls_jit_done(struct ls_jit *j);

/* text.c. Both return 0 or -errno. */
int ls_jit_summary(const struct ls_jit *j);
int ls_jit_trace(const struct ls_jit *j, uint32_t number);      /* all traces of this number;
                                                                 * -ENOENT: there is none */
int ls_jit_one_trace(const struct ls_jit *j, uint32_t trace);   /* one, by its place in the
                                                                 * profile */

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

/* text.c: where a trace starts, "work:33", goes on to, "itself", and what it is called, "36 side of
 * 27 exit 4"; to be freed, NULL = no memory. */
char *ls_jit_start(const struct ls_jit *j, uint32_t trace);
char *ls_jit_link(const struct ls_jit *j, uint32_t trace);
char *ls_jit_name(const struct ls_jit *j, uint32_t trace);
/* What a state of the VM means, in half a line. */
const char *ls_jit_state_meaning(unsigned vmstate);

/* why.c and advice.c: parts of the summary. Both return 0 or -errno. */
int ls_jit_why(const struct ls_jit *j);
int ls_jit_advice(const struct ls_jit *j);
/* why.c: a reason with that of its attempt, "given up for good: NYI: bytecode FNEW", and where it
 * begins, "loop work:12"; to be freed, NULL = no memory. */
char *ls_jit_because(const struct ls_jit *j, enum ls_reason reason, uint32_t attempt);
char *ls_jit_where(const struct ls_jit *j, uint32_t attempt);
const char *ls_jit_reason_title(enum ls_reason reason);
const char *ls_jit_reason_meaning(enum ls_reason reason);

/* times.c: ticks by state in equal parts of the time that is shown. */
#define LS_JIT_PARTS 60

struct ls_jit_times {
        uint64_t start_ns;              /* of the recording: CLOCK_MONOTONIC, as the next */
        uint64_t from_ns, to_ns;
        uint64_t ticks[LS_JIT_PARTS][LS_NVMSTATES];
};

int ls_jit_times_read(const struct ls_jit *j, struct ls_jit_times *ret);        /* 0 or -errno */

/* marks.c: what became of each line of source, for views of it. */
enum ls_jit_mark { LS_JIT_NO_MARK, LS_JIT_COMPILED, LS_JIT_INTERPRETED, LS_JIT_BLACKLISTED };

struct ls_jit_line {
        uint32_t source, line;
        uint64_t compiled, uncompiled;  /* ticks, those of builtins and C that it called too */
        uint32_t trace;                 /* with most of the compiled; 0 = none */
        uint32_t row;                   /* of the blame's, with most of the others; LS_NO_ROW =
                                         * none */
        uint32_t attempt;               /* that began there and was given up for good;
                                         * LS_NO_ATTEMPT = none */
        enum ls_jit_mark mark;
};

struct ls_jit_lines {                   /* by source and line; those without a mark are not there */
        struct ls_jit_line *lines;
        size_t n;
};

int ls_jit_lines_new(const struct ls_jit *j, struct ls_jit_lines *ret); /* 0 or -errno */
void ls_jit_lines_done(struct ls_jit_lines *l);
const struct ls_jit_line *ls_jit_line_of(const struct ls_jit_lines *l, uint32_t source,
                                         uint32_t line);        /* NULL = no mark */

/* aborts.c: attempts that were given up. Returns 0 or -errno. */
int ls_jit_aborts(const struct ls_jit *j, enum ls_jit_by by);
/* Why an attempt was given up, in LuaJIT's words, and a place, "work:33"; to be freed, NULL = no
 * memory. */
char *ls_jit_reason(const struct ls_jit *j, uint32_t attempt);
char *ls_jit_place(const struct ls_jit *j, uint32_t location);

#endif
