/* The prototypes that were met: each is described in the log when it is first called, with all that
 * are written in it. Memory of one that was collected may hold another: then what the first one
 * counted goes to the log, and its cells begin at 0. */
#include <pthread.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/exact/private.h"
#include "libsample/handler/names_stack.h"
#include "libsample/handler/proto_hash.h"
#include "libsample/handler/walk.h"
#include "libsample/lock.h"
#include "libsample/pages.h"

#define PAGE_BITS 12u
#define NAME_MOST 4096u                 /* bytes of a chunk's name, as SOURCE records have it */
#define FUNCTION_MOST 256u              /* bytes of a function's name */
#define DEEPEST 190u /* nesting of functions that LuaJIT's parser allows, at most */

/* Behind the cells of what lies before a prototype, and before that of its header: the prototype
 * itself has no instructions. */
struct mark { uint64_t id, print; };

struct known {
        uintptr_t code;
        uint32_t id, n;
        _Atomic uint32_t *lost;
};                                      /* lost: of its record in the log */
struct link { uint32_t known, next; };  /* in the chain of a page: index of known, link; 0 = none */

static struct known *known;             /* from 1 */
static struct link *links;              /* from 1 */
static uint32_t *chains;                /* by a hash of the page's number */
static size_t nknown, known_room, nlinks, links_room, chains_room;
static uint32_t unused_known, unused_links, last_id;
_Atomic unsigned ls_exact_protos_gone;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct mark *mark_of(const char *pt)
{
        char *cell = (char *)ls_exact_cell((uintptr_t)pt + LS_PT_SIZE + 4);

        return cell && ls_exact_cell((uintptr_t)pt + LS_PT_SIZE - 8)
                       ? (struct mark *)(cell - sizeof(struct mark))
                       : NULL;
}

/* As the stub of a header works it out (stubs.c): not 0. */
static uint64_t print_of(const char *pt)
{
        const char *name = LS_READ(const char *, pt, LS_PT_CHUNKNAME);
        uint64_t print = LS_READ(uint64_t, pt, LS_PT_FIRSTLINE);

        print += (uint64_t)LS_READ(uint32_t, name, LS_STR_HASH) * 0x3c6ef372u;
        print += (uint64_t)LS_READ(uint32_t, pt, LS_PT_SIZEBC) * 0x1b873593u;
        return print | UINT64_C(1) << 63;
}

static uint32_t *chain_of(uintptr_t page)
{
        return &chains[(page * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (chains_room - 1)];
}

/* Room for as many links as there are. Returns 1 when the chains are new and empty, 0 when they are
 * as they were, or -1. */
static int grow(void)
{
        size_t room = chains_room ? chains_room * 2 : 4096;
        uint32_t *new;

        if (nlinks < chains_room)
                return 0;
        new = ls_pages_new(room * sizeof *new);
        if (!new)
                return -1;
        ls_pages_free(chains, chains_room * sizeof *chains);
        chains = new;
        chains_room = room;
        nlinks = 0;
        unused_links = 0;
        return 1;
}

static int link_pages(uint32_t i)
{
        uintptr_t from = (known[i].code - LS_PT_SIZE) >> PAGE_BITS;
        uintptr_t to = (known[i].code + 4 * (uintptr_t)known[i].n - 1) >> PAGE_BITS;

        for (uintptr_t page = from; page <= to; page++) {
                uint32_t *chain = chain_of(page), l = unused_links;

                if (l) {
                        unused_links = links[l].next;
                } else {
                        if (ls_pages_grow((void **)&links, &links_room, nlinks + 2, sizeof *links))
                                return -1;
                        l = (uint32_t)++nlinks;
                }
                links[l] = (struct link){ i, *chain };
                *chain = l;
        }
        return 0;
}

static void unlink_pages(uint32_t i)
{
        uintptr_t from = (known[i].code - LS_PT_SIZE) >> PAGE_BITS;
        uintptr_t to = (known[i].code + 4 * (uintptr_t)known[i].n - 1) >> PAGE_BITS;

        for (uintptr_t page = from; page <= to; page++)
                for (uint32_t *at = chain_of(page), l; (l = *at); at = &links[l].next)
                        if (links[l].known == i) {
                                *at = links[l].next;
                                links[l].next = unused_links;
                                unused_links = l;
                                break;
                        }
}

/* What was counted where k was goes to the log. */
static void take_counts(const struct known *k)
{
        struct ls_exact_gone *rec = ls_exact_log_begin((uint32_t)sizeof *rec + 8 * k->n);
        uint64_t *cells = ls_exact_cell(k->code + 4);

        if (!rec && k->lost)
                atomic_store(k->lost, 1);
        if (rec) {
                rec->rec.kind = LS_EXACT_GONE;
                rec->id = k->id;
                rec->n = k->n;
                memcpy(rec + 1, cells, 8 * (size_t)k->n);
                ls_exact_log_end();
        }
        memset(cells, 0, 8 * (size_t)k->n);
}

static void forget(uint32_t i)
{
        struct mark *mark = mark_of((const char *)known[i].code - LS_PT_SIZE);

        take_counts(&known[i]);
        atomic_fetch_add(&ls_exact_protos_gone, 1);
        if (mark)
                memset(mark, 0, sizeof *mark);
        unlink_pages(i);
        known[i] = (struct known){ 0, unused_known, 0, NULL };
        unused_known = i;
}

/* Those that were where [from, to) is now. */
static void forget_overlapping(uintptr_t from, uintptr_t to)
{
        for (uintptr_t page = from >> PAGE_BITS; chains_room && page <= (to - 1) >> PAGE_BITS;
             page++) {
                uint32_t l = *chain_of(page);

                while (l) {
                        const struct known *k = &known[links[l].known];

                        if (k->code - LS_PT_SIZE < to && k->code + 4 * (uintptr_t)k->n > from) {
                                forget(links[l].known);
                                l = *chain_of(page);    /* the chain has changed */
                        } else {
                                l = links[l].next;
                        }
                }
        }
}

static int note(uintptr_t code, uint32_t n, uint32_t id, _Atomic uint32_t *lost)
{
        uint32_t i = unused_known;
        int grown;

        if (!i) {
                if (ls_pages_grow((void **)&known, &known_room, nknown + 2, sizeof *known))
                        return -1;
                i = (uint32_t)++nknown;
        } else {
                unused_known = known[i].id;
        }
        known[i] = (struct known){ code, id, n, lost };
        grown = grow();
        if (grown < 0)
                return -1;
        if (!grown)
                return link_pages(i);
        for (uint32_t k = 1; k <= nknown; k++)
                if (known[k].code && link_pages(k))
                        return -1;
        return 0;
}

/* A name that a definition gives; NULL = none. */
struct given { const char *name; uint32_t len; };

static uint32_t padded(uint32_t len) { return (len + 3) & ~3u; }

static char *put_text(char *at, const char *text, uint32_t len)
{
        memset(at, 0, padded(len));
        if (len)
                memcpy(at, text, len);
        return at + padded(len);
}

static void put_body(struct ls_exact_proto *rec, const char *pt, const char *name,
                     const struct given *given)
{
        uint32_t *lines, n = rec->n;

        lines = (uint32_t *)put_text(put_text((char *)(rec + 1), ls_str_data(name), rec->name_len),
                                     given->name, rec->function_len);
        if (rec->has_lines)
                for (uint32_t i = 0; i < n; i++)
                        *lines++ = ls_pt_line(pt, pt + LS_PT_SIZE + 4 * (size_t)(i + 1));
        memcpy(lines, pt + LS_PT_SIZE, 4 * (size_t)n);
}

/* Its record in the log; NULL = there is no room. */
static struct ls_exact_proto *send(const struct ls_exact *x, const char *pt, uint32_t id,
                                   const struct given *given)
{
        const char *name = LS_READ(const char *, pt, LS_PT_CHUNKNAME);
        uint32_t n = LS_READ(uint32_t, pt, LS_PT_SIZEBC), len = ls_str_len(name);
        uint32_t given_len = given->len < FUNCTION_MOST ? given->len : FUNCTION_MOST;
        int has_lines = LS_READ(const char *, pt, LS_PT_LINEINFO) != NULL;
        struct ls_exact_proto *rec;

        if (len > NAME_MOST)
                len = NAME_MOST;
        rec = ls_exact_log_begin((uint32_t)sizeof *rec + padded(len) + padded(given_len) +
                                 (has_lines ? 8 : 4) * n);
        if (!rec)
                return NULL;
        rec->rec.kind = LS_EXACT_PROTO;
        rec->id = id;
        rec->vm_id = x->vm_id;
        rec->code = (uintptr_t)pt + LS_PT_SIZE;
        rec->n = n;
        rec->first_line = LS_READ(int32_t, pt, LS_PT_FIRSTLINE);
        rec->last_line = rec->first_line + LS_READ(int32_t, pt, LS_PT_NUMLINE);
        rec->name_len = len;
        rec->function_len = (uint16_t)given_len;
        rec->has_lines = (uint32_t)has_lines;
        atomic_store(&rec->lost, 0);
        rec->hash = ls_proto_hash(pt);
        rec->name_hash = ls_text_hash(ls_str_data(name), ls_str_len(name));
        rec->flags = (rec->first_line == 0 ? LS_FUNCF_MAIN : 0u) |
                     (LS_READ(uint8_t, pt, LS_PT_FLAGS) & LS_PTF_VARARG ? LS_FUNCF_VARARG : 0u);
        rec->op_fori = (uint8_t)ls_vm_facts.op_fori;
        put_body(rec, pt, name, given);
        ls_exact_log_end();
        return rec;
}

/* Describes a prototype and those that are written in it. */
static void describe(struct ls_exact *x, const char *pt, unsigned depth, const struct given *given)
{
        struct mark *mark = mark_of(pt);
        const uint64_t *k = LS_READ(const uint64_t *, pt, LS_PT_K);
        uintptr_t code = (uintptr_t)pt + LS_PT_SIZE;
        uint32_t n = LS_READ(uint32_t, pt, LS_PT_SIZEBC), id, from = 1;
        struct ls_exact_proto *rec;

        if (!mark || !ls_exact_cell(code + 4 * (uintptr_t)n))
                return;
        if (mark->print != print_of(pt)) {
                ls_exact_take_returns(x, (uintptr_t)pt, code + 4 * (uintptr_t)n);
                forget_overlapping((uintptr_t)pt, code + 4 * (uintptr_t)n);
                memset(ls_exact_cell((uintptr_t)pt + 4), 0, 2 * (LS_PT_SIZE + 4 * (size_t)n));
                id = ++last_id;
                rec = send(x, pt, id, given);
                if (!rec || note(code, n, id, &rec->lost))
                        id = 0;         /* counted all the same: nobody knows whose counts they
                                         * are */
                *mark = (struct mark){ id, print_of(pt) };
        }
        for (uint32_t i = 0; depth < DEEPEST && i < LS_READ(uint32_t, pt, LS_PT_SIZEKGC); i++) {
                const char *child = (const char *)(uintptr_t)k[-1 - (int64_t)i];
                struct given its = { NULL, 0 };

                if (LS_READ(uint8_t, child, LS_GC_TYPE) != LS_T_PROTO)
                        continue;
                /* constants are in the order of the instructions that use them first */
                its.name = ls_names_defined(pt, i, &from, &its.len);
                describe(x, child, depth + 1, &its);
        }
}

void ls_exact_meet(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        uint64_t *cell = ls_exact_cell((uintptr_t)pc);
        sigset_t mask;

        ls_lock(&lock, &mask);
        describe(x, pc - 4 - LS_PT_SIZE, 0, &(struct given){ NULL, 0 });
        ls_unlock(&lock, &mask);
        if (cell)
                ++*cell;
        ls_exact_called(x, pc, base, L);
}

uint32_t ls_exact_describe(struct ls_exact *x, const char *pt)
{
        sigset_t mask;

        ls_lock(&lock, &mask);
        describe(x, pt, 0, &(struct given){ NULL, 0 });
        ls_unlock(&lock, &mask);
        return ls_exact_proto_id(pt);
}

void ls_exact_no_proto(uintptr_t from, uintptr_t to)
{
        sigset_t mask;

        ls_lock(&lock, &mask);
        forget_overlapping(from, to);
        ls_unlock(&lock, &mask);
}

void ls_exact_protos_after_fork(void)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        memcpy(&lock, &fresh, sizeof fresh);
        memset(chains, 0, chains_room * sizeof *chains);
        nknown = nlinks = 0;
        unused_known = unused_links = 0;
}

uint32_t ls_exact_proto_id(const char *pt)
{
        const struct mark *mark = mark_of(pt);

        return mark && mark->print == print_of(pt) ? (uint32_t)mark->id : 0;
}
