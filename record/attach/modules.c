/* See modules.h. */
#include "record/attach/modules.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/process/descriptors.h"
#include "record/process/proc.h"

int ls_remote_read(const struct ls_modules *ms, uint64_t address, void *to, size_t n)
{
        ssize_t got = address > INT64_MAX ? -1 : pread(ms->mem_fd, to, n, (off_t)address);

        return got == (ssize_t)n ? 0 : -EFAULT;
}

int ls_remote_write(const struct ls_modules *ms, uint64_t address, const void *from, size_t n)
{
        ssize_t put = address > INT64_MAX ? -1 : pwrite(ms->mem_fd, from, n, (off_t)address);

        return put == (ssize_t)n ? 0 : -EFAULT;
}

void ls_remote_string(const struct ls_modules *ms, uint64_t address, char *to, size_t size)
{
        size_t n = 0;

        while (n + 1 < size && ls_remote_read(ms, address + n, to + n, 1) == 0 && to[n])
                n++;
        to[n] = 0;
}

static int add(struct ls_modules *ms, uint64_t base, const char *path,
               const struct ls_object *object)
{
        struct ls_module *m;

        if (ms->n == LS_MODULES_MOST)
                return 0;
        m = realloc(ms->m, (ms->n + 1) * sizeof(*m));
        if (!m)
                return -ENOMEM;
        ms->m = m;
        m[ms->n].base = base;
        m[ms->n].object = *object;
        m[ms->n].path = strdup(path);
        if (!m[ms->n].path)
                return -ENOMEM;
        ms->n++;
        return 0;
}

/* A line of maps that begins a mapped ELF file becomes a module. */
static int look_at_line(struct ls_modules *ms, struct ls_worker *w, int memory, char *line)
{
        struct ls_object object;
        uint64_t start, end, offset;
        int at = 0, err;

        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*u %n", &start, &end,
                   &offset, &at) < 3 ||
            !at || offset || (line[at] != '/' && strncmp(line + at, "[vdso]", 6)))
                return 0;
        err = ls_worker_loaded(w, memory, start, &object);
        return err == -ENOEXEC ? 0 : err ? -EBADMSG : add(ms, start, line + at, &object);
}

/* What its memory map names, as its worker reads it. */
static int look(struct ls_modules *ms, pid_t pid, struct ls_workers *workers)
{
        struct ls_worker *w = NULL;
        int memory = ls_workers_memory(workers, pid, &w), err = 0;
        char *line = NULL;
        size_t room = 0;
        FILE *f;

        if (memory < 0)
                return memory;
        f = ls_proc_file(pid, 0, "maps");
        if (!f)
                err = -errno;
        while (f && err == 0 && getline(&line, &room, f) > 0)
                err = look_at_line(ms, w, memory, line);
        free(line);
        if (f)
                fclose(f);
        close(memory);
        return err;
}

int ls_modules_open(struct ls_modules *ms, pid_t pid, struct ls_workers *workers)
{
        int err;

        memset(ms, 0, sizeof(*ms));
        ms->mem_fd = ls_fd_above_stdio(ls_proc_open(pid, 0, "mem", O_RDWR));
        if (ms->mem_fd < 0)
                return ms->mem_fd;
        err = look(ms, pid, workers);
        if (err < 0)
                ls_modules_close(ms);
        return err;
}

void ls_modules_close(struct ls_modules *ms)
{
        for (unsigned i = 0; i < ms->n; i++)
                free(ms->m[i].path);
        free(ms->m);
        if (ms->mem_fd >= 0)
                close(ms->mem_fd);
        memset(ms, 0, sizeof(*ms));
        ms->mem_fd = -1;
}

uint64_t ls_module_symbol(const struct ls_module *m, const char *name)
{
        unsigned i = ls_object_symbol(name);

        assert(i < LS_OBJECT_NSYMBOLS);         /* its row in worker/object.h is missing */
        return m->object.symbols[i];
}

const struct ls_module *ls_modules_find(const struct ls_modules *ms, const char *name)
{
        for (unsigned i = 0; i < ms->n; i++)
                if (ls_module_symbol(&ms->m[i], name))
                        return &ms->m[i];
        return NULL;
}
