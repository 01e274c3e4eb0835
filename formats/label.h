/* What functions and sources are called when shown: unique, readable, safe to print. Used by the
 * exporters and by report/. */
#ifndef LS_FORMATS_LABEL_H
#define LS_FORMATS_LABEL_H

#include "formats/profile.h"

struct ls_labels {
        char **source;                  /* by source id: "app.lua", "[string \"return 1\"]",
                                         * "stdin" */
        char **function;                /* by function id: "fib", "function@app.lua:3", "main
                                         * chunk@app.lua" */
        uint32_t n_sources, n_functions;
        int inlined; /* 1 = --inlined: builtins that compiled code has inlined are
                                         * rows of flat views; else they are their callers */
};

/* Labels for all sources and functions of p. Two sources with one file name get as many directories
 * as tell them apart (all with full_path); two functions with one name get "@file:line". Returns 0
 * or -errno. */
int ls_labels_new(const struct ls_profile *p, int full_path, struct ls_labels **ret);
void ls_labels_free(struct ls_labels *l);       /* takes NULL */

/* The file that a source came from: its absolute path, else the name that Lua has; empty when it is
 * no file. */
struct ls_str ls_source_path(const struct ls_source *s);

#endif
