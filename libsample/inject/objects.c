/* See objects.h. The tables of a loaded object are as trustworthy as its code; only the notes are
 * bounded. */

#include "libsample/inject/objects.h"

#include <elf.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct each {
        int (*fn)(const struct ls_object *, void *);
        void *data;
        int index;
        struct ls_object object;
};

/* The loader has no name for the main program. Read once: it does not change, but chroot may hide
 * /proc later. */
static const char *main_path(void)
{
        static char path[PATH_MAX];

        if (!path[0] && readlink("/proc/thread-self/exe", path, sizeof path - 1) < 0)
                path[0] = '?';
        return path;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
        struct each *each = data;
        struct ls_object *object = &each->object;

        (void)size;
        object->base = info->dlpi_addr;
        object->phdrs = info->dlpi_phdr;
        object->nphdrs = info->dlpi_phnum;
        object->path = each->index++ == 0 && !*info->dlpi_name ? main_path() : info->dlpi_name;
        return each->fn(object, each->data);
}

int ls_objects_each(int (*fn)(const struct ls_object *object, void *data), void *data)
{
        struct each each = { .fn = fn, .data = data };

        return dl_iterate_phdr(visit, &each);
}

static int read_version(struct dl_phdr_info *info, size_t size, void *data)
{
        (void)size;
        *(unsigned long long *)data = info->dlpi_adds + info->dlpi_subs;
        return 1;
}

unsigned long long ls_objects_version(void)
{
        unsigned long long version = 0;

        dl_iterate_phdr(read_version, &version);
        return version;
}

struct tables {                 /* what DT_* points to, as addresses in this process */
        const ElfW(Sym) *symtab;
        const char *strtab;
        const uint32_t *gnu_hash, *hash;
        const uint16_t *versions;
        int runpath;
};

/* The loader has relocated these pointers in place for most objects, but not for the vdso. */
static const void *pointer(const struct ls_object *object, ElfW(Addr) value)
{
        return (const void *)(value < object->base ? value + object->base : value);
}

static int read_tables(const struct ls_object *object, struct tables *ret)
{
        const ElfW(Dyn) *dyn = NULL;

        *ret = (struct tables){ 0 };
        for (unsigned i = 0; i < object->nphdrs; i++) {
                if (object->phdrs[i].p_type == PT_DYNAMIC)
                        dyn = (const ElfW(Dyn) *)(object->base + object->phdrs[i].p_vaddr);
        }
        for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
                switch (dyn->d_tag) {
                case DT_SYMTAB: ret->symtab = pointer(object, dyn->d_un.d_ptr); break;
                case DT_STRTAB: ret->strtab = pointer(object, dyn->d_un.d_ptr); break;
                case DT_GNU_HASH: ret->gnu_hash = pointer(object, dyn->d_un.d_ptr); break;
                case DT_VERSYM: ret->versions = pointer(object, dyn->d_un.d_ptr); break;
                case DT_HASH: ret->hash = pointer(object, dyn->d_un.d_ptr); break;
                case DT_RPATH:
                case DT_RUNPATH: ret->runpath = 1; break;
                }
        }
        return ret->symtab && ret->strtab ? 0 : -1;
}

static int symbol_is(const struct tables *t, uint32_t i, const char *name)
{
        const ElfW(Sym) *sym = &t->symtab[i];
        unsigned type = ELF64_ST_TYPE(sym->st_info);

        if (t->versions && (t->versions[i] & 0x8000))           /* hidden: another is the default */
                return 0;
        return sym->st_shndx != SHN_UNDEF &&
               (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE) &&
               strcmp(t->strtab + sym->st_name, name) == 0;
}

static uint32_t find_gnu(const struct tables *t, const char *name)
{
        uint32_t want = 5381, nbuckets = t->gnu_hash[0], first = t->gnu_hash[1],
                 nbloom = t->gnu_hash[2];
        const uint64_t *bloom = (const uint64_t *)(t->gnu_hash + 4);
        const uint32_t *buckets = (const uint32_t *)(bloom + nbloom), *chain = buckets + nbuckets;
        uint64_t mask;

        for (const char *p = name; *p; p++)
                want = want * 33 + (unsigned char)*p;
        if (nbuckets == 0 || nbloom == 0)
                return 0;
        mask = UINT64_C(1) << want % 64 | UINT64_C(1) << (want >> t->gnu_hash[3]) % 64;
        if ((bloom[want / 64 % nbloom] & mask) != mask)
                return 0;
        for (uint32_t i = buckets[want % nbuckets]; i >= first; i++) {
                if ((chain[i - first] | 1) == (want | 1) && symbol_is(t, i, name))
                        return i;
                if (chain[i - first] & 1)
                        break;
        }
        return 0;
}

static uint32_t find_sysv(const struct tables *t, const char *name)
{
        for (uint32_t i = 1; i < t->hash[1]; i++) {
                if (symbol_is(t, i, name))
                        return i;
        }
        return 0;
}

void *ls_object_symbol(const struct ls_object *object, const char *name, size_t *ret_size)
{
        struct tables t;
        uint32_t i = 0;

        if (read_tables(object, &t) < 0)
                return NULL;
        if (t.gnu_hash)
                i = find_gnu(&t, name);
        else if (t.hash)
                i = find_sysv(&t, name);
        if (i == 0)
                return NULL;
        if (ret_size)
                *ret_size = t.symtab[i].st_size;
        return (void *)(object->base + t.symtab[i].st_value);
}

int ls_object_has_runpath(const struct ls_object *object)
{
        struct tables t;

        read_tables(object, &t);
        return t.runpath;
}

static const void *note_build_id(const char *p, size_t left, size_t align, size_t *ret_len)
{
        ElfW(Nhdr) note;

        while (left >= sizeof note) {
                size_t name, desc;

                memcpy(&note, p, sizeof note);
                name = ((size_t)note.n_namesz + align - 1) & ~(align - 1);
                desc = ((size_t)note.n_descsz + align - 1) & ~(align - 1);
                if (name > left - sizeof note || note.n_descsz > left - sizeof note - name)
                        return NULL;
                if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                    memcmp(p + sizeof note, "GNU", 4) == 0) {
                        *ret_len = note.n_descsz;
                        return p + sizeof note + name;
                }
                if (desc > left - sizeof note - name)
                        return NULL;
                p += sizeof note + name + desc;
                left -= sizeof note + name + desc;
        }
        return NULL;
}

const void *ls_object_build_id(const struct ls_object *object, size_t *ret_len)
{
        *ret_len = 0;
        for (unsigned i = 0; i < object->nphdrs; i++) {
                const ElfW(Phdr) *ph = &object->phdrs[i];
                const void *id;

                if (ph->p_type != PT_NOTE)
                        continue;
                id = note_build_id((const char *)(object->base + ph->p_vaddr), ph->p_memsz,
                                   ph->p_align == 8 ? 8 : 4, ret_len);
                if (id)
                        return id;
        }
        return NULL;
}

struct by_address {
        uintptr_t addr;
        struct ls_object *ret;
};

static int holds_address(const struct ls_object *object, void *data)
{
        const struct by_address *want = data;

        for (unsigned i = 0; i < object->nphdrs; i++) {
                const ElfW(Phdr) *ph = &object->phdrs[i];

                if (ph->p_type == PT_LOAD &&
                    want->addr - (object->base + ph->p_vaddr) < ph->p_memsz) {
                        *want->ret = *object;
                        return 1;
                }
        }
        return 0;
}

int ls_object_of_address(const void *addr, struct ls_object *ret)
{
        struct by_address want = { (uintptr_t)addr, ret };

        return ls_objects_each(holds_address, &want);
}
