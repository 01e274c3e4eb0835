/* The command luasample heap: all objects of a program's VMs. command.c has them taken by luasample
 * stack and shows them; read.c reads a snapshot, graph.c finds what holds what; text.c prints. */
#ifndef LS_REPORT_HEAP_HEAP_H
#define LS_REPORT_HEAP_HEAP_H

#include <stdint.h>
#include <stdio.h>

#include "cli/command.h"

extern const struct ls_command ls_cmd_heap;

#define LS_HEAP_TYPES 16u               /* numbers of types are below */
#define LS_HEAP_NONE  UINT32_MAX

struct ls_heap_object {
        uint64_t at, size;              /* address in the program; bytes, with what it alone has */
        uint64_t text;                  /* offset in texts */
        uint32_t vm, text_len;
        uint32_t first;                 /* its edges, up to those of the next */
        uint8_t type;
};

struct ls_heap_edge {
        uint32_t target, which;         /* object; index, or the object that is its name */
        uint8_t how;
};

struct ls_heap_vm {                     /* main and the next two are objects, 0 = not there */
        uint32_t number, main, registry, globals;
        uint64_t bytes;
};

struct ls_heap {                        /* object 0 is the root of all */
        struct ls_heap_object *objects;
        struct ls_heap_edge *edges;
        struct ls_heap_vm *vms;
        char *texts;
        uint64_t n_texts, room_texts;
        uint32_t n, room, n_edges, room_edges, n_vms;   /* n: object 0 included */
        uint64_t pid, stopped_ns, copied;
        char name[64];
        /* graph.c */
        uint32_t *parent, *by;          /* shortest way from the root: object and edge; LS_HEAP_NONE
                                         * = nothing holds it */
        uint32_t *dominator;            /* likewise */
        uint64_t *retained;             /* bytes that would go with it */
};

/* Gives up what rights this process has, once the snapshots are open and before the first is read:
 * they are the word of the program that was looked at. Returns 0 or -errno. Set by main(), where
 * this is root; NULL = there is nothing to give up. */
extern int (*ls_heap_drop)(void);

/* read.c: takes f. Returns 0, -EINVAL (ret_why says more), or -errno. */
int ls_heap_open(FILE *f, struct ls_heap **ret, const char **ret_why);
void ls_heap_close(struct ls_heap *h);  /* takes NULL */

/* graph.c: parent, dominator and retained. Returns 0 or -ENOMEM. */
int ls_heap_dominate(struct ls_heap *h);

/* text.c: by type and by what retains most; why an object is alive; what grew from a to b. Return
 * 0, -ENOENT or -ENOMEM. */
int ls_heap_show(FILE *out, const struct ls_heap *h, int json);
int ls_heap_why(FILE *out, const struct ls_heap *h, const char *what);
int ls_heap_compare(FILE *out, const struct ls_heap *a, const struct ls_heap *b);

#endif
