/* What a trace says of the lines and functions of files that were executed, and of those that were
 * not. Made for command.c; read by write.c. */
#ifndef LS_REPORT_COVERAGE_DATA_H
#define LS_REPORT_COVERAGE_DATA_H

#include "formats/profile.h"
#include "report/model/source.h"

struct ls_coverage_line { uint32_t line; uint64_t hits; };
/* A way out of a branch; both of one lie beside each other. */
struct ls_coverage_arm {
        uint32_t line, pos;             /* pos: of its bytecode */
        uint8_t jumps;                  /* 1 = it is the way that jumps */
        uint64_t function;              /* hash of its bytecode */
        uint64_t hits;
};

struct ls_coverage_function {
        uint32_t first_line;
        struct ls_str name;             /* as its source or the trace has it, empty = it has none */
        uint64_t calls;
};

struct ls_coverage_file {
        struct ls_source_text text;     /* names of functions point into it */
        char *path;                     /* absolute, where that is known */
        const char *name;               /* as the program names it */
        uint32_t source;                /* a source of the trace that it is of, 0 = none */
        struct ls_coverage_line *lines; /* that could be executed, in their order */
        struct ls_coverage_function *functions;
        struct ls_coverage_arm *arms;   /* by line */
        size_t n_lines, n_functions, n_arms, lines_hit, functions_hit, arms_hit;
        uint32_t last;                  /* line */
        int never;                      /* 1 = it was never loaded: its lines are guessed */
        int changed;                    /* 1 = it is not the file that was recorded */
};

struct ls_coverage {
        struct ls_coverage_file *files; /* by path */
        size_t n_files, room;
        struct ls_coverage_path *by_path;       /* by the paths of the files; uthash's */
        size_t lines, lines_hit, functions, functions_hit, arms, arms_hit;
        size_t no_files;                /* chunks that came from no file: they are left out */
        int has_branches;               /* 1 = they were recorded */
        int counted;                    /* 1 = hits and calls are numbers; 0 = 1 stands for any */
};

/* include: only files below these directories, or that match as patterns; those below that were
 * never loaded too. n of them, 0 = all files of the trace. Returns 0, -ENODATA: the trace has no
 * coverage, or -ENOMEM. */
int ls_coverage_new(struct ls_profile *p, const char *const *include, unsigned n,
                    struct ls_coverage *ret);
void ls_coverage_free(struct ls_coverage *c);

#endif
