/* What a file is before it is executed: can the agent be preloaded into it, and is LuaJIT in it?
 * Used by record/ before it starts the program and by the agent's exec wrappers, so: libc only, no
 * malloc, async-signal-safe, and nothing in the file is trusted. */
#ifndef LS_INSPECT_H
#define LS_INSPECT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum ls_image_kind {
        LS_IMAGE_OK,            /* 64-bit x86, dynamically linked with glibc: the agent can be
                                 * preloaded */
        LS_IMAGE_STATIC,        /* no dynamic loader, so nothing can be preloaded */
        LS_IMAGE_BITS32,
        LS_IMAGE_OTHER_ARCH,
        LS_IMAGE_MUSL,
        LS_IMAGE_OTHER_LIBC,    /* its loader is neither glibc's nor musl's */
        LS_IMAGE_ASAN,          /* built with AddressSanitizer (or another sanitizer that must come
                                 * first) */
        LS_IMAGE_SETUID,        /* setuid, setgid or file capabilities that change who runs it: the
                                 * loader ignores us */
        LS_IMAGE_NOT_ELF,       /* exec would fail with ENOEXEC, or with the interpreter's error */
        LS_IMAGE_MISSING,
        LS_IMAGE_NOT_EXECUTABLE,/* no permission, a directory */
        LS_IMAGE_UNREADABLE,    /* may be executed but not read, so it cannot be told what it is */
        LS_NIMAGE_KINDS
};

/* Flags of an inspection. */
#define LS_INSPECT_SHELL                                                                           \
        0x1 /* a file without "#!" that is not ELF is run by /bin/sh, as execvp does */
#define LS_INSPECT_TEXT                                                                            \
        0x2 /* also look for LuaJIT's version string: reads up to 64 MiB of the file, some 20 ms */

struct ls_image {
        enum ls_image_kind kind;        /* of the first file in the chain that is not OK, else
                                         * LS_IMAGE_OK */
        uint8_t exports_lua_newstate;   /* the last file of the chain: its dynamic symbols have
                                         * lua_newstate */
        uint8_t needs_luajit;           /* it is linked with a shared libluajit */
        uint8_t contains_luajit;        /* LS_INSPECT_TEXT: LuaJIT is in it, but it exports no
                                         * lua_newstate */
        uint8_t has_profiler;           /* it exports luaJIT_profile_start */
        uint8_t scripts;                /* "#!" lines followed, /usr/bin/env's argument included */
        uint8_t via_env;                /* one of them was env */
        char file[PATH_MAX];            /* the command as found in PATH */
        char path[PATH_MAX];            /* last file of the chain: the ELF image that kind and flags
                                         * speak of */
};

/* Looks up name as execvp does (no slash: in search_path, NULL = the default of execvp), follows
 * "#!" lines as the kernel does and `env [-S] [VAR=x] PROG` in them, and tells what the image is.
 * Always fills *ret; when nothing was found kind says why. errno is kept. Needs about 6 KiB of
 * stack. */
void ls_image_inspect(const char *name, const char *search_path, unsigned flags,
                      struct ls_image *ret);
/* The same for an open file (fexecve). */
void ls_image_inspect_fd(int fd, const char *search_path, unsigned flags, struct ls_image *ret);

/* The agent may be put into the environment for this image. */
static inline int ls_image_preloadable(const struct ls_image *image)
{
        return image->kind == LS_IMAGE_OK;
}

/* It holds a LuaJIT, preloadable or not. */
static inline int ls_image_has_luajit(const struct ls_image *image)
{
        return image->exports_lua_newstate || image->needs_luajit || image->contains_luajit;
}

/* One sentence for the user: what the image is and what that means for recording ("/usr/bin/x is
 * statically linked: the agent cannot be loaded into it"). Empty string when there is nothing to
 * say. Returns buf. */
const char *ls_image_describe(const struct ls_image *image, char *buf, size_t size);

/* Only the search: finds an executable for name as execvp would. 0, -ENOENT or -EACCES. */
int ls_image_find(const char *name, const char *search_path, char *ret_path, size_t size);

#endif
