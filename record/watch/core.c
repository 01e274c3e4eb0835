/* A core file: see core.h. */
#include "record/watch/core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES_MOST (16u << 20)
#define PAGE 4096u
#define ADDRESSES (UINT64_C(1) << 47)   /* that a program has */
#define FILES_MOST (1u << 18) /* mappings of files: four times what the kernel allows by default */

struct file { uint64_t start, end, offset; const char *name; };

struct notes {
        char *bytes;
        size_t len;
        const char *noted;              /* NT_FILE */
        size_t noted_len;
        struct file *files;             /* the same, by address */
        size_t n_files;
};

static int read_all(int fd, uint64_t offset, void *to, size_t n)
{
        return offset > INT64_MAX || pread(fd, to, n, (off_t)offset) != (ssize_t)n ? -1 : 0;
}

static int by_start(const void *a, const void *b)
{
        const struct ls_core_segment *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

static void take_thread(struct ls_core *core, const char *desc, size_t len)
{
        struct elf_prstatus status;

        if (len < sizeof status)
                return;
        memcpy(&status, desc, sizeof status);
        if (core->n_threads == LS_CORE_THREADS) {
                core->more_threads++;
                return;
        }
        core->threads[core->n_threads].tid = status.pr_pid;
        memcpy(&core->threads[core->n_threads].regs, &status.pr_reg, sizeof status.pr_reg);
        core->n_threads++;
}

static void take_process(struct ls_core *core, const char *desc, size_t len)
{
        struct elf_prpsinfo info;

        if (len < sizeof info)
                return;
        memcpy(&info, desc, sizeof info);
        core->pid = info.pr_pid;
        memcpy(core->name, info.pr_fname, sizeof core->name - 1);
}

/* The notes of a core: name and description, each padded to 4 bytes. */
static void take_notes(struct ls_core *core, struct notes *notes)
{
        size_t at = 0;

        while (notes->len - at >= sizeof(Elf64_Nhdr)) {
                Elf64_Nhdr h;
                size_t name, desc;

                memcpy(&h, notes->bytes + at, sizeof h);
                name = at + sizeof h;
                if (h.n_namesz > notes->len - name)
                        return;
                desc = name + ((size_t)h.n_namesz + 3) / 4 * 4;
                if (desc > notes->len || h.n_descsz > notes->len - desc)
                        return;
                if (h.n_namesz == 5 && !memcmp(notes->bytes + name, "CORE", 5)) {
                        if (h.n_type == NT_PRSTATUS)
                                take_thread(core, notes->bytes + desc, h.n_descsz);
                        else if (h.n_type == NT_PRPSINFO)
                                take_process(core, notes->bytes + desc, h.n_descsz);
                        else if (h.n_type == NT_FILE) {
                                notes->noted = notes->bytes + desc;
                                notes->noted_len = h.n_descsz;
                        }
                }
                at = desc + ((size_t)h.n_descsz + 3) / 4 * 4;
                if (at > notes->len)
                        return;
        }
}

static uint64_t word(const char *p)
{
        uint64_t v;

        memcpy(&v, p, 8);
        return v;
}

static int by_address(const void *a, const void *b)
{
        const struct file *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

/* Which files are mapped, and where: the note has their number and the size of a page, three words
 * of each, then all names. */
static int take_files(struct notes *notes)
{
        uint64_t n = notes->noted_len < 16 ? 0 : word(notes->noted),
                 page = n ? word(notes->noted + 8) : 0;
        const char *entry, *end, *name;

        if (!n || n > (notes->noted_len - 16) / 24 || n > FILES_MOST || page > 1u << 30)
                return 0;
        entry = notes->noted + 16;
        end = notes->noted + notes->noted_len;
        name = entry + n * 24;
        notes->files = calloc((size_t)n, sizeof *notes->files);
        if (!notes->files)
                return -ENOMEM;
        for (; notes->n_files < n; entry += 24) {
                struct file *f = &notes->files[notes->n_files];
                size_t len = strnlen(name, (size_t)(end - name));

                if (len == (size_t)(end - name))
                        break;          /* not terminated */
                *f = (struct file){ word(entry), word(entry + 8), word(entry + 16) * page,
                                    strchr(name, '\n') ? "" : name };
                name += len + 1;
                notes->n_files++;
        }
        qsort(notes->files, notes->n_files, sizeof *notes->files, by_address);
        return 0;
}

/* The file that is mapped at an address, "" = none; its offset there. */
static const char *file_at(const struct notes *notes, uint64_t address, uint64_t *ret_offset)
{
        size_t low = 0, high = notes->n_files;
        const struct file *f;

        while (low < high) {            /* the first that starts later */
                size_t mid = low + (high - low) / 2;

                if (notes->files[mid].start <= address)
                        low = mid + 1;
                else
                        high = mid;
        }
        f = low ? &notes->files[low - 1] : NULL;
        *ret_offset = f && address < f->end ? f->offset + (address - f->start) : 0;
        return f && address < f->end ? f->name : "";
}

/* How many of the first n segments start at or below an address. */
static unsigned starts_below(const struct ls_core *core, unsigned n, uint64_t at)
{
        unsigned low = 0, high = n;

        while (low < high) {            /* the first that starts later */
                unsigned mid = low + (high - low) / 2;

                if (core->segments[mid].start <= at)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

static const struct ls_core_segment *segment_of(const struct ls_core *core, uint64_t at)
{
        unsigned below = starts_below(core, core->n_segments, at);

        return below && at < core->segments[below - 1].end ? &core->segments[below - 1] : NULL;
}

/* What is read-only in a file is often left out of a core: it is still mapped. */
static int add_left_out(struct ls_core *core, const struct notes *notes)
{
        struct ls_core_segment *bigger;
        unsigned known = core->n_segments;

        bigger = realloc(core->segments, (known + notes->n_files + 1) * sizeof *bigger);
        if (!bigger)
                return -ENOMEM;
        core->segments = bigger;
        qsort(core->segments, known, sizeof *core->segments, by_start);
        for (size_t i = 0; i < notes->n_files; i++) {
                uint64_t start = notes->files[i].start, end = notes->files[i].end;
                unsigned below = starts_below(core, known, start);

                if (end > start && end <= ADDRESSES &&
                    (!below || core->segments[below - 1].end <= start) &&
                    (below == known || core->segments[below].start >= end))
                        core->segments[core->n_segments++] =
                                (struct ls_core_segment){ start, end, 0, 0, PF_R | PF_X };
        }
        qsort(core->segments, core->n_segments, sizeof *core->segments, by_start);
        return 0;
}

static int write_maps(struct ls_core *core, const struct notes *notes)
{
        int fd = memfd_create("luasample", MFD_CLOEXEC), err;
        FILE *f = fd < 0 ? NULL : fdopen(dup(fd), "w");

        if (!f) {
                err = -errno;
                if (fd >= 0)
                        close(fd);
                return err;
        }
        for (unsigned i = 0; i < core->n_segments; i++) {
                const struct ls_core_segment *s = &core->segments[i];
                uint64_t offset;
                const char *file = file_at(notes, s->start, &offset);

                fprintf(f, "%llx-%llx %c%c%cp %llx 00:00 0 %s\n", (unsigned long long)s->start,
                        (unsigned long long)s->end, s->rights & PF_R ? 'r' : '-',
                        s->rights & PF_W ? 'w' : '-', s->rights & PF_X ? 'x' : '-',
                        (unsigned long long)offset, file);
        }
        err = fclose(f) ? -errno : 0;
        core->maps_fd = fd;
        return err;
}

/* Adds a note segment's bytes to the others. */
static int read_notes(struct ls_core *core, const Elf64_Phdr *ph, struct notes *notes)
{
        char *bigger;

        if (ph->p_filesz > NOTES_MOST - notes->len)
                return -ENOEXEC;
        bigger = realloc(notes->bytes, notes->len + ph->p_filesz + 1);
        if (!bigger)
                return -ENOMEM;
        notes->bytes = bigger;
        if (read_all(core->fd, ph->p_offset, notes->bytes + notes->len, ph->p_filesz))
                return -ENOEXEC;
        notes->len += ph->p_filesz;
        return 0;
}

static int read_segments(struct ls_core *core, const Elf64_Ehdr *eh, struct notes *notes)
{
        int err = 0;

        core->segments = calloc((size_t)eh->e_phnum + 1, sizeof *core->segments);
        if (!core->segments)
                return -ENOMEM;
        for (unsigned i = 0; !err && i < eh->e_phnum; i++) {
                Elf64_Phdr ph;

                if (read_all(core->fd, eh->e_phoff + i * sizeof ph, &ph, sizeof ph))
                        return -ENOEXEC;
                if (ph.p_type == PT_NOTE)
                        err = read_notes(core, &ph, notes);
                else if (ph.p_type == PT_LOAD && ph.p_memsz && ph.p_vaddr < ADDRESSES &&
                         ph.p_memsz <= ADDRESSES - ph.p_vaddr && ph.p_filesz <= ph.p_memsz)
                        core->segments[core->n_segments++] =
                                (struct ls_core_segment){ ph.p_vaddr, ph.p_vaddr + ph.p_memsz,
                                                          ph.p_offset, ph.p_filesz, ph.p_flags };
        }
        return err;
}

int ls_core_open(const char *path, struct ls_core *ret)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        *ret = (struct ls_core){ .fd = -1, .maps_fd = -1 };
        return fd < 0 ? -errno : ls_core_open_fd(fd, ret);
}

int ls_core_open_fd(int fd, struct ls_core *ret)
{
        struct notes notes = { NULL };
        Elf64_Ehdr eh;
        int err;

        *ret = (struct ls_core){ .fd = fd, .maps_fd = -1 };
        err = read_all(ret->fd, 0, &eh, sizeof eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
                              eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_type != ET_CORE ||
                              eh.e_machine != EM_X86_64 || eh.e_phentsize != sizeof(Elf64_Phdr)
                      ? -ENOEXEC
                      : 0;
        if (!err)
                err = read_segments(ret, &eh, &notes);
        if (!err) {
                take_notes(ret, &notes);
                err = ret->n_threads ? take_files(&notes) : -ENOEXEC;
                if (!err)
                        err = add_left_out(ret, &notes);
                if (!err)
                        err = write_maps(ret, &notes);
        }
        free(notes.bytes);
        free(notes.files);
        if (err)
                ls_core_close(ret);
        return err;
}

void ls_core_close(struct ls_core *core)
{
        if (core->fd >= 0)
                close(core->fd);
        if (core->maps_fd >= 0)
                close(core->maps_fd);
        free(core->segments);
        core->segments = NULL;
        core->fd = core->maps_fd = -1;
}

int ls_core_read(const struct ls_core *core, uint64_t at, void *to, size_t n)
{
        while (n) {
                const struct ls_core_segment *s = segment_of(core, at);
                uint64_t part;

                if (!s || at - s->start >= s->held)
                        return -1;
                part = s->held - (at - s->start) < n ? s->held - (at - s->start) : n;
                if (read_all(core->fd, s->offset + (at - s->start), to, part))
                        return -1;
                to = (char *)to + part;
                at += part;
                n -= part;
        }
        return 0;
}
