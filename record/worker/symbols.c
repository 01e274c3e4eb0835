/* Names of functions in an object file: see symbols.h. libdwfl finds separate debug files by build
 * id. */
#include "record/worker/symbols.h"
#include "record/worker/symbols_demangle.h"
#include "formats/wire/clock.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_MAX_SHOWN 512
#define SERVER_NS                                                                                  \
        60000000000ull /* a debuginfod server may cost so much in all; then it is asked no more */

struct ls_symbols {
        Dwfl *dwfl;
        Dwfl_Module *module;
        struct ls_kernel_symbols *kernel;
        const char *prefix;             /* of each name */
};

static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
};

/* libdwfl asks the servers in DEBUGINFOD_URLS by itself. One that does not answer must not hold the
 * recording up. */
static uint64_t server_begin(void)
{
        setenv("DEBUGINFOD_TIMEOUT", "5", 0);
        setenv("DEBUGINFOD_MAXTIME", "30", 0);
        return ls_clock_ns(CLOCK_MONOTONIC);
}

static void server_end(uint64_t began)
{
        static uint64_t spent;

        spent += ls_clock_ns(CLOCK_MONOTONIC) - began;
        if (spent > SERVER_NS)
                unsetenv("DEBUGINFOD_URLS");
}

int ls_symbols_is_vdso(const char *path)
{
        return !strcmp(path, "[vdso]") || !strcmp(path, "linux-vdso.so.1");
}

/* The vdso as a file: that of this process, since one kernel has one. Returns a descriptor or -1.
 * */
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

/* A FIFO would not let its reader go. */
static int regular_file(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
                close(fd);
                return -1;
        }
        return fd;
}

static int has_build_id(Dwfl_Module *module, const uint8_t *want, size_t len)
{
        const unsigned char *bits;
        GElf_Addr addr;

        return !len ||
               (dwfl_module_build_id(module, &bits, &addr) == (int)len && !memcmp(bits, want, len));
}

static int open_module(struct ls_symbols *s, const char *path)
{
        int fd;

        s->dwfl = dwfl_begin(&callbacks);
        if (!s->dwfl)
                return -ENOMEM;
        if (ls_symbols_is_vdso(path))
                s->prefix = "[vdso] ";
        fd = ls_symbols_is_vdso(path) ? vdso_file() : regular_file(path);
        if (fd < 0)
                return -ENOENT;
        s->module = dwfl_report_offline(s->dwfl, path, path, fd); /* takes fd when it succeeds */
        if (!s->module)
                close(fd);
        return s->module && dwfl_report_end(s->dwfl, NULL, NULL) == 0 ? 0 : -ENOENT;
}

struct ls_symbols *ls_symbols_open(const char *path, const uint8_t *build_id, size_t build_id_len)
{
        struct ls_symbols *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->prefix = "";
        if (!strcmp(path, LS_KERNEL_PATH)) {
                s->prefix = LS_KERNEL_PATH " ";
                s->kernel = ls_kernel_symbols_open("/proc/kallsyms");
                return s;
        }
        if (open_module(s, path) < 0 || !has_build_id(s->module, build_id, build_id_len)) {
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

                if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
                    file_offset < ph.p_offset || file_offset - ph.p_offset >= ph.p_filesz)
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
        if (!s->kernel ||
            ls_kernel_symbols_find(s->kernel, LS_KERNEL_START + offset, ret_name, size) < 0)
                snprintf(ret_name, size, "%s", LS_KERNEL_PATH);
        return 0;
}

static int is_function(const GElf_Sym *sym)
{
        unsigned type = GELF_ST_TYPE(sym->st_info);

        return type == STT_FUNC || type == STT_GNU_IFUNC ||
               (type == STT_NOTYPE && sym->st_shndx != SHN_UNDEF);
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
        /* A symbol with a size must hold the address; one without is the nearest before, which is a
         * guess. */
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

size_t ls_symbols_build_id(const char *path, uint8_t *ret_id, size_t size)
{
        const void *bits;
        ssize_t n = -1;
        Elf *elf;
        int fd = regular_file(path);

        if (fd < 0)
                return 0;
        elf_version(EV_CURRENT);
        elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
        if (elf)
                n = dwelf_elf_gnu_build_id(elf, &bits);
        if (n > 0 && (size_t)n <= size)
                memcpy(ret_id, bits, (size_t)n);
        if (elf)
                elf_end(elf);
        close(fd);
        return n > 0 && (size_t)n <= size ? (size_t)n : 0;
}
