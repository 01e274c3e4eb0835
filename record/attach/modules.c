/* See modules.h. */
#include "record/attach/modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/process/descriptors.h"
#include "record/process/proc.h"

#define PHDRS_MOST 64u
#define DYNAMIC_MOST 512u
#define CHAIN_MOST 65536u

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

static int add(struct ls_modules *ms, uint64_t base, const char *path)
{
        struct ls_module *m;

        if (ms->n == LS_MODULES_MOST)
                return 0;
        m = realloc(ms->m, (ms->n + 1) * sizeof(*m));
        if (!m)
                return -ENOMEM;
        ms->m = m;
        m[ms->n].base = base;
        m[ms->n].path = strdup(path);
        if (!m[ms->n].path)
                return -ENOMEM;
        ms->n++;
        return 0;
}

/* A line of maps that begins a mapped ELF file becomes a module. */
static int look_at_line(struct ls_modules *ms, char *line)
{
        uint64_t start, end, offset;
        char magic[SELFMAG];
        int at = 0;

        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*u %n", &start, &end, &offset, &at) < 3 || !at ||
            offset || (line[at] != '/' && strncmp(line + at, "[vdso]", 6)))
                return 0;
        if (ls_remote_read(ms, start, magic, SELFMAG) < 0 || memcmp(magic, ELFMAG, SELFMAG))
                return 0;
        return add(ms, start, line + at);
}

int ls_modules_open(struct ls_modules *ms, pid_t pid)
{
        char *line = NULL;
        size_t room = 0;
        int err = 0;
        FILE *f;

        memset(ms, 0, sizeof(*ms));
        ms->mem_fd = ls_fd_above_stdio(ls_proc_open(pid, 0, "mem", O_RDWR));
        if (ms->mem_fd < 0)
                return ms->mem_fd;
        f = ls_proc_file(pid, 0, "maps");
        if (!f)
                err = -errno;
        while (f && err == 0 && getline(&line, &room, f) > 0)
                err = look_at_line(ms, line);
        free(line);
        if (f)
                fclose(f);
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

/* Program headers of a 64-bit object. Returns how many. */
static unsigned read_phdrs(const struct ls_modules *ms, const struct ls_module *m, Elf64_Phdr ph[PHDRS_MOST])
{
        Elf64_Ehdr eh;

        if (ls_remote_read(ms, m->base, &eh, sizeof(eh)) < 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
            eh.e_phentsize != sizeof(Elf64_Phdr) || eh.e_phnum > PHDRS_MOST ||
            ls_remote_read(ms, m->base + eh.e_phoff, ph, eh.e_phnum * sizeof(*ph)) < 0)
                return 0;
        return eh.e_phnum;
}

/* What is to be added to the object's own addresses. */
static uint64_t bias_of(const struct ls_module *m, const Elf64_Phdr *ph, unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                if (ph[i].p_type == PT_LOAD)
                        return m->base - (ph[i].p_vaddr & ~(uint64_t)4095) + (ph[i].p_offset & ~(uint64_t)4095);
        return m->base;
}

struct tables { uint64_t symbols, strings, hash, bias; };

/* The loader has made addresses of most; those of the kernel's object are as in its file. */
static uint64_t absolute(const struct ls_module *m, uint64_t bias, uint64_t value)
{
        return value < m->base ? value + bias : value;
}

static int find_tables(const struct ls_modules *ms, const struct ls_module *m, struct tables *t)
{
        Elf64_Phdr ph[PHDRS_MOST];
        unsigned n = read_phdrs(ms, m, ph);
        uint64_t at = 0;

        memset(t, 0, sizeof(*t));
        t->bias = bias_of(m, ph, n);
        for (unsigned i = 0; i < n; i++)
                if (ph[i].p_type == PT_DYNAMIC)
                        at = t->bias + ph[i].p_vaddr;
        for (unsigned i = 0; at && i < DYNAMIC_MOST; i++) {
                Elf64_Dyn d;

                if (ls_remote_read(ms, at + i * sizeof(d), &d, sizeof(d)) < 0 || d.d_tag == DT_NULL)
                        break;
                if (d.d_tag == DT_SYMTAB)
                        t->symbols = absolute(m, t->bias, d.d_un.d_ptr);
                else if (d.d_tag == DT_STRTAB)
                        t->strings = absolute(m, t->bias, d.d_un.d_ptr);
                else if (d.d_tag == DT_GNU_HASH)
                        t->hash = absolute(m, t->bias, d.d_un.d_ptr);
        }
        return t->symbols && t->strings && t->hash ? 0 : -ENOENT;
}

static uint32_t gnu_hash(const char *name)
{
        uint32_t h = 5381;

        for (; *name; name++)
                h = h * 33 + (unsigned char)*name;
        return h;
}

/* 1 when the symbol of this index is the one. */
static int is_it(const struct ls_modules *ms, const struct tables *t, uint32_t index, const char *name, Elf64_Sym *ret)
{
        char own[64];
        size_t n = strlen(name) + 1;

        return n <= sizeof(own) && ls_remote_read(ms, t->symbols + (uint64_t)index * sizeof(*ret), ret, sizeof(*ret)) == 0 &&
               ls_remote_read(ms, t->strings + ret->st_name, own, n) == 0 && !memcmp(own, name, n) &&
               ret->st_shndx != SHN_UNDEF && ret->st_value;
}

uint64_t ls_module_symbol(const struct ls_modules *ms, const struct ls_module *m, const char *name, uint64_t *ret_size)
{
        struct { uint32_t buckets, first, bloom, shift; } head;
        uint32_t hash = gnu_hash(name), index, chain;
        struct tables t;
        uint64_t buckets;
        Elf64_Sym sym;

        if (find_tables(ms, m, &t) < 0 || ls_remote_read(ms, t.hash, &head, sizeof(head)) < 0 || !head.buckets)
                return 0;
        buckets = t.hash + sizeof(head) + 8 * (uint64_t)head.bloom;
        if (ls_remote_read(ms, buckets + 4 * (uint64_t)(hash % head.buckets), &index, 4) < 0 || index < head.first)
                return 0;
        for (uint32_t i = 0; i < CHAIN_MOST; i++, index++) {
                if (ls_remote_read(ms, buckets + 4 * ((uint64_t)head.buckets + index - head.first), &chain, 4) < 0)
                        return 0;
                if ((chain | 1) == (hash | 1) && is_it(ms, &t, index, name, &sym)) {
                        if (ret_size)
                                *ret_size = sym.st_size;
                        return t.bias + sym.st_value;
                }
                if (chain & 1)
                        break;
        }
        return 0;
}

const struct ls_module *ls_modules_find(const struct ls_modules *ms, const char *name, uint64_t *ret_address)
{
        for (unsigned i = 0; i < ms->n; i++) {
                uint64_t at = ls_module_symbol(ms, &ms->m[i], name, NULL);

                if (at) {
                        if (ret_address)
                                *ret_address = at;
                        return &ms->m[i];
                }
        }
        return NULL;
}

/* Where errno is from the thread pointer: __errno_location begins by reading that from a word of its own. */
static int offset_of_errno(const struct ls_modules *ms, const struct ls_module *libc, int64_t *ret)
{
        static const uint8_t load[] = { 0x48, 0x8b, 0x05 };     /* mov offset(%rip), %rax */
        uint64_t at = ls_module_symbol(ms, libc, "__errno_location", NULL);
        uint8_t code[16];
        int32_t distance;

        if (!at || ls_remote_read(ms, at, code, sizeof(code)) < 0)
                return -ENOENT;
        for (unsigned i = 0; i + 7 <= sizeof(code); i++)
                if (!memcmp(code + i, load, sizeof(load))) {
                        memcpy(&distance, code + i + 3, 4);
                        return ls_remote_read(ms, at + i + 7 + (uint64_t)(int64_t)distance, ret, 8) < 0 || *ret >= 0 ||
                               *ret < -(1 << 19) ? -ENOENT : 0;
                }
        return -ENOENT;
}

int ls_module_thread_data(const struct ls_modules *ms, const struct ls_module *libc, struct ls_thread_data *ret)
{
        Elf64_Phdr ph[PHDRS_MOST];
        unsigned n = read_phdrs(ms, libc, ph);
        uint64_t bias = bias_of(libc, ph, n), within = ls_module_symbol(ms, libc, "errno", NULL);
        int64_t offset;

        if (!within || offset_of_errno(ms, libc, &offset) < 0)
                return -ENOENT;
        for (unsigned i = 0; i < n; i++)
                if (ph[i].p_type == PT_TLS && ph[i].p_filesz <= 4096 && within - bias < ph[i].p_memsz) {
                        *ret = (struct ls_thread_data){ bias + ph[i].p_vaddr, ph[i].p_filesz, offset - (int64_t)(within - bias) };
                        return 0;
                }
        return -ENOENT;
}

uint64_t ls_module_code_end(const struct ls_modules *ms, const struct ls_module *m)
{
        Elf64_Phdr ph[PHDRS_MOST];
        unsigned n = read_phdrs(ms, m, ph);
        uint64_t bias = bias_of(m, ph, n);

        for (unsigned i = 0; i < n; i++)
                if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_X))
                        return bias + ph[i].p_vaddr + ph[i].p_memsz;
        return 0;
}

/* gnu_get_libc_version does nothing but to load the address of the text. */
unsigned ls_module_libc_version(const struct ls_modules *ms, const struct ls_module *libc)
{
        static const uint8_t load[] = { 0x48, 0x8d, 0x05 };     /* lea text(%rip), %rax */
        uint64_t at = ls_module_symbol(ms, libc, "gnu_get_libc_version", NULL);
        unsigned major, minor;
        int32_t distance;
        uint8_t code[16];
        char text[16];

        if (!at || ls_remote_read(ms, at, code, sizeof(code)) < 0)
                return 0;
        for (unsigned i = 0; i + 7 <= sizeof(code); i++)
                if (!memcmp(code + i, load, sizeof(load))) {
                        memcpy(&distance, code + i + 3, 4);
                        ls_remote_string(ms, at + i + 7 + (uint64_t)(int64_t)distance, text, sizeof(text));
                        return sscanf(text, "%u.%u", &major, &minor) == 2 && minor < 100 ? 100 * major + minor : 0;
                }
        return 0;
}

size_t ls_module_build_id(const struct ls_modules *ms, const struct ls_module *m, uint8_t ret_id[64])
{
        Elf64_Phdr ph[PHDRS_MOST];
        unsigned n = read_phdrs(ms, m, ph);
        uint64_t bias = bias_of(m, ph, n);

        for (unsigned i = 0; i < n; i++) {
                uint64_t at = bias + ph[i].p_vaddr, end = at + ph[i].p_memsz;
                Elf64_Nhdr note;

                if (ph[i].p_type != PT_NOTE || end < at)
                        continue;
                while (end - at >= sizeof(note) && ls_remote_read(ms, at, &note, sizeof(note)) == 0) {
                        uint64_t name = ((uint64_t)note.n_namesz + 3) & ~3ull, desc = ((uint64_t)note.n_descsz + 3) & ~3ull;

                        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz && note.n_descsz <= 64)
                                return ls_remote_read(ms, at + sizeof(note) + name, ret_id, note.n_descsz) < 0
                                       ? 0 : note.n_descsz;
                        if (name + desc > end - at - sizeof(note))
                                break;
                        at += sizeof(note) + name + desc;
                }
        }
        return 0;
}
