/* The text of a source, as lines, from wherever it can be had. Used by report/view/annotate.c. */
#include "report/model/source.h"
#include "cli/keeper.h"
#include "formats/label.h"
#include "formats/wire/open_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SOURCE (256u << 20)         /* bytes; nobody writes more into one Lua file */

/* Where rights were given up: what root alone may read comes from who has kept them, when it is
 * what the trace says that it is. */
static int open_file(const struct ls_source *s, const char *path, struct stat *ret_st)
{
        int kept = -1, fd;

        if (s->text_hash && ls_keeper_there())
                kept = ls_keeper_text(path, s->size, s->text_hash);
        if (kept >= 0 && fstat(kept, ret_st) == 0)
                return kept;
        fd = ls_open_regular(path, ret_st);
        return fd == -EACCES && kept == -ESTALE ? -ESTALE : fd;
}

/* Reads a whole regular file. A path from a trace may name anything: devices and pipes are not
 * opened to be read. */
static int read_file(const struct ls_source *s, const char *path, char **ret_bytes,
                     size_t *ret_size)
{
        char *bytes = NULL;
        struct stat st;
        size_t size = 0;
        int fd = open_file(s, path, &st), r = 0;

        if (fd < 0)
                return fd;
        if ((uint64_t)st.st_size > MAX_SOURCE)
                r = -EFBIG;
        if (!r) {
                bytes = malloc((size_t)st.st_size + 1);
                r = bytes ? 0 : -ENOMEM;
        }
        while (!r && size < (size_t)st.st_size) {
                ssize_t n = read(fd, bytes + size, (size_t)st.st_size - size);

                if (n < 0 && errno != EINTR)
                        r = -errno;
                else if (n == 0)
                        break;
                else if (n > 0)
                        size += (size_t)n;
        }
        close(fd);
        if (r) {
                free(bytes);
                return r;
        }
        bytes[size] = '\0';
        *ret_bytes = bytes;
        *ret_size = size;
        return 0;
}

/* A path with a zero inside names another file than it seems to. */
static int is_path(struct ls_str s)
{
        return s.len && !memchr(s.s, '\0', s.len);
}

static int try_path(const struct ls_source *s, struct ls_source_text *t, char *path)
{
        int r;

        if (!path)
                return -ENOMEM;
        free(t->path);
        t->path = path;
        r = read_file(s, path, &t->bytes, &t->size);
        if (r < 0 && r != -ENOMEM) {
                t->error = -r;
                return 0;
        }
        return r;
}

/* dir/name, then dir/last part of the name: sources are often moved as a flat heap. */
static int try_dir(const struct ls_source *s, struct ls_source_text *t, const char *dir,
                   struct ls_str name)
{
        const char *slash = strrchr(name.s, '/');
        char *path = NULL;
        int r;

        if (asprintf(&path, "%s/%s", dir, name.s) < 0)
                return -ENOMEM;
        r = try_path(s, t, path);
        if (r || t->bytes || !slash)
                return r;
        if (asprintf(&path, "%s/%s", dir, slash + 1) < 0)
                return -ENOMEM;
        return try_path(s, t, path);
}

static int find_text(const struct ls_profile *p, const struct ls_source *s,
                     const struct ls_report_options *o, struct ls_source_text *t)
{
        struct ls_str name = { "", 0 };
        int r = 0;

        (void)p;
        if (s->name.len > 1 && s->name.s[0] == '@')
                name = (struct ls_str){ s->name.s + 1, s->name.len - 1 };
        for (unsigned i = 0; !r && !t->bytes && i < o->n_source_dirs && is_path(name); i++)
                r = try_dir(s, t, o->source_dir[i], name);
        if (!r && !t->bytes && is_path(s->path))
                r = try_path(s, t, strdup(s->path.s));
        if (!r && !t->bytes && is_path(name) && !s->path.len)
                r = try_path(s, t, strdup(name.s));
        return r;
}

static int same_text(const struct ls_source *s, const struct ls_source_text *t)
{
        return s->text_hash && s->size == t->size && XXH64(t->bytes, t->size, 0) == s->text_hash;
}

static int split_lines(struct ls_source_text *t)
{
        uint32_t n = 0;

        for (size_t i = 0; i < t->size; i++)
                n += t->bytes[i] == '\n';
        t->lines = calloc((size_t)n + 1, sizeof(*t->lines));
        if (!t->lines)
                return -ENOMEM;
        for (size_t at = 0; at < t->size;) {
                const char *end = memchr(t->bytes + at, '\n', t->size - at);
                size_t len = end ? (size_t)(end - t->bytes) - at : t->size - at, shown = len;

                if (shown && t->bytes[at + shown - 1] == '\r')
                        shown--;
                t->lines[t->n_lines++] = (struct ls_str){ t->bytes + at, (uint32_t)shown };
                at += len + 1;
        }
        return 0;
}

static int use_text_of_trace(const struct ls_source *s, struct ls_source_text *t)
{
        char *bytes = malloc((size_t)s->text.len + 1);

        if (!bytes)
                return -ENOMEM;
        memcpy(bytes, s->text.s, s->text.len);
        bytes[s->text.len] = '\0';
        free(t->bytes);
        free(t->path);
        t->path = NULL;
        t->bytes = bytes;
        t->size = s->text.len;
        return 0;
}

int ls_source_read(const struct ls_profile *p, uint32_t source, const struct ls_report_options *o,
                   struct ls_source_text *ret)
{
        const struct ls_source *s = &p->sources[source];
        int r;

        memset(ret, 0, sizeof(*ret));
        r = find_text(p, s, o, ret);
        if (!r && s->text.len && (!ret->bytes || !same_text(s, ret)))
                r = use_text_of_trace(s, ret);
        else if (!r && ret->bytes && !same_text(s, ret))
                ret->problem = s->text_hash ? LS_SOURCE_CHANGED : LS_SOURCE_UNKNOWN;
        if (!r && !ret->bytes)
                ret->problem = !ret->path            ? LS_SOURCE_NOT_A_FILE :
                               ret->error == ESTALE ? LS_SOURCE_WITHHELD :
                                                      LS_SOURCE_UNREADABLE;
        else if (!r && ret->size && ret->bytes[0] == '\033')
                ret->problem = LS_SOURCE_BYTECODE;
        else if (!r)
                r = split_lines(ret);
        if (r)
                ls_source_done(ret);
        return r;
}

const char *ls_source_problem_text(enum ls_source_problem problem)
{
        static const char *const texts[] = {
                [LS_SOURCE_OK] = "",
                [LS_SOURCE_CHANGED] =
                        "[Warning: the file has changed since it was recorded; lines may be off]",
                [LS_SOURCE_UNKNOWN] = ("[Warning: the trace does not tell whether this is the file "
                                       "that was recorded]"),
                [LS_SOURCE_WITHHELD] =
                        ("[Warning: the file has changed since it was recorded, and root alone may "
                         "read it: its text is not shown]"),
                [LS_SOURCE_NOT_A_FILE] = "[Cannot annotate non-file]",
                [LS_SOURCE_BYTECODE] = "[Cannot annotate bytecode file]",
                [LS_SOURCE_UNREADABLE] = "",
        };

        return texts[problem];
}

void ls_source_done(struct ls_source_text *t)
{
        free(t->path);
        free(t->bytes);
        free(t->lines);
        memset(t, 0, sizeof(*t));
}
