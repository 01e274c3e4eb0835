/* Recordings that are kept for good: how often, and how much. See store.h. */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
        ino_t inode;
        uint64_t bytes;
};

struct files {
        struct file *v;
        size_t n, room;
};

static DIR *open_entries(int at, const char *name)
{
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

        if (fd >= 0 && !dir)
                close(fd);
        return dir;
}

static int add(struct files *f, const struct stat *st)
{
        if (f->n == f->room) {
                size_t room = f->room ? f->room * 2 : 256;
                struct file *v = realloc(f->v, room * sizeof(*v));

                if (!v)
                        return -ENOMEM;
                f->v = v;
                f->room = room;
        }
        f->v[f->n++] = (struct file){ st->st_ino, (uint64_t)st->st_size };
        return 0;
}

static int add_files(struct files *f, int at, const char *name)
{
        DIR *dir = open_entries(at, name);
        struct dirent *e;
        struct stat st;
        int error = 0;

        while (dir && !error && (e = readdir(dir)))
                if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISREG(st.st_mode))
                        error = add(f, &st);
        if (dir)
                closedir(dir);
        return error;
}

static int by_inode(const void *a, const void *b)
{
        const struct file *x = a, *y = b;

        return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Of a service or rule: its name, and two numbers behind it. */
static int is_of(const char *entry, const char *owner)
{
        const size_t n = strlen(owner);
        const char *rest = entry + n;

        if (strncmp(entry, owner, n) || *rest++ != '.')
                return 0;
        rest += strspn(rest, "0123456789");
        return *rest == '.' && !rest[1 + strspn(rest + 1, "0123456789")];
}

int ls_store_kept(const struct ls_store *s, const char *owner, const char *but, struct ls_kept *ret)
{
        DIR *dir = open_entries(s->fd, "kept");
        struct files files = { .n = 0 };
        struct dirent *e;
        int error = 0;

        memset(ret, 0, sizeof(*ret));
        while (dir && !error && (e = readdir(dir))) {
                if (*e->d_name == '.')
                        continue;
                error = add_files(&files, dirfd(dir), e->d_name);
                if (but && !strcmp(e->d_name, but))
                        continue;
                ret->times++;
                ret->of_owner += owner && is_of(e->d_name, owner);
        }
        if (dir)
                closedir(dir);
        if (files.n)
                qsort(files.v, files.n, sizeof(*files.v), by_inode);
        for (size_t i = 0; i < files.n; i++)
                if (!i || files.v[i].inode != files.v[i - 1].inode)
                        ret->bytes += files.v[i].bytes;
        free(files.v);
        return error;
}
