/* Sources of the recorded program: see sources.h. */
#include "record/sources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>


#define FILE_MAX (64 << 20)             /* a larger one is no source that somebody annotates; bounds our time */
#define FILES_MAX 65536                 /* whose hash is remembered */

#define HAS_NAME 1                      /* the name of a chunk without one, which is its text */
#define HAS_TEXT 2

struct ls_file_hash {
        UT_hash_handle hh;
        struct stat st;                 /* when it was read */
        uint64_t size, hash;
        int failed;
        char path[];
};

void ls_sources_init(struct ls_sources *s, struct ls_trace_writer *w, struct ls_ids *ids, const char *cwd, int pid, int no_source)
{
        memset(s, 0, sizeof(*s));
        s->writer = w;
        s->ids = ids;
        s->cwd = cwd;
        s->pid = pid;
        s->no_source = no_source;
        ls_rights_read(&s->rights, pid);
}

/* The agent sends the text of a chunk like "=init" once a process: other threads and the watcher, who may come first, name
 * the chunk without it, and a forked child has it no more. */
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

static void know(struct ls_source_known **table, uint64_t name_hash, uint32_t trace_id, int has_text)
{
        struct ls_source_known *k;

        if (find(*table, name_hash) || HASH_COUNT(*table) >= FILES_MAX || !(k = calloc(1, sizeof(*k))))
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

/* The chunk by its name, as another ring or the parent process has it. A second text under one name is another chunk. 0 =
 * it is not known. */
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
        struct ls_file_hash *f, *next;

        forget_known(&s->inherited);
        forget_known(&s->known);

        HASH_ITER(hh, s->files, f, next) {
                HASH_DEL(s->files, f);
                free(f);
        }
        ls_ids_free(s->ids, s->has, s->n_has, sizeof(*s->has));
        s->has = NULL;
        s->n_has = s->n_files = 0;
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

int ls_sources_define(struct ls_sources *s, struct ls_source_table *t, const struct ls_rec_source *rec, const char *name)
{
        struct ls_source_entry *e;
        char *copy;

        if (ls_ids_reserve(s->ids, (void **)&t->entries, &t->n, sizeof(*t->entries), rec->source_id) < 0)
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

/* Whether this of a source (HAS_*) is in the trace already, from another ring. From now on it is. */
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

int ls_sources_text(struct ls_sources *s, struct ls_source_table *t, const struct ls_rec_text *rec, const char *piece)
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
        if (rec->offset != e->received || rec->len > rec->total - rec->offset || rec->total < rec->offset)
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

/* Size and hash of a file's bytes. */
static int hash_bytes(int fd, uint64_t *ret_size, uint64_t *ret_hash)
{
        XXH64_state_t *state = XXH64_createState();
        char buf[16384];
        ssize_t n = -1;
        uint64_t size = 0;

        if (!state)
                return -ENOMEM;
        XXH64_reset(state, 0);
        while (size <= FILE_MAX && (n = read(fd, buf, sizeof(buf))) > 0) {
                XXH64_update(state, buf, (size_t)n);
                size += (uint64_t)n;
        }
        *ret_size = size;
        *ret_hash = XXH64_digest(state);
        XXH64_freeState(state);
        return n == 0 ? 0 : -EIO;
}

static int is_same_file(const struct stat *a, const struct stat *b)
{
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
               a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void remember_hash(struct ls_sources *s, struct ls_file_hash *f, const char *path, const struct stat *st,
                          const struct ls_source_def *def)
{
        size_t len = strlen(path);

        if (!f && s->n_files < FILES_MAX && (f = calloc(1, sizeof(*f) + len + 1))) {
                memcpy(f->path, path, len);
                HASH_ADD(hh, s->files, path[0], len, f);
                if (f->failed) {
                        free(f);
                        return;
                }
                s->n_files++;
        }
        if (f) {
                f->st = *st;
                f->size = def->size;
                f->hash = def->text_hash;
        }
}

/* A file that has not changed since we read it is not read again. */
static int hash_file(struct ls_sources *s, int fd, const char *path, const struct stat *st, struct ls_source_def *def)
{
        struct ls_file_hash *f;
        int err;

        HASH_FIND(hh, s->files, path, strlen(path), f);
        if (f && is_same_file(st, &f->st)) {
                def->size = f->size;
                def->text_hash = f->hash;
                return 0;
        }
        if (st->st_size > FILE_MAX)
                return -EFBIG;
        err = hash_bytes(fd, &def->size, &def->text_hash);
        if (err < 0)
                def->size = def->text_hash = 0;
        else
                remember_hash(s, f, path, st, def);
        return err;
}

/* Makes path absolute, without links, and hashes the file. */
static int try_file(struct ls_sources *s, const char *dir, const char *name, char path[PATH_MAX], struct ls_source_def *def)
{
        char joined[PATH_MAX];
        struct stat st;
        int fd, err;
        int n = *name == '/' ? snprintf(joined, sizeof(joined), "%s", name)
                             : snprintf(joined, sizeof(joined), "%s/%s", dir, name);

        if (n < 0 || (size_t)n >= sizeof(joined))
                return -ENOENT;
        fd = ls_rights_open(&s->rights, joined, &st, path);
        if (fd < 0)
                return fd;
        err = hash_file(s, fd, path, &st, def);
        close(fd);
        return err;
}

/* The program may have changed its directory since: where it started comes first, then where it is now. */
static void resolve_file(struct ls_sources *s, const struct ls_source_entry *e, struct ls_source_def *def)
{
        char name[PATH_MAX], path[PATH_MAX], link[64], now[PATH_MAX];
        ssize_t n;

        if (e->name_len < 2 || e->name_len > sizeof(name) || memchr(e->name, 0, e->name_len))
                return;
        memcpy(name, e->name + 1, e->name_len - 1u);
        name[e->name_len - 1u] = 0;
        ls_rights_read(&s->rights, s->pid);
        if (try_file(s, s->cwd, name, path, def) < 0) {
                snprintf(link, sizeof(link), "/proc/%d/cwd", s->pid);
                if (!s->pid || (n = readlink(link, now, sizeof(now) - 1)) <= 0)
                        return;
                now[n] = 0;
                if (try_file(s, now, name, path, def) < 0)
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
        return source_id < t->n && t->entries[source_id].name && has_own_name(&t->entries[source_id]);
}
