/* The rights of a program over files: see rights.h. */
#include "record/rights.h"

#include <grp.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>

#include "formats/wire/open_file.h"
#include "record/descriptors.h"

#define NOBODY 65534

/* 1: another root directory, or other file systems below it; -errno when it has ended. */
static int is_elsewhere(pid_t pid)
{
        static const struct { const char *its, *ours; } same[] = { { "root/", "/" }, { "ns/mnt", "/proc/self/ns/mnt" } };
        struct stat its, ours;
        char path[64];

        for (unsigned i = 0; i < sizeof(same) / sizeof(*same); i++) {
                snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, same[i].its);
                if (stat(path, &its) < 0 || stat(same[i].ours, &ours) < 0)
                        return -errno;
                if (its.st_dev != ours.st_dev || its.st_ino != ours.st_ino)
                        return 1;
        }
        return 0;
}

static void take_groups(struct ls_rights *r, const char *text)
{
        char *end;

        r->n_groups = 0;
        while (r->n_groups < LS_RIGHTS_GROUPS) {
                unsigned long id = strtoul(text, &end, 10);

                if (end == text)
                        return;
                r->groups[r->n_groups++] = (gid_t)id;
                text = end;
        }
}

/* Returns 0, or -ESRCH when it has ended. */
static int read_process(struct ls_rights *r, pid_t pid)
{
        char path[64], line[1024];
        int seen = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        f = fopen(path, "re");
        if (!f)
                return -ESRCH;
        while (fgets(line, sizeof(line), f)) {          /* the last id of each is the one for files */
                seen += sscanf(line, "Uid: %*u %*u %*u %u", &r->uid) == 1;
                seen += sscanf(line, "Gid: %*u %*u %*u %u", &r->gid) == 1;
                if (!strncmp(line, "Groups:", 7)) {
                        take_groups(r, line + 7);
                        seen++;
                }
        }
        fclose(f);
        r->pid = pid;
        r->elsewhere = is_elsewhere(pid);
        r->known = 1;
        return seen >= 3 && r->elsewhere >= 0 ? 0 : -ESRCH;
}

void ls_rights_read(struct ls_rights *r, pid_t pid)
{
        struct ls_rights got = { 0 };

        if (pid && read_process(&got, pid) == 0)
                *r = got;
        else if (!pid || (!r->known && geteuid() != 0))         /* what a user's programs may is his own */
                *r = (struct ls_rights){ .uid = geteuid(), .gid = getegid(), .known = 1 };
}

static int set_groups(int n, const gid_t *groups)
{
        return (int)syscall(SYS_setgroups, n, groups);  /* of this thread, unlike the C library's */
}

static int is_ours(const struct ls_rights *r)
{
        return r->known && r->uid == geteuid() && r->gid == getegid();
}

/* The ids that are taken over in this order can be given back: those of groups need the rights of uid. */
static int take_over(const struct ls_rights *r, struct ls_rights_before *before)
{
        uid_t uid = r->known ? r->uid : NOBODY;
        gid_t gid = r->known ? r->gid : NOBODY;

        before->uid = geteuid();
        before->gid = getegid();
        before->n_groups = is_ours(r) ? -1 : getgroups(LS_RIGHTS_GROUPS, before->groups);
        if (is_ours(r))
                return 0;
        if (before->n_groups < 0 || set_groups(r->n_groups, r->groups) < 0)
                return -EPERM;
        setfsgid(gid);
        setfsuid(uid);
        if ((uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid)
                return 0;
        ls_rights_end(before);
        return -EPERM;
}

void ls_rights_end(const struct ls_rights_before *before)
{
        if (before->n_groups < 0)       /* nothing was changed */
                return;
        setfsuid(before->uid);
        setfsgid(before->gid);
        if (set_groups(before->n_groups, before->groups) < 0)
                abort();                /* cannot happen; with fewer rights or more than ours nothing goes on */
}

int ls_rights_begin(const struct ls_rights *r, struct ls_rights_before *before)
{
        return r->elsewhere ? -EPERM : take_over(r, before);
}

/* Links in another root directory lead to where they lead there, not here. */
static int see(int root, const char *path)
{
        const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
        int seen = root < 0 ? open(path, O_PATH | O_CLOEXEC) : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

        return seen < 0 ? -errno : seen;
}

/* A file system that its user serves may let each reader wait for ever. */
static int look_at(int seen, int others, int all, struct stat *ret_st)
{
        struct statfs fs;
        int err = ls_look_at_regular(seen, ret_st);

        if (err < 0)
                return err;
        if (others && (fstatfs(seen, &fs) < 0 || fs.f_type == FUSE_SUPER_MAGIC))
                return -EACCES;
        return all && !(ret_st->st_mode & S_IROTH) ? -EACCES : 0;
}

static int name_of(int fd, char *ret_path)
{
        char link[LS_FD_PATH];
        ssize_t n;

        ls_fd_path(link, fd);
        n = readlink(link, ret_path, PATH_MAX - 1);
        if (n <= 0 || *ret_path != '/')
                return -ENOENT;
        ret_path[n] = 0;
        return 0;
}

int ls_rights_open(const struct ls_rights *r, const char *path, struct stat *ret_st, char *ret_path)
{
        struct ls_rights_before before;
        char root_path[64];
        int root = -1, all, seen, err;

        if (r->elsewhere) {
                snprintf(root_path, sizeof(root_path), "/proc/%d/root", (int)r->pid);
                root = open(root_path, O_PATH | O_CLOEXEC);
                if (root < 0)
                        return -errno;
        }
        all = take_over(r, &before) < 0;
        seen = see(root, path);
        err = seen < 0 ? seen : look_at(seen, !is_ours(r), all, ret_st);
        if (err == 0 && ret_path)
                err = name_of(seen, ret_path);
        if (err == 0)
                err = ls_open_seen(seen, O_RDONLY);
        else if (seen >= 0)
                close(seen);
        if (!all)
                ls_rights_end(&before);
        if (root >= 0)
                close(root);
        return ls_fd_above_stdio(err);
}
