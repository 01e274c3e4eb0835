/* What a worker does: see serve.h and worker.h. What it opens is named by a target, and what it
 * reads is made by one: this process has no more rights than that target (confine.h), and may be
 * lost. */
#include "record/worker/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

#include "formats/wire/open_file.h"
#include "libsample/inject/inspect.h"
#include "record/watch/core.h"
#include "record/worker/symbols.h"

#define SOURCE_MAX                                                                                 \
        (64 << 20) /* a larger one is no source that somebody annotates; bounds our time */
#define SOURCES_MAX 65536               /* whose hash is remembered */

struct file {                           /* an object file; opened when it is asked about first */
        char *path;
        int pid;
        uint8_t id[LS_WORKER_ID];
        uint32_t id_len;
        struct ls_cfi *cfi;
        int asked;                      /* cfi is what there is */
};

struct source {
        UT_hash_handle hh;
        struct stat st;                 /* when it was read */
        uint64_t size, hash;
        int failed;
        char path[];
};

static struct {
        struct file files[LS_WORKER_FILES];     /* number - 1 */
        uint32_t n;
        struct ls_symbols *symbols;     /* of the file with this number: one at a time is in
                                         * memory */
        uint32_t symbols_of;
        struct source *sources;
        unsigned n_sources;
        int has_root;
        const int *given;               /* the descriptors that came with the request; -1 = none */
} w;

void ls_worker_has_root(void)
{
        w.has_root = 1;
}

static size_t reply_size(const struct ls_worker_reply *r)
{
        return offsetof(struct ls_worker_reply, text) +
               (r->row.exprs ? ls_cfi_exprs_size(r->exprs.n_ops) : r->len);
}

static void set_text(struct ls_worker_reply *r, const char *text)
{
        size_t n = strlen(text);

        r->len = (uint32_t)(n < sizeof(r->text) ? n : sizeof(r->text) - 1);
        memcpy(r->text, text, r->len);
}

/* Calls fn with the file as the process sees it, then as we do, until that returns 0. */
static int by_view(const char *path, int pid, int (*fn)(void *ctx, const char *path), void *ctx)
{
        char its[PATH_MAX + 32];

        snprintf(its, sizeof(its), "/proc/%d/root%s", pid, path);
        if (pid && !w.has_root && *path == '/' && fn(ctx, its) == 0)
                return 0;
        return fn(ctx, path);
}

static int answer_open(const struct ls_worker_request *q, const char *path, const char *unused,
                       struct ls_worker_reply *r)
{
        struct file *f = &w.files[w.n];

        (void)unused;
        for (uint32_t i = 0; i < w.n && q->id_len <= sizeof(q->id); i++)
                if (w.files[i].pid == q->pid && w.files[i].id_len == q->id_len &&
                    !strcmp(w.files[i].path, path) && !memcmp(w.files[i].id, q->id, q->id_len)) {
                        r->file = i + 1;
                        return 0;
                }
        if (w.n == LS_WORKER_FILES || q->id_len > sizeof(q->id))
                return -ENFILE;
        *f = (struct file){ .path = strdup(path), .pid = q->pid, .id_len = q->id_len };
        if (!f->path)
                return -ENOMEM;
        memcpy(f->id, q->id, q->id_len);
        r->file = ++w.n;
        return 0;
}

static int open_cfi(void *ctx, const char *path)
{
        struct file *f = ctx;

        return ls_cfi_open(path, f->id, f->id_len, &f->cfi);
}

static int answer_row(const struct ls_worker_request *q, const char *a, const char *b,
                      struct ls_worker_reply *r)
{
        struct file *f = q->file && q->file <= w.n ? &w.files[q->file - 1] : NULL;
        int err;

        (void)a, (void)b;
        if (!f)
                return -EBADF;
        if (!f->asked && ls_symbols_is_vdso(f->path))
                ls_cfi_open(NULL, f->id, f->id_len, &f->cfi);
        else if (!f->asked)
                by_view(f->path, f->pid, open_cfi, f);
        f->asked = 1;
        err = f->cfi ? ls_cfi_row(f->cfi, q->offset, &r->row, &r->function) : -ENOENT;
        if (!err && r->row.exprs) {
                memcpy(&r->exprs, r->row.exprs, ls_cfi_exprs_size(r->row.exprs->n_ops));
                free(r->row.exprs);
                r->row.exprs =
                        (struct ls_cfi_exprs *)(uintptr_t)1; /* an address says nothing there */
        }
        return err;
}

static int open_symbols(void *ctx, const char *path)
{
        const struct file *f = ctx;

        w.symbols = ls_symbols_open(path, f->id, f->id_len);
        return w.symbols ? 0 : -ENOENT;
}

static int answer_symbol(const struct ls_worker_request *q, const char *a, const char *b,
                         struct ls_worker_reply *r)
{
        struct file *f = q->file && q->file <= w.n ? &w.files[q->file - 1] : NULL;
        char name[LS_WORKER_NAME];

        (void)a, (void)b;
        if (!f)
                return -EBADF;
        if (w.symbols_of != q->file) {
                ls_symbols_close(w.symbols);
                w.symbols = NULL;
                w.symbols_of = q->file;
                by_view(f->path, f->pid, open_symbols, f);
        }
        if (!w.symbols || ls_symbols_find(w.symbols, q->offset, name, sizeof(name)) < 0)
                return -ENOENT;
        set_text(r, name);
        return 0;
}

static int read_build_id(void *ctx, const char *path)
{
        struct ls_worker_reply *r = ctx;

        r->id_len = (uint32_t)ls_symbols_build_id(path, r->id, sizeof(r->id));
        return r->id_len ? 0 : -ENOENT;
}

static int answer_build_id(const struct ls_worker_request *q, const char *path, const char *unused,
                           struct ls_worker_reply *r)
{
        (void)unused;
        return by_view(path, q->pid, read_build_id, r);
}

static int look_at(void *ctx, const char *path)
{
        return stat(path, ctx);
}

static int answer_same(const struct ls_worker_request *q, const char *a, const char *b,
                       struct ls_worker_reply *r)
{
        struct stat x, y;

        r->size = by_view(a, q->pid, look_at, &x) == 0 && by_view(b, q->pid, look_at, &y) == 0 &&
                  x.st_dev == y.st_dev && x.st_ino == y.st_ino;
        return 0;
}

static int answer_has_luajit(const struct ls_worker_request *q, const char *path,
                             const char *search, struct ls_worker_reply *r)
{
        static struct ls_image image;   /* 8 KiB */

        (void)q;
        ls_image_inspect(path, search, LS_INSPECT_SHELL | LS_INSPECT_TEXT, &image);
        r->size = (uint64_t)ls_image_has_luajit(&image);
        return 0;
}

/* Size and hash of a regular file's bytes. */
static int read_source(const char *path, struct stat *ret_st, uint64_t *ret_size,
                       uint64_t *ret_hash)
{
        XXH64_state_t *state = NULL;
        struct stat st = { 0 };
        char buf[16384];
        ssize_t n = -1;
        uint64_t size = 0;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= SOURCE_MAX &&
            (state = XXH64_createState())) {
                XXH64_reset(state, 0);
                while ((n = read(fd, buf, sizeof(buf))) > 0 && size <= SOURCE_MAX) {
                        XXH64_update(state, buf, (size_t)n);
                        size += (uint64_t)n;
                }
                *ret_size = size;
                *ret_hash = XXH64_digest(state);
        }
        XXH64_freeState(state);
        close(fd);
        *ret_st = st;
        return n == 0 ? 0 : -EIO;
}

static int is_same_file(const struct stat *a, const struct stat *b)
{
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
               a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void remember(struct source *s, const char *path, const struct stat *st, uint64_t size,
                     uint64_t hash)
{
        size_t len = strlen(path);

        if (!s && w.n_sources < SOURCES_MAX && (s = calloc(1, sizeof(*s) + len + 1))) {
                memcpy(s->path, path, len);
                HASH_ADD(hh, w.sources, path[0], len, s);
                if (s->failed) {
                        free(s);
                        return;
                }
                w.n_sources++;
        }
        if (s) {
                s->st = *st;
                s->size = size;
                s->hash = hash;
        }
}

/* Each thread names the same files: one that has not changed since we read it is not read again. */
static int hash_source(const char *path, uint64_t *ret_size, uint64_t *ret_hash)
{
        struct source *s;
        struct stat st;
        int err;

        HASH_FIND(hh, w.sources, path, strlen(path), s);
        if (s && stat(path, &st) == 0 && is_same_file(&st, &s->st)) {
                *ret_size = s->size;
                *ret_hash = s->hash;
                return 0;
        }
        err = read_source(path, &st, ret_size, ret_hash);
        if (!err)
                remember(s, path, &st, *ret_size, *ret_hash);
        return err;
}

static int answer_source(const struct ls_worker_request *q, const char *dir, const char *name,
                         struct ls_worker_reply *r)
{
        char joined[2 * PATH_MAX], path[PATH_MAX];

        (void)q;
        snprintf(joined, sizeof(joined), "%s%s%s", *name == '/' ? "" : dir, *name == '/' ? "" : "/",
                 name);
        if (strlen(joined) >= PATH_MAX || !realpath(joined, path))
                return -ENOENT;
        set_text(r, path);
        return hash_source(path, &r->size, &r->hash);
}

static int answer_loaded(const struct ls_worker_request *q, const char *a, const char *b,
                         struct ls_worker_reply *r)
{
        (void)a, (void)b;
        r->len = sizeof(r->object);
        return w.given[0] < 0 ? -EBADF : ls_object_of_memory(w.given[0], q->offset, &r->object);
}

/* Opened here: with the rights of this process, not of who has named it. */
static int answer_image(const struct ls_worker_request *q, const char *a, const char *b,
                        struct ls_worker_reply *r)
{
        char path[LS_FD_PATH];
        struct stat st;
        int fd, err;

        (void)q, (void)a, (void)b;
        if (w.given[0] < 0)
                return -EBADF;
        ls_fd_path(path, w.given[0]);
        fd = ls_open_regular(path, &st);
        if (fd < 0)
                return fd;
        r->len = sizeof(r->object);
        err = ls_object_of_file(fd, &r->object);
        close(fd);
        return err;
}

static int copy(int from, int to)
{
        char buf[16384];
        off_t at = 0;
        ssize_t n;

        while ((n = pread(from, buf, sizeof(buf), at)) > 0) {
                if (write(to, buf, (size_t)n) != n)
                        return -EIO;
                at += n;
        }
        return n < 0 ? -errno : 0;
}

static int answer_core(const struct ls_worker_request *q, const char *a, const char *b,
                       struct ls_worker_reply *r)
{
        static struct ls_core core;     /* 16 KiB */
        int fd = dup(w.given[0]), err;

        (void)q, (void)a, (void)b;
        if (fd < 0)
                return -EBADF;
        err = ls_core_open_fd(fd, &core);
        if (err)
                return err;
        r->len = sizeof(r->core);
        r->core = (struct ls_worker_core){ .pid = (int32_t)core.pid,
                                           .threads = core.n_threads + core.more_threads };
        snprintf(r->core.name, sizeof(r->core.name), "%s", core.name);
        err = copy(core.maps_fd, w.given[1]);
        ls_core_close(&core);
        return err;
}

static int (*const answers[LS_WORKER_NOPS])(const struct ls_worker_request *q, const char *a,
                                            const char *b, struct ls_worker_reply *r) = {
        [LS_WORKER_OPEN] = answer_open,     [LS_WORKER_ROW] = answer_row,
        [LS_WORKER_SYMBOL] = answer_symbol, [LS_WORKER_BUILD_ID] = answer_build_id,
        [LS_WORKER_SAME] = answer_same,     [LS_WORKER_HAS_LUAJIT] = answer_has_luajit,
        [LS_WORKER_SOURCE] = answer_source, [LS_WORKER_LOADED] = answer_loaded,
        [LS_WORKER_IMAGE] = answer_image,   [LS_WORKER_CORE] = answer_core,
};

size_t ls_worker_answer(const struct ls_worker_request *q, size_t size, const int *fds,
                        struct ls_worker_reply *ret)
{
        static char text[2][PATH_MAX];
        size_t head = offsetof(struct ls_worker_request, text);

        memset(ret, 0, offsetof(struct ls_worker_reply, text));
        ret->error = -EINVAL;
        if (size < head || q->op >= LS_WORKER_NOPS || q->len[0] >= PATH_MAX ||
            q->len[1] >= PATH_MAX || q->len[0] + q->len[1] != size - head)
                return reply_size(ret);
        for (unsigned i = 0; i < 2; i++) {
                memcpy(text[i], q->text + (i ? q->len[0] : 0), q->len[i]);
                text[i][q->len[i]] = 0;
        }
        w.given = fds;
        ret->error = answers[q->op](q, text[0], text[1], ret);
        if (ret->error) {
                ret->len = 0;
                ret->row.exprs = NULL;
        }
        return reply_size(ret);
}
