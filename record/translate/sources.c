/* Sources of the recorded program: see sources.h. */
#include "record/translate/sources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

#include "record/process/proc.h"
#include "record/worker/worker.h"

#define KNOWN_MAX 65536                 /* chunks of a name of their own */

#define HAS_NAME 1                      /* the name of a chunk without one, which is its text */
#define HAS_TEXT 2

void ls_sources_init(struct ls_sources *s, struct ls_trace_writer *w, struct ls_worker *worker,
                     struct ls_ids *ids, const char *cwd, int pid, int no_source)
{
        memset(s, 0, sizeof(*s));
        s->writer = w;
        s->worker = worker;
        s->ids = ids;
        s->cwd = cwd;
        s->pid = pid;
        s->no_source = no_source;
}

/* The agent sends the text of a chunk like "=init" once a process: other threads and the watcher,
 * who may come first, name the chunk without it, and a forked child has it no more. */
struct ls_source_known {
        UT_hash_handle hh;
        uint64_t name_hash;             /* key */
        uint32_t trace_id;
        int has_text;                   /* it came, or will */
        int failed;
};

static struct ls_source_known *find(struct ls_source_known *table, uint64_t name_hash)
{
        struct ls_source_known *k;

        HASH_FIND(hh, table, &name_hash, sizeof(name_hash), k);
        return k;
}

static void know(struct ls_source_known **table, uint64_t name_hash, uint32_t trace_id,
                 int has_text)
{
        struct ls_source_known *k;

        if (find(*table, name_hash) || HASH_COUNT(*table) >= KNOWN_MAX ||
            !(k = calloc(1, sizeof(*k))))
                return;
        k->name_hash = name_hash;
        k->trace_id = trace_id;
        k->has_text = has_text;
        HASH_ADD(hh, *table, name_hash, sizeof(k->name_hash), k);
        if (k->failed)
                free(k);
}

static void forget_known(struct ls_source_known **table)
{
        struct ls_source_known *k, *next;

        HASH_ITER(hh, *table, k, next) {
                HASH_DEL(*table, k);
                free(k);
        }
}

void ls_sources_inherit(struct ls_sources *s, const struct ls_sources *from)
{
        for (const struct ls_source_known *k = from->known; k; k = k->hh.next)
                know(&s->inherited, k->name_hash, k->trace_id, k->has_text);
        for (const struct ls_source_known *k = from->inherited; k; k = k->hh.next)
                know(&s->inherited, k->name_hash, k->trace_id, k->has_text);
}

static int has_own_name(const struct ls_source_entry *e)
{
        return e->name_len && *e->name == '=';
}

/* The chunk by its name, as another ring or the parent process has it. A second text under one name
 * is another chunk. 0 = it is not known. */
static uint32_t find_known(const struct ls_sources *s, const struct ls_source_entry *e)
{
        struct ls_source_known *k = has_own_name(e) ? find(s->known, e->name_hash) : NULL;

        if (!k && has_own_name(e) && !e->text_len)
                k = find(s->inherited, e->name_hash);
        if (!k || (e->text_len && k->has_text))
                return 0;
        k->has_text |= e->text_len != 0;
        return k->trace_id;
}

void ls_sources_done(struct ls_sources *s)
{
        forget_known(&s->inherited);
        forget_known(&s->known);
        ls_ids_free(s->ids, s->has, s->n_has, sizeof(*s->has));
        s->has = NULL;
        s->n_has = 0;
}

void ls_source_table_done(struct ls_sources *s, struct ls_source_table *t)
{
        for (uint32_t i = 0; i < t->n; i++) {
                if (t->entries[i].text)
                        s->text_bytes -= t->entries[i].received;        /* nothing has used it */
                free(t->entries[i].name);
                free(t->entries[i].text);
        }
        ls_ids_free(s->ids, t->entries, t->n, sizeof(*t->entries));
        t->entries = NULL;
        t->n = 0;
}

int ls_sources_define(struct ls_sources *s, struct ls_source_table *t,
                      const struct ls_rec_source *rec, const char *name)
{
        struct ls_source_entry *e;
        char *copy;

        if (ls_ids_reserve(s->ids, (void **)&t->entries, &t->n, sizeof(*t->entries),
                           rec->source_id) < 0)
                return -EINVAL;
        e = &t->entries[rec->source_id];
        if (e->name && e->name_len == rec->name_len && e->name_hash == rec->text_hash &&
            e->text_len == rec->text_len && !memcmp(e->name, name, rec->name_len))
                return 0;               /* sent again */
        copy = malloc(rec->name_len + 1u);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, name, rec->name_len);
        if (e->text)
                s->text_bytes -= e->received;
        free(e->name);
        free(e->text);
        memset(e, 0, sizeof(*e));
        e->name = copy;
        e->name_len = rec->name_len;
        e->name_hash = rec->text_hash;
        e->text_len = rec->text_len;
        return 0;
}

static void cut_text(struct ls_sources *s, struct ls_source_entry *e)
{
        s->text_bytes -= e->received;
        free(e->text);
        e->text = NULL;
        e->received = 0;
        e->cut = 1;
        s->text_cut++;
}

/* Whether this of a source (HAS_*) is in the trace already, from another ring. From now on it
 * is. */
static int is_written(struct ls_sources *s, uint32_t trace_id, uint8_t what)
{
        int is;

        if (ls_ids_reserve(s->ids, (void **)&s->has, &s->n_has, sizeof(*s->has), trace_id) < 0)
                return 0;
        is = s->has[trace_id] & what;
        s->has[trace_id] |= what;
        return is;
}

static void write_text(struct ls_sources *s, struct ls_source_entry *e)
{
        if (is_written(s, e->trace_id, HAS_TEXT)) {
                s->text_bytes -= e->received;
        } else {
                ls_trace_text(s->writer, e->trace_id, e->text, e->received);
                s->written_bytes += e->received;
        }
        free(e->text);
        e->text = NULL;
}

int ls_sources_text(struct ls_sources *s, struct ls_source_table *t, const struct ls_rec_text *rec,
                    const char *piece)
{
        struct ls_source_entry *e;
        char *text;

        if (!rec->source_id || rec->source_id >= t->n || !t->entries[rec->source_id].name)
                return -EINVAL;
        e = &t->entries[rec->source_id];
        if (e->complete || e->cut || s->no_source)
                return 0;
        if (rec->offset == 0 && e->received) {  /* sent again from the start */
                s->text_bytes -= e->received;
                e->received = 0;
        }
        if (rec->offset != e->received || rec->len > rec->total - rec->offset ||
            rec->total < rec->offset)
                return -EINVAL;
        if (rec->total > LS_TEXT_MAX || rec->len > LS_TEXT_ALL_MAX - s->text_bytes) {
                cut_text(s, e);
                return 0;
        }
        text = realloc(e->text, (size_t)e->received + rec->len + 1);
        if (!text)
                return -ENOMEM;
        memcpy(text + e->received, piece, rec->len);
        e->text = text;
        e->received += rec->len;
        s->text_bytes += rec->len;
        e->complete = e->received == rec->total;
        if (e->complete && e->trace_id)
                write_text(s, e);
        return 0;
}

void ls_sources_finish(struct ls_sources *s, struct ls_source_table *t)
{
        for (uint32_t i = 0; i < t->n; i++) {
                struct ls_source_entry *e = &t->entries[i];

                if (e->name && e->text_len && !e->complete && !e->cut && !s->no_source)
                        cut_text(s, e);
        }
}

/* The program may have changed its directory since: where it started comes first, then where it is
 * now. */
static void resolve_file(struct ls_sources *s, const struct ls_source_entry *e,
                         struct ls_source_def *def)
{
        char name[PATH_MAX], path[PATH_MAX], now[PATH_MAX];

        if (e->name_len < 2 || e->name_len > sizeof(name) || memchr(e->name, 0, e->name_len))
                return;
        memcpy(name, e->name + 1, e->name_len - 1u);
        name[e->name_len - 1u] = 0;
        if (ls_worker_source(s->worker, s->cwd, name, path, &def->size, &def->text_hash) < 0) {
                if (!s->pid || ls_proc_link(s->pid, "cwd", now, sizeof(now)) <= 0)
                        return;
                if (ls_worker_source(s->worker, now, name, path, &def->size, &def->text_hash) < 0)
                        return;
        }
        def->path = ls_trace_string(s->writer, path, strlen(path));
}

uint32_t ls_sources_trace_id(struct ls_sources *s, struct ls_source_table *t, uint32_t source_id)
{
        struct ls_source_entry *e = source_id < t->n ? &t->entries[source_id] : NULL;
        struct ls_source_def def = { 0 };
        int is_text;

        if (!e || !e->name)
                return 0;
        if (e->trace_id)
                return e->trace_id;
        e->trace_id = find_known(s, e);
        if (e->trace_id) {
                if (e->complete)
                        write_text(s, e);
                return e->trace_id;
        }
        is_text = !e->name_len || (*e->name != '@' && *e->name != '=');
        /* The name of a chunk without one is its text. */
        if (is_text && s->no_source)
                def.name = ls_trace_string(s->writer, "=[string]", 9);
        else
                def.name = ls_trace_string(s->writer, e->name, e->name_len);
        if (e->name_len && *e->name == '@') {
                resolve_file(s, e, &def);
        } else {
                def.text_hash = e->complete ? XXH64(e->text, e->received, 0) : 0;
                def.size = e->complete ? e->received : e->text_len;
        }
        e->trace_id = ls_trace_source(s->writer, &def);
        if (has_own_name(e))
                know(&s->known, e->name_hash, e->trace_id, e->text_len != 0);
        if (is_text && !s->no_source && !is_written(s, e->trace_id, HAS_NAME))
                s->written_bytes += e->name_len;
        if (e->complete && e->text)
                write_text(s, e);
        return e->trace_id;
}

int ls_sources_is_loaded(const struct ls_source_table *t, uint32_t source_id)
{
        return source_id < t->n && t->entries[source_id].name &&
               has_own_name(&t->entries[source_id]);
}
