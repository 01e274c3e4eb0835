/* See object.h. */
#include "record/worker/object.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsample/inject/elf_file.h"

#define PHDRS_MOST 64u
#define DYNAMIC_MOST 512u
#define CHAIN_MOST 4096u
#define NOTES_MOST 64u
#define NAME_MOST 128u

static const char *const symbols[LS_OBJECT_NSYMBOLS] = {
#define NAME(name) name,
        LS_OBJECT_SYMBOLS(NAME)
#undef NAME
};

unsigned ls_object_symbol(const char *name)
{
        unsigned i = 0;

        while (i < LS_OBJECT_NSYMBOLS && strcmp(symbols[i], name) != 0)
                i++;
        return i;
}

struct loaded {                         /* an object in memory */
        int fd;
        uint64_t base, bias;
        unsigned n;
        Elf64_Phdr ph[PHDRS_MOST];
        uint64_t symtab, strtab, hash;  /* addresses; 0 = it has none */
};

static int get(const struct loaded *o, uint64_t at, void *to, size_t n)
{
        return at > INT64_MAX || pread(o->fd, to, n, (off_t)at) != (ssize_t)n ? -EFAULT : 0;
}

/* A string of less than size bytes, as far as it can be read. */
static void get_string(const struct loaded *o, uint64_t at, char *to, size_t size)
{
        size_t n = 0;

        while (n + 1 < size && get(o, at + n, to + n, 1) == 0 && to[n])
                n++;
        to[n] = 0;
}

/* The headers. Returns 0 or -ENOEXEC. */
static int get_headers(struct loaded *o, struct ls_object *ret)
{
        Elf64_Ehdr eh;

        if (get(o, o->base, &eh, sizeof(eh)) < 0 || memcmp(eh.e_ident, ELFMAG, SELFMAG))
                return -ENOEXEC;
        ret->bits32 = eh.e_machine == EM_386 ||
                      (eh.e_machine == EM_X86_64 && eh.e_ident[EI_CLASS] != ELFCLASS64);
        ret->other_arch = !ret->bits32 && eh.e_machine != EM_X86_64;
        if (ret->bits32 || ret->other_arch || eh.e_phentsize != sizeof(*o->ph) ||
            eh.e_phnum > PHDRS_MOST ||
            get(o, o->base + eh.e_phoff, o->ph, eh.e_phnum * sizeof(*o->ph)) < 0)
                return 0;
        o->n = eh.e_phnum;
        ret->is_elf = 1;
        return 0;
}

/* What is to be added to the object's own addresses. */
static uint64_t bias_of(const struct loaded *o)
{
        for (unsigned i = 0; i < o->n; i++)
                if (o->ph[i].p_type == PT_LOAD)
                        return o->base - (o->ph[i].p_vaddr & ~(uint64_t)4095) +
                               (o->ph[i].p_offset & ~(uint64_t)4095);
        return o->base;
}

/* The loader has made addresses of most; those of the kernel's object are as in its file. */
static uint64_t absolute(const struct loaded *o, uint64_t value)
{
        return value < o->base ? value + o->bias : value;
}

static int is_sanitizer(const char *library)
{
        static const char *const names[] = { "libasan.", "libclang_rt.asan", "libtsan.",
                                             "libhwasan.", "liblsan." };

        for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (!strncmp(library, names[i], strlen(names[i])))
                        return 1;
        return 0;
}

/* The dynamic section: where its tables are, and then which libraries it needs. */
static void get_dynamic(struct loaded *o, uint64_t at, struct ls_object *ret)
{
        char name[NAME_MOST];

        for (unsigned i = 0; i < 2 * DYNAMIC_MOST; i++) {
                Elf64_Dyn d;

                if (get(o, at + i % DYNAMIC_MOST * sizeof(d), &d, sizeof(d)) < 0)
                        return;
                if (d.d_tag == DT_NULL) {
                        if (i >= DYNAMIC_MOST)
                                return;
                        i = DYNAMIC_MOST - 1;   /* once more */
                } else if (d.d_tag == DT_SYMTAB) {
                        o->symtab = absolute(o, d.d_un.d_ptr);
                } else if (d.d_tag == DT_STRTAB) {
                        o->strtab = absolute(o, d.d_un.d_ptr);
                } else if (d.d_tag == DT_GNU_HASH) {
                        o->hash = absolute(o, d.d_un.d_ptr);
                } else if (d.d_tag == DT_NEEDED && i >= DYNAMIC_MOST && o->strtab) {
                        get_string(o, o->strtab + d.d_un.d_val, name, sizeof(name));
                        ret->sanitizer |= (uint8_t)is_sanitizer(name);
                }
        }
}

static uint32_t gnu_hash(const char *name)
{
        uint32_t h = 5381;

        for (; *name; name++)
                h = h * 33 + (unsigned char)*name;
        return h;
}

/* 1 when the symbol of this index is the one. */
static int is_it(const struct loaded *o, uint32_t index, const char *name, Elf64_Sym *ret)
{
        char own[64];
        size_t n = strlen(name) + 1;

        return n <= sizeof(own) &&
               get(o, o->symtab + (uint64_t)index * sizeof(*ret), ret, sizeof(*ret)) == 0 &&
               get(o, o->strtab + ret->st_name, own, n) == 0 && !memcmp(own, name, n) &&
               ret->st_shndx != SHN_UNDEF && ret->st_value;
}

/* The address of a defined symbol; 0 = there is none. */
static uint64_t find(const struct loaded *o, const char *name)
{
        struct { uint32_t buckets, first, bloom, shift; } head;
        uint32_t hash = gnu_hash(name), index, chain;
        uint64_t buckets;
        Elf64_Sym sym;

        if (!o->symtab || !o->strtab || !o->hash || get(o, o->hash, &head, sizeof(head)) < 0 ||
            !head.buckets)
                return 0;
        buckets = o->hash + sizeof(head) + 8 * (uint64_t)head.bloom;
        if (get(o, buckets + 4 * (uint64_t)(hash % head.buckets), &index, 4) < 0 ||
            index < head.first)
                return 0;
        for (uint32_t i = 0; i < CHAIN_MOST; i++, index++) {
                if (get(o, buckets + 4 * ((uint64_t)head.buckets + index - head.first), &chain, 4) <
                    0)
                        return 0;
                if ((chain | 1) == (hash | 1) && is_it(o, index, name, &sym))
                        return o->bias + sym.st_value;
                if (chain & 1)
                        break;
        }
        return 0;
}

/* The address that an instruction of these bytes loads, relative to itself, among the first of the
 * function at. 0 = none. */
static uint64_t loaded_by(const struct loaded *o, uint64_t at, const uint8_t load[3])
{
        int32_t distance;
        uint8_t code[16];

        if (!at || get(o, at, code, sizeof(code)) < 0)
                return 0;
        for (unsigned i = 0; i + 7 <= sizeof(code); i++)
                if (!memcmp(code + i, load, 3)) {
                        memcpy(&distance, code + i + 3, 4);
                        return at + i + 7 + (uint64_t)(int64_t)distance;
                }
        return 0;
}

static uint64_t symbol(const struct ls_object *of, const char *name)
{
        return of->symbols[ls_object_symbol(name)];
}

/* Where errno is from the thread pointer: __errno_location begins by reading that from a word of
 * its own. */
static void get_thread_data(const struct loaded *o, struct ls_object *ret)
{
        static const uint8_t load[] = { 0x48, 0x8b, 0x05 };     /* mov offset(%rip), %rax */
        uint64_t at = loaded_by(o, symbol(ret, "__errno_location"), load),
                 within = symbol(ret, "errno") - o->bias;
        int64_t offset;

        if (!at || !symbol(ret, "errno") || get(o, at, &offset, sizeof(offset)) < 0)
                return;
        offset = (int64_t)((uint64_t)offset - within);
        for (unsigned i = 0; i < o->n && offset < 0 && offset >= -LS_OBJECT_TLS_FAR; i++)
                if (o->ph[i].p_type == PT_TLS && o->ph[i].p_filesz <= LS_OBJECT_TLS &&
                    within < o->ph[i].p_memsz) {
                        ret->thread = (struct ls_thread_data){ o->bias + o->ph[i].p_vaddr,
                                                               o->ph[i].p_filesz, offset };
                        return;
                }
}

/* gnu_get_libc_version does nothing but to load the address of the text. */
static void get_version(const struct loaded *o, struct ls_object *ret)
{
        static const uint8_t load[] = { 0x48, 0x8d, 0x05 };     /* lea text(%rip), %rax */
        uint64_t at = loaded_by(o, symbol(ret, "gnu_get_libc_version"), load);
        unsigned major, minor;
        char text[16];

        if (!at)
                return;
        get_string(o, at, text, sizeof(text));
        if (sscanf(text, "%u.%u", &major, &minor) == 2 && minor < 100 && major < 100)
                ret->libc_version = 100 * major + minor;
}

static void get_build_id(const struct loaded *o, const Elf64_Phdr *ph, struct ls_object *ret)
{
        uint64_t at = o->bias + ph->p_vaddr, end = at + ph->p_memsz;
        Elf64_Nhdr note;

        if (end < at)
                return;
        for (unsigned i = 0;
             i < NOTES_MOST && end - at >= sizeof(note) && get(o, at, &note, sizeof(note)) == 0;
             i++) {
                uint64_t name = ((uint64_t)note.n_namesz + 3) & ~3ull,
                         desc = ((uint64_t)note.n_descsz + 3) & ~3ull;

                if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz &&
                    note.n_descsz <= LS_OBJECT_ID) {
                        if (get(o, at + sizeof(note) + name, ret->id, note.n_descsz) == 0)
                                ret->id_len = note.n_descsz;
                        return;
                }
                if (name + desc > end - at - sizeof(note))
                        return;
                at += sizeof(note) + name + desc;
        }
}

static void take_interpreter(const char *path, struct ls_object *ret)
{
        ret->has_interpreter = 1;
        ret->is_glibc = strstr(path, "ld-linux-x86-64") != NULL;
        ret->is_musl = strstr(path, "ld-musl") != NULL;
}

static void get_segments(struct loaded *o, struct ls_object *ret)
{
        char path[NAME_MOST];

        for (unsigned i = 0; i < o->n; i++) {
                const Elf64_Phdr *ph = &o->ph[i];

                if (ph->p_type == PT_INTERP) {
                        get_string(o, o->bias + ph->p_vaddr, path, sizeof(path));
                        take_interpreter(path, ret);
                } else if (ph->p_type == PT_DYNAMIC) {
                        get_dynamic(o, o->bias + ph->p_vaddr, ret);
                } else if (ph->p_type == PT_NOTE && !ret->id_len) {
                        get_build_id(o, ph, ret);
                } else if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) && !ret->code_end) {
                        ret->code_end = o->bias + ph->p_vaddr + ph->p_memsz;
                }
        }
}

int ls_object_of_memory(int fd, uint64_t base, struct ls_object *ret)
{
        struct loaded o = { .fd = fd, .base = base };
        int err;

        memset(ret, 0, sizeof(*ret));
        err = get_headers(&o, ret);
        if (err || !ret->is_elf)
                return err;
        o.bias = ret->bias = bias_of(&o);
        get_segments(&o, ret);
        for (unsigned i = 0; i < LS_OBJECT_NSYMBOLS; i++)
                ret->symbols[i] = find(&o, symbols[i]);
        ret->sanitizer |= find(&o, "__asan_init") || find(&o, "__tsan_init");
        get_thread_data(&o, ret);
        get_version(&o, ret);
        return 0;
}

/* What it asks its first byte to be loaded at: 0 but for programs at fixed addresses. */
static int wanted_address(int fd, uint64_t *ret)
{
        Elf64_Ehdr eh;
        Elf64_Phdr ph;

        if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || eh.e_phentsize != sizeof(ph))
                return -ENOEXEC;
        for (unsigned i = 0; i < eh.e_phnum && i < PHDRS_MOST; i++) {
                uint64_t at = eh.e_phoff + i * sizeof(ph);

                if (at > INT64_MAX || pread(fd, &ph, sizeof(ph), (off_t)at) != sizeof(ph))
                        return -ENOEXEC;
                if (ph.p_type == PT_LOAD) {
                        *ret = ph.p_vaddr - ph.p_offset;
                        return 0;
                }
        }
        return -ENOEXEC;
}

int ls_object_of_file(int fd, struct ls_object *ret)
{
        struct ls_elf_facts facts;
        struct stat st;
        int err;

        memset(ret, 0, sizeof(*ret));
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -ENOEXEC;
        err = ls_elf_inspect(fd, (uint64_t)st.st_size, &facts);
        if (err < 0)
                return -ENOEXEC;
        ret->bits32 = facts.bits32;
        ret->other_arch = facts.other_arch;
        ret->sanitizer = facts.sanitizer;
        ret->is_elf = !facts.bits32 && !facts.other_arch && wanted_address(fd, &ret->bias) == 0;
        if (!ret->is_elf)
                return 0;
        if (*facts.interpreter)
                take_interpreter(facts.interpreter, ret);
        if (facts.exports_lua_newstate) {
                ret->symbols[ls_object_symbol("lua_newstate")] = 1;
                ret->symbols[ls_object_symbol("luaJIT_setmode")] =
                        (uint64_t)ls_elf_contains(fd, (uint64_t)st.st_size, "luaJIT_setmode");
        } else {
                ret->hides_luajit = (uint8_t)ls_elf_contains(fd, (uint64_t)st.st_size, "LuaJIT 2.");
        }
        return 0;
}
