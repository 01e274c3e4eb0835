/* Names of functions in an object file: see symbols.h. libdwfl finds separate debug files by build id; what lies beside the
 * file, where anybody may have put it, is found here. Nothing of such files is mapped: one that shrinks kills its reader. */
#include "record/symbols.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "formats/wire/open_file.h"

#define NAME_MAX_SHOWN 512
#define BESIDE_MAX (256 << 20)          /* bytes of a debug file beside its program, which is copied */
#define DEBUG_DIR "/usr/lib/debug"
#define PAGE 4096u
#define SERVER_NS 60000000000ull        /* a debuginfod server may cost so much in all; then it is asked no more */

struct file { int fd; Elf *elf; char path[PATH_MAX]; };         /* open, until libdwfl has it */

struct ls_symbols {
        struct file file;
        Dwfl *dwfl;
        Dwfl_Module *module;
        struct ls_kernel_symbols *kernel;
        const char *prefix;             /* of each name */
};

/* A copy that stays as it is, of a file with these bytes. Returns a descriptor or -1. */
static int copy_checked(const char *path, GElf_Word crc)
{
        static uint8_t buf[64 << 10];
        struct stat st;
        int from = ls_open_regular(path, &st), to = -1;
        uLong sum = crc32(0, NULL, 0);
        ssize_t n = -1;

        if (from < 0)
                return -1;
        if (st.st_size <= BESIDE_MAX)
                to = memfd_create("debug", MFD_CLOEXEC);
        for (off_t left = BESIDE_MAX; to >= 0 && left > 0 && (n = read(from, buf, sizeof(buf))) > 0; left -= n) {
                sum = crc32(sum, buf, (uInt)n);
                if (write(to, buf, (size_t)n) != n)
                        break;
        }
        close(from);
        if (to >= 0 && (n != 0 || sum != crc)) {
                close(to);
                to = -1;
        }
        return to;
}

/* The file that .gnu_debuglink names, beside the program or in .debug there. */
static int find_beside(const char *file_name, const char *link, GElf_Word crc)
{
        static const char *const places[] = { "", ".debug/" };
        char dir[PATH_MAX], path[2 * PATH_MAX];
        int fd = -1;

        if (!file_name || !link || strchr(link, '/') || strlen(file_name) >= sizeof(dir))
                return -1;
        strcpy(dir, file_name);
        dirname(dir);
        for (unsigned i = 0; fd < 0 && i < sizeof(places) / sizeof(*places); i++) {
                snprintf(path, sizeof(path), "%s/%s%s", dir, places[i], link);
                fd = copy_checked(path, crc);
        }
        return fd;
}

/* A file of the system's, by a name that another file holds: dwz's for parts that many have. */
static int find_common(const char *name)
{
        char path[PATH_MAX];
        struct stat st;
        int fd;

        if (!realpath(name, path) || strncmp(path, DEBUG_DIR "/", strlen(DEBUG_DIR "/")))
                return -1;
        fd = ls_open_regular(path, &st);
        return fd < 0 ? -1 : fd;
}

static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file_name,
                          const char *link, GElf_Word crc, char **ret_name)
{
        int fd = dwfl_build_id_find_debuginfo(module, userdata, name, base, file_name, link, crc, ret_name);

        if (fd < 0)
                fd = find_beside(file_name, link, crc);
        if (fd >= 0)
                return fd;
        if (link && strchr(link, '/'))
                return find_common(link);
        return dwfl_standard_find_debuginfo(module, userdata, name, base, file_name, link, crc, ret_name);
}

/* The module's file is given, as it was opened. */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **ret_name, Elf **ret_elf)
{
        struct file *file = *userdata;
        int fd = file->fd;

        (void)module;
        (void)name;
        (void)base;
        *ret_name = strdup(file->path);
        *ret_elf = file->elf;
        file->elf = NULL;
        file->fd = -1;
        return fd;
}

static char *debug_path = (char *)DEBUG_DIR;    /* and nowhere that others may write */

static const Dwfl_Callbacks callbacks = {
        .find_elf = find_elf,
        .find_debuginfo = find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &debug_path,
};

static uint64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* libdwfl asks the servers in DEBUGINFOD_URLS by itself. One that does not answer must not hold the recording up. */
static uint64_t server_begin(void)
{
        setenv("DEBUGINFOD_TIMEOUT", "5", 0);
        setenv("DEBUGINFOD_MAXTIME", "30", 0);
        return now_ns();
}

static void server_end(uint64_t began)
{
        static uint64_t spent;

        spent += now_ns() - began;
        if (spent > SERVER_NS)
                unsetenv("DEBUGINFOD_URLS");
}

int ls_symbols_is_vdso(const char *path)
{
        return !strcmp(path, "[vdso]") || !strcmp(path, "linux-vdso.so.1");
}

/* The vdso as a file: that of this process, since one kernel has one. Returns a descriptor or -1. */
static int vdso_file(void)
{
        const Elf64_Ehdr *eh = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
        int fd = eh ? memfd_create("vdso", MFD_CLOEXEC) : -1;
        size_t size = eh ? eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize : 0;

        if (fd >= 0 && write(fd, eh, size) == (ssize_t)size)
                return fd;
        if (fd >= 0)
                close(fd);
        return -1;
}

static int has_build_id(Elf *elf, const uint8_t *want, size_t len)
{
        const void *bits;

        return !len || (dwelf_elf_gnu_build_id(elf, &bits) == (ssize_t)len && !memcmp(bits, want, len));
}

static void close_file(struct file *f)
{
        if (f->elf)
                elf_end(f->elf);
        if (f->fd >= 0)
                close(f->fd);
        f->elf = NULL;
        f->fd = -1;
}

/* path: as the program has it; the name that is kept has no links and no "..". */
static int open_file(struct file *f, const char *path)
{
        char link[LS_FD_PATH];
        struct stat st;
        ssize_t n = 0;

        f->elf = NULL;
        f->fd = ls_symbols_is_vdso(path) ? vdso_file() : ls_open_regular(path, &st);
        if (f->fd < 0)
                return -ENOENT;
        ls_fd_path(link, f->fd);
        n = readlink(link, f->path, sizeof(f->path) - 1);
        f->path[n > 0 ? n : 0] = 0;
        elf_version(EV_CURRENT);
        f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
        if (f->elf && elf_kind(f->elf) == ELF_K_ELF)
                return 0;
        close_file(f);
        return -EINVAL;
}

/* Where the file asks to be loaded. */
static int bounds(Elf *elf, GElf_Addr *ret_start, GElf_Addr *ret_end)
{
        size_t n;

        *ret_start = UINT64_MAX;
        *ret_end = 0;
        if (elf_getphdrnum(elf, &n) < 0)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                GElf_Phdr ph;

                if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || ph.p_vaddr + ph.p_memsz < ph.p_vaddr)
                        continue;
                if (ph.p_vaddr < *ret_start)
                        *ret_start = ph.p_vaddr & ~(GElf_Addr)(PAGE - 1);
                if (ph.p_vaddr + ph.p_memsz > *ret_end)
                        *ret_end = ph.p_vaddr + ph.p_memsz;
        }
        return *ret_start < *ret_end ? 0 : -EINVAL;
}

static int open_module(struct ls_symbols *s, const char *path, const uint8_t *build_id, size_t build_id_len)
{
        GElf_Addr start, end, bias;
        void **userdata;

        if (ls_symbols_is_vdso(path))
                s->prefix = "[vdso] ";
        s->dwfl = dwfl_begin(&callbacks);
        if (!s->dwfl)
                return -ENOMEM;
        if (open_file(&s->file, path) < 0 || !has_build_id(s->file.elf, build_id, build_id_len) ||
            bounds(s->file.elf, &start, &end) < 0)
                return -ENOENT;
        s->module = dwfl_report_module(s->dwfl, path, start, end);
        if (!s->module || dwfl_report_end(s->dwfl, NULL, NULL) != 0)
                return -ENOENT;
        dwfl_module_info(s->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
        *userdata = &s->file;
        return dwfl_module_getelf(s->module, &bias) ? 0 : -ENOENT;
}

struct ls_symbols *ls_symbols_open(const char *path, const uint8_t *build_id, size_t build_id_len)
{
        struct ls_symbols *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->prefix = "";
        s->file.fd = -1;
        if (!strcmp(path, LS_KERNEL_PATH)) {
                s->prefix = LS_KERNEL_PATH " ";
                s->kernel = ls_kernel_symbols_open("/proc/kallsyms");
                return s;
        }
        if (open_module(s, path, build_id, build_id_len) < 0) {
                ls_symbols_close(s);
                return NULL;
        }
        return s;
}

void ls_symbols_close(struct ls_symbols *s)
{
        if (!s)
                return;
        if (s->dwfl)
                dwfl_end(s->dwfl);
        close_file(&s->file);
        ls_kernel_symbols_close(s->kernel);
        free(s);
}

/* The address that the file itself gives to what is at this offset. */
static int address_of(Elf *elf, uint64_t file_offset, GElf_Addr *ret)
{
        size_t n;

        if (elf_getphdrnum(elf, &n) < 0)
                return -ENOENT;
        for (size_t i = 0; i < n; i++) {
                GElf_Phdr ph;

                if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || file_offset < ph.p_offset ||
                    file_offset - ph.p_offset >= ph.p_filesz)
                        continue;
                *ret = ph.p_vaddr + (file_offset - ph.p_offset);
                return 0;
        }
        return -ENOENT;
}

/* The address in the module, with libdwfl's bias. */
static int module_address(struct ls_symbols *s, uint64_t file_offset, GElf_Addr *ret)
{
        GElf_Addr bias, addr;
        Elf *elf = s->module ? dwfl_module_getelf(s->module, &bias) : NULL;

        if (!elf || address_of(elf, file_offset, &addr) < 0)
                return -ENOENT;
        *ret = addr + bias;
        return 0;
}

static int kernel_name(struct ls_symbols *s, uint64_t offset, char *ret_name, size_t size)
{
        if (!s->kernel || ls_kernel_symbols_find(s->kernel, LS_KERNEL_START + offset, ret_name, size) < 0)
                snprintf(ret_name, size, "%s", LS_KERNEL_PATH);
        return 0;
}

static int is_function(const GElf_Sym *sym)
{
        unsigned type = GELF_ST_TYPE(sym->st_info);

        return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && sym->st_shndx != SHN_UNDEF);
}

static int module_name(struct ls_symbols *s, uint64_t file_offset, char *ret_name, size_t size)
{
        uint64_t began = server_begin();
        GElf_Addr addr;
        GElf_Off off;
        GElf_Sym sym;
        const char *name;

        if (module_address(s, file_offset, &addr) < 0)
                return -ENOENT;
        name = dwfl_module_addrinfo(s->module, addr, &off, &sym, NULL, NULL, NULL);
        server_end(began);
        /* A symbol with a size must hold the address; one without is the nearest before, which is a guess. */
        if (!name || !*name || !is_function(&sym) || (sym.st_size && off >= sym.st_size))
                return -ENOENT;
        ls_symbols_demangle(name, ret_name, size);
        return 0;
}

int ls_symbols_find(struct ls_symbols *s, uint64_t file_offset, char *ret_name, size_t size)
{
        char name[NAME_MAX_SHOWN];
        int err = s->module ? module_name(s, file_offset, name, sizeof(name))
                            : kernel_name(s, file_offset, name, sizeof(name));

        if (err < 0)
                return err;
        /* "[kernel]" alone when its symbols are not shown. */
        snprintf(ret_name, size, "%s%s", strcmp(name, LS_KERNEL_PATH) ? s->prefix : "", name);
        return 0;
}

/* libdwfl finds the unit in .debug_aranges, which clang does not write: then each unit is asked. */
static Dwarf_Line *find_line(struct ls_symbols *s, GElf_Addr addr)
{
        Dwarf_Addr bias = 0;
        Dwarf_Die *unit = dwfl_module_addrdie(s->module, addr, &bias);

        if (!unit)
                do
                        unit = dwfl_module_nextcu(s->module, unit, &bias);
                while (unit && dwarf_haspc(unit, addr - bias) <= 0);
        return unit ? dwarf_getsrc_die(unit, addr - bias) : NULL;
}

int ls_symbols_line(struct ls_symbols *s, uint64_t file_offset, const char **ret_file, unsigned *ret_line)
{
        uint64_t began = server_begin();
        Dwarf_Line *line = NULL;
        GElf_Addr addr;
        int number = 0;

        if (module_address(s, file_offset, &addr) == 0)
                line = find_line(s, addr);
        server_end(began);
        if (!line || dwarf_lineno(line, &number) != 0 || number <= 0)
                return -ENOENT;
        *ret_file = dwarf_linesrc(line, NULL, NULL);
        *ret_line = (unsigned)number;
        return *ret_file ? 0 : -ENOENT;
}

size_t ls_symbols_build_id(const char *path, uint8_t *ret_id, size_t size)
{
        const void *bits;
        struct file f;
        ssize_t n;

        if (open_file(&f, path) < 0)
                return 0;
        n = dwelf_elf_gnu_build_id(f.elf, &bits);
        if (n > 0 && (size_t)n <= size)
                memcpy(ret_id, bits, (size_t)n);
        close_file(&f);
        return n > 0 && (size_t)n <= size ? (size_t)n : 0;
}
