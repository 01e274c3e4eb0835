/* How an executable is found and what the kernel and the loader will make of it. See inspect.h.
 * Reads with pread only: a file that shrinks meanwhile gives an error, not SIGBUS. */

#include "libsample/inject/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "formats/wire/open_file.h"
#include "formats/wire/shm.h"
#include "libsample/inject/elf_file.h"
#include "libsample/old_libc.h"

#define MAX_SCRIPTS 6           /* the kernel follows 5; one more for env */
#define LINE_MAX_LEN 256        /* what the kernel reads of a "#!" line */
#define DEFAULT_PATH "/bin:/usr/bin"

/* May this process execute path? As the kernel decides, with effective ids. */
static int check_executable(const char *path)
{
        struct stat st;

        if (ls_stat(AT_FDCWD, path, &st) < 0)
                return errno == ENOTDIR ? -ENOENT : -errno;
        if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
                return -EACCES;
        return 0;
}

static int join(char *to, size_t size, const char *dir, size_t dir_len, const char *name)
{
        size_t name_len = strlen(name);

        if (dir_len + 1 + name_len + 1 > size)
                return -ENAMETOOLONG;
        memcpy(to, dir, dir_len);
        if (dir_len)
                to[dir_len++] = '/';
        memcpy(to + dir_len, name, name_len + 1);
        return 0;
}

int ls_image_find(const char *name, const char *search_path, char *ret_path, size_t size)
{
        const char *dir = search_path ? search_path : DEFAULT_PATH;
        int denied = 0, saved = errno, r;

        ret_path[0] = '\0';
        if (!*name)
                return -ENOENT;
        if (strchr(name, '/')) {
                r = join(ret_path, size, "", 0, name);
                if (r == 0)
                        r = check_executable(ret_path);
                errno = saved;
                return r == 0 || r == -EACCES ? r : -ENOENT;
        }
        for (;;) {
                const char *end = strchrnul(dir, ':');

                if (join(ret_path, size, dir, (size_t)(end - dir), name) == 0) {
                        r = check_executable(ret_path);
                        if (r == 0) {
                                errno = saved;
                                return 0;
                        }
                        denied |= r == -EACCES;
                }
                if (!*end)
                        break;
                dir = end + 1;
        }
        join(ret_path, size, "", 0, name);
        errno = saved;
        return denied ? -EACCES : -ENOENT;
}

/* Would exec change the ids, so that the loader drops LD_PRELOAD? */
static int changes_ids(int fd, const struct stat *st)
{
        if ((st->st_mode & S_ISUID) && st->st_uid != getuid())
                return 1;
        if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st->st_gid != getgid())
                return 1;
        return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static enum ls_image_kind kind_of_elf(int fd, const struct stat *st, unsigned flags,
                                      struct ls_image *image)
{
        struct ls_elf_facts facts;
        int r = ls_elf_inspect(fd, (uint64_t)st->st_size, &facts);

        image->exports_lua_newstate = facts.exports_lua_newstate;
        image->has_profiler = facts.exports_profiler;
        image->needs_luajit = facts.needs_luajit;
        if ((flags & LS_INSPECT_TEXT) && !facts.exports_lua_newstate && !facts.needs_luajit)
                /* luasample itself has the words that it looks for. */
                image->contains_luajit =
                        (uint8_t)(ls_elf_contains(fd, (uint64_t)st->st_size, "LuaJIT 2.") &&
                                  !ls_elf_contains(fd, (uint64_t)st->st_size, LS_ENV_AGENT));
        if (r < 0)
                return LS_IMAGE_NOT_ELF;
        if (facts.other_arch)
                return LS_IMAGE_OTHER_ARCH;
        if (facts.bits32)
                return LS_IMAGE_BITS32;
        if (!facts.interpreter[0])
                return LS_IMAGE_STATIC;
        if (strstr(facts.interpreter, "ld-musl"))
                return LS_IMAGE_MUSL;
        if (!strstr(facts.interpreter, "ld-linux-x86-64"))
                return LS_IMAGE_OTHER_LIBC;
        if (facts.sanitizer)
                return LS_IMAGE_ASAN;
        if (changes_ids(fd, st))
                return LS_IMAGE_SETUID;
        return LS_IMAGE_OK;
}

/* Cuts the next word out of a "#!" line or env's argument: *line moves behind it. NULL at the
 * end. */
static char *next_word(char **line)
{
        char *word = *line + strspn(*line, " \t"), *end = word + strcspn(word, " \t");

        if (!*word)
                return NULL;
        *line = *end ? end + 1 : end;
        *end = '\0';
        return word;
}

/* The program that `env ARGUMENT` runs, NULL when that cannot be told. Options of env without an
 * argument and settings of variables are skipped; -S splits, without it the whole argument is one
 * word. */
static char *env_program(char *argument)
{
        char *word;

        argument += strspn(argument, " \t");
        if (strncmp(argument, "-S", 2) == 0)
                argument += 2;
        else if (strncmp(argument, "--split-string=", 15) == 0)
                argument += 15;
        else if (strncmp(argument, "-vS", 3) == 0 || strncmp(argument, "-iS", 3) == 0)
                argument += 3;
        else
                return argument[0] == '-' || strchr(argument, '=') ? NULL : argument;
        while ((word = next_word(&argument))) {
                if (strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0) {
                        if (!next_word(&argument))
                                return NULL;
                        continue;
                }
                if (strpbrk(word, "'\"\\$"))
                        return NULL;
                if (word[0] != '-' && !strchr(word, '='))
                        return word;
        }
        return NULL;
}

static int is_env(const char *path)
{
        const char *base = strrchr(path, '/');

        return strcmp(base ? base + 1 : path, "env") == 0;
}

/* Reads a "#!" line of fd: 1 and the interpreter with its one argument ("" = none), 0 if it is no
 * script, -ENOEXEC for a line that the kernel refuses. */
static int read_script(int fd, char line[LINE_MAX_LEN + 1], char **ret_interpreter,
                       char **ret_argument)
{
        ssize_t n = pread(fd, line, LINE_MAX_LEN, 0);
        char *end, *p;

        if (n < 2 || line[0] != '#' || line[1] != '!')
                return 0;
        line[n] = '\0';
        end = strchr(line, '\n');
        if (!end && n == LINE_MAX_LEN && !strpbrk(line + 2 + strspn(line + 2, " \t"), " \t"))
                return -ENOEXEC;        /* the interpreter's path was cut */
        if (end)
                *end = '\0';
        for (end = line + strlen(line); end > line + 2 && (end[-1] == ' ' || end[-1] == '\t');
             end--)
                end[-1] = '\0';
        p = line + 2;
        *ret_interpreter = next_word(&p);
        if (!*ret_interpreter)
                return -ENOEXEC;
        *ret_argument = p + strspn(p, " \t");
        return 1;
}

/* What comes after image->path, open as fd: 1 = image->path was replaced by an interpreter, look at
 * that; 0 = the chain ends here and kind is set. */
static int follow(int fd, const struct stat *st, const char *search_path, unsigned flags,
                  struct ls_image *image)
{
        char line[LINE_MAX_LEN + 1], magic[4] = "", *interpreter, *argument, *program;
        int r = read_script(fd, line, &interpreter, &argument);

        if (r == 0) {
                if (pread(fd, magic, 4, 0) == 4 && memcmp(magic, "\177ELF", 4) == 0) {
                        image->kind = kind_of_elf(fd, st, flags, image);
                        return 0;
                }
                image->kind = LS_IMAGE_NOT_ELF;
                if (!(flags & LS_INSPECT_SHELL) || image->scripts)
                        return 0;
                interpreter = (char *)"/bin/sh";
                argument = (char *)"";
        } else if (r < 0 || ++image->scripts > MAX_SCRIPTS) {
                image->kind = LS_IMAGE_NOT_ELF;
                return 0;
        }
        if (ls_image_find(interpreter, NULL, image->path, sizeof image->path) < 0) {
                image->kind = LS_IMAGE_NOT_ELF; /* "bad interpreter" */
                return 0;
        }
        if (r != 1 || !is_env(image->path) || !*argument)
                return 1;
        image->via_env = 1;
        program = env_program(argument);
        if (program && ls_image_find(program, search_path, image->path, sizeof image->path) == 0)
                image->scripts++;
        else
                ls_image_find(interpreter, NULL, image->path, sizeof image->path);
        return 1;
}

static void inspect_chain(const char *search_path, unsigned flags, struct ls_image *image)
{
        for (int i = 0; i <= MAX_SCRIPTS; i++) {
                struct stat st;
                int fd = ls_open_regular(image->path, &st), more;

                if (fd < 0) {
                        image->kind = fd == -EINVAL || fd == -EISDIR ? LS_IMAGE_NOT_EXECUTABLE
                                                                     : LS_IMAGE_UNREADABLE;
                        return;
                }
                more = follow(fd, &st, search_path, flags, image);
                close(fd);
                if (!more)
                        return;
        }
        image->kind = LS_IMAGE_NOT_ELF;
}

void ls_image_inspect(const char *name, const char *search_path, unsigned flags,
                      struct ls_image *ret)
{
        int saved = errno, r;

        memset(ret, 0, offsetof(struct ls_image, file));
        r = ls_image_find(name, search_path, ret->file, sizeof ret->file);
        memcpy(ret->path, ret->file, strlen(ret->file) + 1);
        if (r < 0)
                ret->kind = r == -EACCES ? LS_IMAGE_NOT_EXECUTABLE : LS_IMAGE_MISSING;
        else
                inspect_chain(search_path, flags, ret);
        errno = saved;
}

void ls_image_inspect_fd(int fd, const char *search_path, unsigned flags, struct ls_image *ret)
{
        int saved = errno;

        memset(ret, 0, offsetof(struct ls_image, file));
        ls_fd_path(ret->file, fd < 0 ? 0 : fd);
        memcpy(ret->path, ret->file, strlen(ret->file) + 1);
        if (fd < 0 || ls_fcntl(fd, F_GETFD, 0) < 0)
                ret->kind = LS_IMAGE_MISSING;
        else
                inspect_chain(search_path, flags, ret);         /* opened anew: an O_PATH descriptor
                                                                 * cannot be read */
        errno = saved;
}

static const char *const sentences[LS_NIMAGE_KINDS] = {
        [LS_IMAGE_STATIC] = "is statically linked: the agent cannot be loaded into it",
        [LS_IMAGE_BITS32] = "is a 32-bit program: only 64-bit ones can be recorded",
        [LS_IMAGE_OTHER_ARCH] = "is for another processor: only x86-64 programs can be recorded",
        [LS_IMAGE_MUSL] = "is linked with musl: only programs of the GNU C library can be recorded",
        [LS_IMAGE_OTHER_LIBC] =
                "has an unknown loader: only programs of the GNU C library can be recorded",
        [LS_IMAGE_ASAN] = "is built with a sanitizer, which does not let the agent be loaded "
                          "before it: not recorded",
        [LS_IMAGE_SETUID] =
                "is setuid, setgid or has capabilities: the loader does not let the agent in",
        [LS_IMAGE_NOT_ELF] = "is neither an ELF program nor a script with a valid interpreter",
        [LS_IMAGE_MISSING] = "was not found",
        [LS_IMAGE_NOT_EXECUTABLE] = "cannot be executed: not a file, or no permission",
        [LS_IMAGE_UNREADABLE] =
                "cannot be read, so it is not known whether the agent may be loaded into it",
};

const char *ls_image_describe(const struct ls_image *image, char *buf, size_t size)
{
        const char *what = sentences[image->kind];

        if (!what && image->contains_luajit)
                what = "contains LuaJIT but does not export lua_newstate: its VM cannot be found";
        else if (!what && image->exports_lua_newstate && !image->has_profiler)
                what = "exports lua_newstate but no luaJIT_profile_start: not a LuaJIT with the "
                       "profiler";
        if (!what)
                snprintf(buf, size, "%s", "");
        else if (strcmp(image->file, image->path) == 0)
                snprintf(buf, size, "%s %s", image->path, what);
        else
                snprintf(buf, size, "%s (run by %s) %s", image->path, image->file, what);
        return buf;
}
