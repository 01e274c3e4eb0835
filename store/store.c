/* Opens the store, lists, commits and removes chunks: see store.h. Nothing in it is opened through
 * a symbolic link. */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "formats/wire/clock.h"

#define VERSION_TEXT "luasample store "
#define VERSION 1
#define SAME_MS 1000u                   /* chunks of one process that begin in the same second */
#define LOCK_LOOKS 60                   /* in 3 s */
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

uint64_t ls_store_now_ms(void)
{
        return ls_clock_ns(CLOCK_REALTIME) / 1000000;
}

/* Opens a directory below at, made when make is set. Returns the descriptor or -errno. */
static int open_dir(int at, const char *name, int make)
{
        int fd = openat(at, name, DIRECTORY), made;

        if (fd >= 0 || errno != ENOENT || !make)
                return fd >= 0 ? fd : -errno;
        made = mkdirat(at, name, 0700);
        if (made < 0 && errno != EEXIST)
                return -errno;
        if (made == 0)
                fsync(at);
        fd = openat(at, name, DIRECTORY);
        return fd >= 0 ? fd : -errno;
}

/* Each directory of the path that is not there. *ret_last: 0 or -errno of the last one. */
static int make_path(const char *path, int *ret_last)
{
        char *copy = strdup(path), *p = copy;
        int error = 0;

        while (copy && !error && p) {
                p = strchr(p + 1, '/');
                if (p)
                        *p = 0;
                *ret_last = mkdir(copy, 0700) < 0 ? -errno : 0;
                if (*ret_last && *ret_last != -EEXIST && *ret_last != -EROFS &&
                    *ret_last != -EACCES)
                        error = *ret_last;
                if (p)
                        *p = '/';
        }
        free(copy);
        return copy ? error : -ENOMEM;
}

static int is_empty(int fd)
{
        int copy = openat(fd, ".", DIRECTORY), n = 0;
        DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
        struct dirent *e;

        while (dir && (e = readdir(dir)))
                n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
                     strcmp(e->d_name, "lost+found") && strcmp(e->d_name, "lock");
        if (dir)
                closedir(dir);
        return dir && !n;
}

static int write_version(int dir)
{
        char text[64];
        int n = snprintf(text, sizeof(text), VERSION_TEXT "%d\n", VERSION), error = 0;
        int fd = openat(dir, "version.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                        0600);

        if (fd < 0)
                return -errno;
        if (write(fd, text, (size_t)n) != n || fsync(fd) < 0)
                error = errno ? -errno : -EIO;
        close(fd);
        if (!error && (renameat(dir, "version.new", dir, "version") < 0 || fsync(dir) < 0))
                error = -errno;
        return error;
}

/* Returns 0, or -errno after a line. */
static int check_version(const struct ls_store *s, enum ls_store_mode mode)
{
        char text[64] = "", *end;
        long version;
        int fd = openat(s->fd, "version", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), error;
        ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

        error = fd < 0 || n < 0 ? -errno : 0;
        if (fd >= 0)
                close(fd);
        if (fd < 0 && error == -ENOENT && mode == LS_STORE_WRITE && is_empty(s->fd)) {
                error = write_version(s->fd);
                if (error)
                        ls_error("%s: the store cannot be made: %s", s->path, strerror(-error));
                return error;
        }
        if (error && error != -ENOENT) {
                ls_error("%s/version: %s", s->path, strerror(-error));
                return error;
        }
        version = strncmp(text, VERSION_TEXT, strlen(VERSION_TEXT))
                          ? -1
                          : strtol(text + strlen(VERSION_TEXT), &end, 10);
        if (version < 1) {
                ls_error("%s: not a store of luasample; name another directory, or an empty one",
                         s->path);
                return -EPROTO;
        }
        if (version > VERSION) {
                ls_error("%s: a store of version %ld; this luasample reads version %d: use a newer "
                         "one",
                         s->path, version, VERSION);
                return -EPROTO;
        }
        return 0;
}

/* Locks the store. Processes that a killed daemon has begun hold its lock until they are gone,
 * too. */
static int lock_store(struct ls_store *s)
{
        const struct timespec moment = { 0, 50000000 };

        s->lock_fd = openat(s->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        for (int i = 0; s->lock_fd >= 0 && i < LOCK_LOOKS; i++) {
                if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
                        return 0;
                if (errno != EWOULDBLOCK || i == LOCK_LOOKS - 1)
                        break;
                nanosleep(&moment, NULL);
        }
        if (s->lock_fd >= 0 && errno == EWOULDBLOCK) {
                ls_error("%s: another daemon uses this store, or it is being pruned", s->path);
                return -EBUSY;
        }
        ls_error("%s/lock: %s", s->path, strerror(errno));
        return -errno;
}

static int open_parts(struct ls_store *s, enum ls_store_mode mode)
{
        int write = mode == LS_STORE_WRITE;

        s->services_fd = open_dir(s->fd, "services", write);
        if (s->services_fd >= 0 && write)
                s->incoming_fd = open_dir(s->fd, "incoming", 1);
        if (s->services_fd == -ENOENT && !write)
                return 0;               /* nothing was ever committed */
        if (s->services_fd >= 0 && (!write || s->incoming_fd >= 0))
                return 0;
        ls_error("%s: %s", s->path,
                 strerror(s->services_fd < 0 ? -s->services_fd : -s->incoming_fd));
        return s->services_fd < 0 ? s->services_fd : s->incoming_fd;
}

struct ls_store_apart ls_store_apart;

void ls_store_allow_files(void)
{
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files))
                return;
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
}

int ls_store_drop(void)
{
        int (*drop)(void) = ls_store_apart.drop;

        ls_store_apart.drop = NULL;
        return drop ? drop() : 0;
}

int ls_store_open(struct ls_store *s, const char *path, enum ls_store_mode mode)
{
        struct stat st;
        int made = 0, error = mode == LS_STORE_WRITE ? make_path(path, &made) : 0;

        *s = (struct ls_store){
                .fd = -1, .services_fd = -1, .incoming_fd = -1, .lock_fd = -1, .path = strdup(path)
        };
        if (!s->path)
                return -ENOMEM;
        s->fd = error ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->fd < 0) {
                error = error ? error : -errno;
                if (error == -ENOENT && mode == LS_STORE_WRITE)
                        ls_error("%s: the store cannot be made: %s", path,
                                 strerror(made ? -made : ENOENT));
                else if (error == -ENOENT)
                        ls_error("%s: there is no store; the daemon makes it (luasample help "
                                 "daemon), or name one with "
                                 "--store DIR",
                                 path);
                else
                        ls_error("%s: %s", path, strerror(-error));
        } else if (mode == LS_STORE_WRITE &&
                   (fstat(s->fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & S_IWOTH)) {
                ls_error("%s: the store must be yours, and not writable by others", path);
                error = -EPERM;
        }
        if (!error && mode == LS_STORE_WRITE)
                error = lock_store(s);
        if (!error)
                error = check_version(s, mode);
        if (!error)
                error = open_parts(s, mode);
        if (error)
                ls_store_close(s);
        return error;
}

void ls_store_close(struct ls_store *s)
{
        int *fds[] = { &s->services_fd, &s->incoming_fd, &s->fd, &s->lock_fd };

        for (unsigned i = 0; i < 4; i++) {
                if (*fds[i] >= 0)
                        close(*fds[i]);
                *fds[i] = -1;
        }
        free(s->path);
        s->path = NULL;
}

static int add_chunk(struct ls_chunks *list, const struct ls_chunk *c)
{
        if (list->n == list->room) {
                size_t room = list->room ? list->room * 2 : 64;
                struct ls_chunk *v = realloc(list->v, room * sizeof(*v));

                if (!v)
                        return -ENOMEM;
                list->v = v;
                list->room = room;
        }
        list->v[list->n++] = *c;
        return 0;
}

/* For each entry of a directory: fn returns 0 or -errno. */
static int each_entry(int at, const char *name, int (*fn)(void *ctx, int fd, const char *name),
                      void *ctx)
{
        int fd = openat(at, name, DIRECTORY), error = 0;
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *e;

        if (!dir) {
                error = -errno;
                if (fd >= 0)
                        close(fd);
                return error == -ENOENT || error == -ENOTDIR || error == -ELOOP ? 0 : error;
        }
        while (!error && (e = readdir(dir)))
                if (*e->d_name != '.')
                        error = fn(ctx, fd, e->d_name);
        closedir(dir);
        return error;
}

struct listing {
        struct ls_chunks *list;
        struct ls_chunk c;              /* its service and day are those that are being listed */
        uint64_t from_ms, to_ms;
};

static int list_chunk(void *ctx, int fd, const char *name)
{
        struct listing *l = ctx;
        struct ls_chunk c = l->c;
        struct stat st;

        if (ls_chunk_parse(l->c.day, name, &c)) {
                l->list->foreign++;
                return 0;
        }
        if (c.end_ms < l->from_ms || c.begin_ms >= l->to_ms)
                return 0;
        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;               /* pruned meanwhile */
        if (!S_ISREG(st.st_mode)) {
                l->list->foreign++;
                return 0;
        }
        c.size = (uint64_t)st.st_blocks * 512;
        return add_chunk(l->list, &c);
}

static int list_day(void *ctx, int fd, const char *name)
{
        struct listing *l = ctx;

        if (strlen(name) != LS_STORE_DAY - 1) {
                l->list->foreign++;
                return 0;
        }
        memcpy(l->c.day, name, LS_STORE_DAY);
        return each_entry(fd, name, list_chunk, l);
}

static int list_service(void *ctx, int fd, const char *name)
{
        struct listing *l = ctx;

        if (strlen(name) >= sizeof(l->c.service)) {
                l->list->foreign++;
                return 0;
        }
        strcpy(l->c.service, name);
        return each_entry(fd, name, list_day, l);
}

static int by_place(const void *a, const void *b)
{
        const struct ls_chunk *x = a, *y = b;
        int order = strcmp(x->service, y->service);

        if (order)
                return order;
        if (x->begin_ms != y->begin_ms)
                return x->begin_ms < y->begin_ms ? -1 : 1;
        return strcmp(x->name, y->name);
}

int ls_store_list(const struct ls_store *s, const char *service, uint64_t from_ms, uint64_t to_ms,
                  struct ls_chunks *ret)
{
        struct listing l = { .list = ret, .from_ms = from_ms, .to_ms = to_ms };
        int error = 0;

        memset(ret, 0, sizeof(*ret));
        if (s->services_fd >= 0)
                error = service ? list_service(&l, s->services_fd, service) :
                                  each_entry(s->services_fd, ".", list_service, &l);
        if (error)
                ls_chunks_done(ret);
        else if (ret->n)
                qsort(ret->v, ret->n, sizeof(*ret->v), by_place);
        return error;
}

void ls_chunks_done(struct ls_chunks *c)
{
        free(c->v);
        memset(c, 0, sizeof(*c));
}

static int day_fd(const struct ls_store *s, const struct ls_chunk *c, int make)
{
        int service = open_dir(s->services_fd, c->service, make), day;

        if (service < 0)
                return service;
        day = open_dir(service, c->day, make);
        close(service);
        return day;
}

int ls_store_open_chunk(const struct ls_store *s, const struct ls_chunk *c)
{
        int day = day_fd(s, c, 0), fd, error;

        if (day < 0)
                return day;
        fd = openat(day, c->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        error = fd < 0 ? -errno : fd;
        close(day);
        return error;
}

/* kept/NAME. Returns the descriptor or -errno. */
static int open_kept(const struct ls_store *s, const char *name)
{
        int kept = open_dir(s->fd, "kept", 1), to;

        if (kept < 0)
                return kept;
        to = open_dir(kept, name, 1);
        close(kept);
        return to;
}

int ls_store_keep_file(const struct ls_store *s, const char *name, const char *file)
{
        int to = open_kept(s, name), fd;

        if (to < 0)
                return to;
        fd = openat(to, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                fd = -errno;
        close(to);
        return fd;
}

int ls_store_keep(const struct ls_store *s, const struct ls_chunk *c, const char *name)
{
        int day = day_fd(s, c, 0), to = open_kept(s, name), error = 0;

        if (day < 0 || to < 0)
                error = day < 0 ? day : to;
        else if (linkat(day, c->name, to, c->name, 0) < 0)
                error = -errno;
        if (to >= 0)
                close(to);
        if (day >= 0)
                close(day);
        return error;
}

int ls_store_remove(const struct ls_store *s, const struct ls_chunk *c)
{
        int day = day_fd(s, c, 0), service, error;

        if (day < 0)
                return day;
        error = unlinkat(day, c->name, 0) < 0 ? -errno : 0;
        close(day);
        service = open_dir(s->services_fd, c->service, 0);
        if (service >= 0) {
                unlinkat(service, c->day, AT_REMOVEDIR);        /* when it was the last */
                close(service);
        }
        return error;
}

/* The file is on the disk before it has its name, the name before we say so. */
static int sync_file(int from_fd, const char *name)
{
        int fd = openat(from_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), error = 0;
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || fsync(fd) < 0)
                error = -errno;
        else if (!S_ISREG(st.st_mode))
                error = -EINVAL;
        close(fd);
        return error;
}

int ls_store_commit(const struct ls_store *s, int from_fd, const char *name, struct ls_chunk *c)
{
        int error = sync_file(from_fd, name), day = -1;

        if (error)
                return error;
        ls_chunk_name(c);
        day = day_fd(s, c, 1);
        if (day < 0)
                return day;
        error = -EEXIST;
        for (unsigned i = 0; error == -EEXIST && i < SAME_MS; i++) {
                error = renameat2(from_fd, name, day, c->name, RENAME_NOREPLACE) == 0 ? 0 : -errno;
                if (error == -EEXIST) {         /* one of the same ms is there: the name tells them
                                                 * apart */
                        c->end_ms++;
                        ls_chunk_name(c);
                }
        }
        if (!error && fsync(day) < 0)
                error = -errno;
        close(day);
        return error;
}
