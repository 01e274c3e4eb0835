/* The agent is loaded into programs whose C library may be older than the one that it was built
 * with, and the loader refuses it for a single function in a version that is not there
 * (tests/check_agent_versions.py: none is above GLIBC_2.17). What newer headers make of old names
 * is here, without the C library's help. For libsample/ and libsample/inject/. */
#ifndef LS_OLD_LIBC_H
#define LS_OLD_LIBC_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* stat(path) with dir = AT_FDCWD, fstat(dir) with an empty path: functions since 2.33 only. Returns
 * 0, or -1 with errno. */
static inline int ls_stat(int dir, const char *path, struct stat *ret)
{
        return (int)syscall(SYS_newfstatat, dir, path, ret, *path ? 0 : AT_EMPTY_PATH);
}

/* fcntl with a number: fcntl64 since 2.28. Returns its result, or -1 with errno. */
static inline int ls_fcntl(int fd, int command, int value)
{
        return (int)syscall(SYS_fcntl, fd, command, value);
}

/* The function in a version of long ago, and NULL where the library that has it is not loaded. */
#define LS_OLD_AND_WEAK(name, version)                          \
        __asm__(".symver " #name ", " #name "@GLIBC_" version); \
        _Pragma(LS_WEAK(name))
#define LS_WEAK(name) LS_TEXT(weak name)
#define LS_TEXT(x) #x

#endif
