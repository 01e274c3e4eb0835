/* Names of functions in an object file: see symbols.h. libdwfl finds separate debug files by build id. */
#include "record/symbols.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ls_symbols {
        Dwfl *dwfl;
        Dwfl_Module *module;
};

static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
};

static int has_build_id(Dwfl_Module *module, const uint8_t *want, size_t len)
{
        const unsigned char *bits;
        GElf_Addr addr;

        return !len || (dwfl_module_build_id(module, &bits, &addr) == (int)len && !memcmp(bits, want, len));
}

struct ls_symbols *ls_symbols_open(const char *path, const uint8_t *build_id, size_t build_id_len)
{
        struct ls_symbols *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        /* libdwfl would ask a debuginfod server; a recorder sends nothing anywhere. */
        unsetenv("DEBUGINFOD_URLS");
        s->dwfl = dwfl_begin(&callbacks);
        if (s->dwfl)
                s->module = dwfl_report_offline(s->dwfl, path, path, -1);
        if (!s->module || dwfl_report_end(s->dwfl, NULL, NULL) != 0 || !has_build_id(s->module, build_id, build_id_len)) {
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

int ls_symbols_find(struct ls_symbols *s, uint64_t file_offset, char *ret_name, size_t size)
{
        GElf_Addr bias, addr;
        GElf_Off off;
        GElf_Sym sym;
        Elf *elf = dwfl_module_getelf(s->module, &bias);
        const char *name;

        if (!elf || address_of(elf, file_offset, &addr) < 0)
                return -ENOENT;
        name = dwfl_module_addrinfo(s->module, addr + bias, &off, &sym, NULL, NULL, NULL);
        /* A symbol with a size must hold the address; one without is the nearest before, which is a guess. */
        if (!name || !*name || GELF_ST_TYPE(sym.st_info) != STT_FUNC || (sym.st_size && off >= sym.st_size))
                return -ENOENT;
        snprintf(ret_name, size, "%s", name);
        return 0;
}

size_t ls_symbols_build_id(const char *path, uint8_t *ret_id, size_t size)
{
        const void *bits;
        ssize_t n = -1;
        Elf *elf;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

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
