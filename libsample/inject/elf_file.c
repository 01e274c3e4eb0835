/* See elf_file.h. Every offset and count is compared with the file's size before it is used; loops
 * are bounded by constants, so that a hostile file costs little time. */

#include "libsample/inject/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_PHDRS 64
#define MAX_DYNAMIC 4096
#define MAX_CHAIN 4096          /* symbols looked at in one hash bucket */
#define MAX_NAME 64             /* longest name compared, terminator included */
#define MAX_SCAN (UINT64_C(64) << 20)   /* some 20 ms, for those who wait meanwhile */
#define SCAN_BLOCK (256u << 10)

struct elf {                    /* an ELF file that is being read */
        int fd;
        uint64_t size;
        unsigned nphdrs;
        Elf64_Phdr phdrs[MAX_PHDRS];
        uint64_t symtab, strtab, strsz, gnu_hash, hash; /* addresses from DT_*; 0 = not there */
};

static int read_at(const struct elf *elf, uint64_t offset, void *buf, size_t n)
{
        if (offset > elf->size || n > elf->size - offset)
                return -ENOEXEC;
        return pread(elf->fd, buf, n, (off_t)offset) == (ssize_t)n ? 0 : -ENOEXEC;
}

/* Reads n bytes that will be loaded at addr. */
static int read_addr(const struct elf *elf, uint64_t addr, void *buf, size_t n)
{
        for (unsigned i = 0; i < elf->nphdrs; i++) {
                const Elf64_Phdr *ph = &elf->phdrs[i];
                uint64_t at = addr - ph->p_vaddr;

                if (ph->p_type == PT_LOAD && addr >= ph->p_vaddr && at < ph->p_filesz &&
                    n <= ph->p_filesz - at && ph->p_offset <= elf->size)
                        return read_at(elf, ph->p_offset + at, buf, n);
        }
        return -ENOEXEC;
}

/* String at offset in the dynamic string table, cut to MAX_NAME - 1. */
static int read_string(const struct elf *elf, uint64_t offset, char buf[MAX_NAME])
{
        size_t n = MAX_NAME - 1;

        buf[0] = '\0';
        if (!elf->strtab || offset >= elf->strsz)
                return -ENOEXEC;
        if (n > elf->strsz - offset)
                n = (size_t)(elf->strsz - offset);
        buf[n] = '\0';
        return read_addr(elf, elf->strtab + offset, buf, n);
}

/* 1 when symbol number i is a defined function or object called name. */
static int symbol_is(const struct elf *elf, uint64_t i, const char *name)
{
        char text[MAX_NAME];
        Elf64_Sym sym;

        if (i > UINT32_MAX || read_addr(elf, elf->symtab + i * sizeof sym, &sym, sizeof sym) < 0)
                return 0;
        if (sym.st_shndx == SHN_UNDEF || read_string(elf, sym.st_name, text) < 0)
                return 0;
        return strcmp(text, name) == 0;
}

static uint32_t gnu_hash_of(const char *name)
{
        uint32_t h = 5381;

        for (; *name; name++)
                h = h * 33 + (unsigned char)*name;
        return h;
}

static int has_symbol_gnu(const struct elf *elf, const char *name)
{
        uint32_t head[4], bucket, word, want = gnu_hash_of(name);
        uint64_t buckets, chains;

        if (read_addr(elf, elf->gnu_hash, head, sizeof head) < 0 || head[0] == 0)
                return 0;
        buckets = elf->gnu_hash + sizeof head + (uint64_t)head[2] * 8;
        chains = buckets + (uint64_t)head[0] * 4;
        if (read_addr(elf, buckets + (uint64_t)(want % head[0]) * 4, &bucket, 4) < 0 ||
            bucket < head[1])
                return 0;
        for (uint64_t i = bucket; i < (uint64_t)bucket + MAX_CHAIN; i++) {
                if (read_addr(elf, chains + (i - head[1]) * 4, &word, 4) < 0)
                        return 0;
                if ((word | 1) == (want | 1) && symbol_is(elf, i, name))
                        return 1;
                if (word & 1)
                        return 0;
        }
        return 0;
}

static uint32_t sysv_hash_of(const char *name)
{
        uint32_t h = 0;

        for (; *name; name++) {
                h = (h << 4) + (unsigned char)*name;
                h ^= (h & 0xf0000000u) >> 24;
                h &= 0x0fffffffu;
        }
        return h;
}

static int has_symbol_sysv(const struct elf *elf, const char *name)
{
        uint32_t head[2], i;

        if (read_addr(elf, elf->hash, head, sizeof head) < 0 || head[0] == 0)
                return 0;
        if (read_addr(elf, elf->hash + 8 + (uint64_t)(sysv_hash_of(name) % head[0]) * 4, &i, 4) < 0)
                return 0;
        for (unsigned n = 0; i && i < head[1] && n < MAX_CHAIN; n++) {
                if (symbol_is(elf, i, name))
                        return 1;
                if (read_addr(elf, elf->hash + 8 + ((uint64_t)head[0] + i) * 4, &i, 4) < 0)
                        return 0;
        }
        return 0;
}

static int has_symbol(const struct elf *elf, const char *name)
{
        if (!elf->symtab || !elf->strtab)
                return 0;
        if (elf->gnu_hash)
                return has_symbol_gnu(elf, name);
        return elf->hash ? has_symbol_sysv(elf, name) : 0;
}

static const char *const sanitizers[] = { "libasan.", "libclang_rt.asan", "libtsan.", "libhwasan.",
                                          "liblsan." };

static void look_at_needed(const char *needed, struct ls_elf_facts *ret)
{
        if (strncmp(needed, "libluajit", 9) == 0)
                ret->needs_luajit = 1;
        for (size_t i = 0; i < sizeof sanitizers / sizeof *sanitizers; i++) {
                if (strncmp(needed, sanitizers[i], strlen(sanitizers[i])) == 0)
                        ret->sanitizer = 1;
        }
}

/* The dynamic section: first where its tables are, then the libraries that it names. */
static void read_dynamic(struct elf *elf, const Elf64_Phdr *ph, struct ls_elf_facts *ret)
{
        uint64_t n = ph->p_filesz / sizeof(Elf64_Dyn);
        char needed[MAX_NAME];
        Elf64_Dyn dyn;

        if (n > MAX_DYNAMIC)
                n = MAX_DYNAMIC;
        for (int pass = 0; pass < 2; pass++) {
                for (uint64_t i = 0; i < n; i++) {
                        if (ph->p_offset > elf->size ||
                            read_at(elf, ph->p_offset + i * sizeof dyn, &dyn, sizeof dyn) < 0 ||
                            dyn.d_tag == DT_NULL)
                                break;
                        switch (dyn.d_tag) {
                        case DT_SYMTAB: elf->symtab = dyn.d_un.d_ptr; break;
                        case DT_STRTAB: elf->strtab = dyn.d_un.d_ptr; break;
                        case DT_STRSZ: elf->strsz = dyn.d_un.d_val; break;
                        case DT_GNU_HASH: elf->gnu_hash = dyn.d_un.d_ptr; break;
                        case DT_HASH: elf->hash = dyn.d_un.d_ptr; break;
                        case DT_NEEDED:
                                if (pass && read_string(elf, dyn.d_un.d_val, needed) == 0)
                                        look_at_needed(needed, ret);
                        }
                }
        }
        ret->exports_lua_newstate = (uint8_t)has_symbol(elf, "lua_newstate");
        ret->exports_profiler = (uint8_t)has_symbol(elf, "luaJIT_profile_start");
        ret->sanitizer |=
                (uint8_t)(has_symbol(elf, "__asan_init") || has_symbol(elf, "__tsan_init"));
}

static void read_interpreter(const struct elf *elf, const Elf64_Phdr *ph, struct ls_elf_facts *ret)
{
        size_t n = sizeof ret->interpreter - 1;

        if (ph->p_filesz < n)
                n = (size_t)ph->p_filesz;
        if (n == 0 || read_at(elf, ph->p_offset, ret->interpreter, n) < 0)
                strcpy(ret->interpreter, "?");
        ret->interpreter[sizeof ret->interpreter - 1] = '\0';
}

static int read_headers(struct elf *elf)
{
        Elf64_Ehdr eh;

        if (read_at(elf, 0, &eh, sizeof eh) < 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
            eh.e_phentsize != sizeof(Elf64_Phdr) || eh.e_phnum == 0)
                return -ENOEXEC;
        elf->nphdrs = eh.e_phnum < MAX_PHDRS ? eh.e_phnum : MAX_PHDRS;
        return read_at(elf, eh.e_phoff, elf->phdrs, elf->nphdrs * sizeof elf->phdrs[0]);
}

int ls_elf_inspect(int fd, uint64_t size, struct ls_elf_facts *ret)
{
        struct elf elf = { .fd = fd, .size = size };
        Elf64_Ehdr eh;

        memset(ret, 0, sizeof *ret);
        if (read_at(&elf, 0, &eh, sizeof(Elf32_Ehdr)) < 0 ||
            memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
            (eh.e_type != ET_EXEC && eh.e_type != ET_DYN))
                return -ENOEXEC;
        if (eh.e_machine != EM_X86_64) {
                ret->bits32 = eh.e_machine == EM_386;
                ret->other_arch = !ret->bits32;
                return 0;
        }
        if (eh.e_ident[EI_CLASS] != ELFCLASS64) {       /* x32 */
                ret->bits32 = 1;
                return 0;
        }
        if (read_headers(&elf) < 0)
                return -ENOEXEC;
        for (unsigned i = 0; i < elf.nphdrs; i++) {
                if (elf.phdrs[i].p_type == PT_INTERP)
                        read_interpreter(&elf, &elf.phdrs[i], ret);
        }
        for (unsigned i = 0; i < elf.nphdrs; i++) {
                if (elf.phdrs[i].p_type == PT_DYNAMIC)
                        read_dynamic(&elf, &elf.phdrs[i], ret);
        }
        return 0;
}

struct scan { const char *text; char *block; uint64_t left; };  /* left: bytes that may still be
                                                                 * read */

static int in_range(const struct elf *elf, struct scan *s, uint64_t offset, uint64_t n)
{
        size_t len = strlen(s->text), kept = 0;
        int found = 0;

        if (offset > elf->size)
                return 0;
        if (n > elf->size - offset)
                n = elf->size - offset;
        while (!found && n && s->left) {        /* the last len - 1 bytes of a block are kept: text
                                                 * may cross */
                size_t room = SCAN_BLOCK - kept;
                ssize_t got;

                if (room > n)
                        room = (size_t)n;
                if (room > s->left)
                        room = (size_t)s->left;
                got = pread(elf->fd, s->block + kept, room, (off_t)offset);
                if (got <= 0)
                        break;
                offset += (uint64_t)got;
                n -= (uint64_t)got;
                s->left -= (uint64_t)got;
                got += (ssize_t)kept;
                found = memmem(s->block, (size_t)got, s->text, len) != NULL;
                kept = (size_t)got < len - 1 ? (size_t)got : len - 1;
                memmove(s->block, s->block + got - kept, kept);
        }
        return found;
}

/* Constants lie in what is loaded to be read only, or with the code where a linker has not parted
 * them. */
static int in_segments(const struct elf *elf, struct scan *s, uint32_t executable)
{
        for (unsigned i = 0; i < elf->nphdrs; i++) {
                const Elf64_Phdr *ph = &elf->phdrs[i];

                if (ph->p_type == PT_LOAD && !(ph->p_flags & PF_W) &&
                    (ph->p_flags & PF_X) == executable &&
                    in_range(elf, s, ph->p_offset, ph->p_filesz))
                        return 1;
        }
        return 0;
}

int ls_elf_contains(int fd, uint64_t size, const char *text)
{
        struct scan s = { .text = text, .left = MAX_SCAN };
        struct elf elf = { .fd = fd, .size = size };
        int found;

        s.block =
                mmap(NULL, SCAN_BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (s.block == MAP_FAILED)
                return 0;
        if (read_headers(&elf) < 0)
                found = in_range(&elf, &s, 0, size);
        else
                found = in_segments(&elf, &s, 0) || in_segments(&elf, &s, PF_X);
        munmap(s.block, SCAN_BLOCK);
        return found;
}
