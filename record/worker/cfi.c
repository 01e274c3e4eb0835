/* Rows of call frame information: see cfi.h. libdw executes the table's program; what nearly all
 * rows are, a register plus an offset, is kept as two numbers. */
#include "record/worker/cfi.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOADS_MAX 32
#define VDSO_MAX (2 * 4096u)            /* bytes taken to be the vdso's when its headers say more */

const uint8_t ls_cfi_saved[LS_CFI_NSAVED] = {
        LS_REG_RBX, LS_REG_RBP, LS_REG_R12, LS_REG_R13, LS_REG_R14, LS_REG_R15, LS_REG_IP,
};

struct load { uint64_t offset, vaddr, size; };

struct ls_cfi {
        Elf *elf;
        int fd;
        Dwarf_CFI *eh;                  /* of .eh_frame; NULL = none */
        Dwarf *dwarf;
        Dwarf_CFI *debug;               /* of .debug_frame; belongs to dwarf */
        struct load loads[LOADS_MAX];
        unsigned n_loads;
        const uint8_t *starts;          /* pairs of int32: start and entry, from hdr_vaddr; belongs
                                         * to elf */
        uint32_t n_starts;
        uint64_t hdr_vaddr;
};

static uint32_t u32(const uint8_t *p)
{
        uint32_t v;

        memcpy(&v, p, sizeof(v));
        return v;
}

/* The sorted table of where functions start, in .eh_frame_hdr. Only the encoding that linkers
 * write. */
static void find_starts(struct ls_cfi *cfi, const GElf_Phdr *ph)
{
        Elf_Data *data =
                elf_getdata_rawchunk(cfi->elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_BYTE);
        const uint8_t *p = data ? data->d_buf : NULL;

        if (!p || data->d_size < 12 || p[0] != 1 || (p[1] & 0x0f) != DW_EH_PE_sdata4 ||
            p[2] != DW_EH_PE_udata4 || p[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4) ||
            u32(p + 8) > (data->d_size - 12) / 8)
                return;
        cfi->n_starts = u32(p + 8);
        cfi->starts = p + 12;
        cfi->hdr_vaddr = ph->p_vaddr;
}

static int read_headers(struct ls_cfi *cfi)
{
        GElf_Ehdr eh;
        size_t n;

        if (elf_kind(cfi->elf) != ELF_K_ELF || !gelf_getehdr(cfi->elf, &eh) ||
            eh.e_machine != EM_X86_64 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
            elf_getphdrnum(cfi->elf, &n) < 0)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                GElf_Phdr ph;

                if (!gelf_getphdr(cfi->elf, (int)i, &ph))
                        return -EINVAL;
                if (ph.p_type == PT_LOAD && cfi->n_loads < LOADS_MAX)
                        cfi->loads[cfi->n_loads++] =
                                (struct load){ ph.p_offset, ph.p_vaddr, ph.p_filesz };
                if (ph.p_type == PT_GNU_EH_FRAME && !cfi->starts)
                        find_starts(cfi, &ph);
        }
        return 0;
}

static int same_build_id(struct ls_cfi *cfi, const uint8_t *want, size_t len)
{
        const void *bits;

        return !len || (dwelf_elf_gnu_build_id(cfi->elf, &bits) == (ssize_t)len &&
                        !memcmp(bits, want, len));
}

/* No mmap: a file that shrinks while it is mapped kills its reader. */
static int open_file(struct ls_cfi *cfi, const char *path)
{
        struct stat st;

        cfi->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (cfi->fd < 0)
                return -errno;
        if (fstat(cfi->fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -EINVAL;
        cfi->elf = elf_begin(cfi->fd, ELF_C_READ, NULL);
        return cfi->elf ? 0 : -EINVAL;
}

static int open_vdso(struct ls_cfi *cfi)
{
        const Elf64_Ehdr *eh = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
        size_t size;

        if (!eh)
                return -ENOENT;
        size = eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
        cfi->elf = elf_memory((char *)eh, size ? size : VDSO_MAX);
        return cfi->elf ? 0 : -EINVAL;
}

int ls_cfi_open(const char *path, const uint8_t *build_id, size_t build_id_len,
                struct ls_cfi **ret_cfi)
{
        struct ls_cfi *cfi = calloc(1, sizeof(*cfi));
        int err;

        if (!cfi)
                return -ENOMEM;
        cfi->fd = -1;
        elf_version(EV_CURRENT);
        err = path ? open_file(cfi, path) : open_vdso(cfi);
        if (err == 0)
                err = read_headers(cfi);
        if (err == 0 && !same_build_id(cfi, build_id, build_id_len))
                err = -EINVAL;
        if (err < 0) {
                ls_cfi_close(cfi);
                return err;
        }
        cfi->eh = dwarf_getcfi_elf(cfi->elf);
        /* libdw reads all debug sections for this: only for a file that has nothing else. */
        cfi->dwarf = path && !cfi->eh ? dwarf_begin_elf(cfi->elf, DWARF_C_READ, NULL) : NULL;
        cfi->debug = cfi->dwarf ? dwarf_getcfi(cfi->dwarf) : NULL;
        *ret_cfi = cfi;
        return 0;
}

void ls_cfi_close(struct ls_cfi *cfi)
{
        if (!cfi)
                return;
        if (cfi->eh)
                dwarf_cfi_end(cfi->eh);
        if (cfi->dwarf)
                dwarf_end(cfi->dwarf);
        if (cfi->elf)
                elf_end(cfi->elf);
        if (cfi->fd >= 0)
                close(cfi->fd);
        free(cfi);
}

static int vaddr_of(const struct ls_cfi *cfi, uint64_t offset, uint64_t *ret)
{
        for (unsigned i = 0; i < cfi->n_loads; i++) {
                const struct load *l = &cfi->loads[i];

                if (offset < l->offset || offset - l->offset >= l->size)
                        continue;
                *ret = l->vaddr + (offset - l->offset);
                return 0;
        }
        return -ENOENT;
}

/* The last start at or before vaddr. */
static uint64_t function_start(const struct ls_cfi *cfi, uint64_t vaddr)
{
        uint32_t lo = 0, hi = cfi->n_starts;
        uint64_t start = vaddr;

        while (lo < hi) {
                uint32_t mid = lo + (hi - lo) / 2;
                uint64_t at = cfi->hdr_vaddr +
                              (uint64_t)(int64_t)(int32_t)u32(cfi->starts + (size_t)mid * 8);

                if (at > vaddr) {
                        hi = mid;
                } else {
                        start = at;
                        lo = mid + 1;
                }
        }
        return start;
}

/* 0 when the CFA is a register plus an offset, -EDOM when it takes an expression, -ENOENT when
 * there is none. */
static int simple_cfa(Dwarf_Frame *frame, struct ls_cfi_row *row)
{
        Dwarf_Op *ops;
        int64_t offset;
        uint64_t reg;
        size_t n;

        if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0)
                return -ENOENT;
        if (n != 1)
                return -EDOM;
        if (ops[0].atom == DW_OP_bregx) {
                reg = ops[0].number;
                offset = (int64_t)ops[0].number2;
        } else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
                reg = ops[0].atom - DW_OP_breg0;
                offset = (int64_t)ops[0].number;
        } else {
                return -EDOM;
        }
        if (reg >= LS_REG_IP || offset != (int32_t)offset)
                return -EDOM;
        row->cfa_reg = (uint8_t)reg;
        row->cfa_offset = (int32_t)offset;
        return 0;
}

static int simple_rule(Dwarf_Frame *frame, unsigned i, struct ls_cfi_row *row)
{
        Dwarf_Op mem[3], *ops;
        size_t n;

        if (dwarf_frame_register(frame, ls_cfi_saved[i], mem, &ops, &n) != 0)
                return -ENOENT;
        row->at[i] = 0;
        if (n == 0) {
                /* libdw 0.188 says "undefined" of rbx where a table says nothing: its list has rax
                 * instead. */
                row->rule[i] = ops == mem && ls_cfi_saved[i] == LS_REG_IP ? LS_CFI_LOST
                                                                          : LS_CFI_SAME;
                return 0;
        }
        if (ops[0].atom != DW_OP_call_frame_cfa || n > 2)
                return -EDOM;
        if (n == 2 &&
            (ops[1].atom != DW_OP_plus_uconst || (int64_t)ops[1].number != (int16_t)ops[1].number))
                return -EDOM;
        row->rule[i] = LS_CFI_SAVED;
        row->at[i] = n == 2 ? (int16_t)ops[1].number : 0;
        return 0;
}

/* What buildvm writes for the assembler part of LuaJIT: 80 bytes, and these registers at these
 * places. GCC saves in another order. */
static int is_lua_vm(const struct ls_cfi_row *row)
{
        static const uint8_t rule[LS_CFI_NSAVED] = { LS_CFI_SAVED, LS_CFI_SAVED, LS_CFI_SAME,
                                                     LS_CFI_SAME,  LS_CFI_SAVED, LS_CFI_SAVED,
                                                     LS_CFI_SAVED };
        static const int16_t at[LS_CFI_NSAVED] = { -24, -16, 0, 0, -40, -32, -8 };

        return row->cfa_reg == LS_REG_RSP && row->cfa_offset == 80 &&
               !memcmp(row->rule, rule, sizeof(rule)) && !memcmp(row->at, at, sizeof(at));
}

static int add_expr(struct ls_cfi_exprs *e, struct ls_cfi_expr *ret, unsigned rule,
                    const Dwarf_Op *ops, size_t n)
{
        if (n > LS_CFI_OPS_MAX - e->n_ops)
                return -E2BIG;
        *ret = (struct ls_cfi_expr){ (uint8_t)rule, (uint8_t)n, (uint16_t)e->n_ops };
        memcpy(e->ops + e->n_ops, ops, n * sizeof(*ops));
        e->n_ops += (uint32_t)n;
        return 0;
}

static int add_register(struct ls_cfi_exprs *e, Dwarf_Frame *frame, unsigned reg)
{
        Dwarf_Op mem[3], *ops;
        size_t n;

        if (dwarf_frame_register(frame, (int)reg, mem, &ops, &n) != 0)
                return -EINVAL;
        if (n == 0)                     /* what is callee-saved is never undefined: see
                                         * simple_rule */
                return add_expr(e, &e->reg[reg],
                                ops == mem && !(LS_CFI_CALLEE_SAVED >> reg & 1) ? LS_CFI_LOST
                                                                                : LS_CFI_SAME,
                                mem, 0);
        if (ops[n - 1].atom == DW_OP_stack_value)
                return add_expr(e, &e->reg[reg], LS_CFI_VALUE, ops, n - 1);
        return add_expr(e, &e->reg[reg], LS_CFI_SAVED, ops, n);
}

/* All rules of the frame as expressions. */
static int keep_exprs(Dwarf_Frame *frame, struct ls_cfi_row *row)
{
        struct ls_cfi_exprs *e = calloc(1, sizeof(*e));
        Dwarf_Op *ops;
        size_t n;
        int err;

        if (!e)
                return -ENOMEM;
        err = dwarf_frame_cfa(frame, &ops, &n) == 0 && n
                      ? add_expr(e, &e->cfa, LS_CFI_VALUE, ops, n)
                      : -EINVAL;
        for (unsigned r = 0; r < LS_NREGS && err == 0; r++)
                err = add_register(e, frame, r);
        row->exprs = err == 0 ? realloc(e, ls_cfi_exprs_size(e->n_ops)) ?: e : NULL;
        if (err < 0)
                free(e);
        return err;
}

/* Takes frame. */
static int convert(Dwarf_Frame *frame, struct ls_cfi_row *row)
{
        bool signal = false;
        int err;

        memset(row, 0, sizeof(*row));
        dwarf_frame_info(frame, NULL, NULL, &signal);
        err = simple_cfa(frame, row);
        for (unsigned i = 0; i < LS_CFI_NSAVED && err == 0; i++)
                err = simple_rule(frame, i, row);
        row->flags = signal ? LS_CFI_SIGNAL : 0;
        if (err == -EDOM) {
                err = keep_exprs(frame, row);
        } else if (err == 0) {
                if (row->rule[LS_CFI_NSAVED - 1] != LS_CFI_SAVED)
                        row->flags |= LS_CFI_LAST;
                if (is_lua_vm(row))
                        row->flags |= LS_CFI_LUA_VM;
        }
        free(frame);
        return err;
}

/* 1 when the code around the offset is this, with the instruction at the offset being at bytes[at].
 * */
static int code_is(const struct ls_cfi *cfi, uint64_t offset, const uint8_t *bytes, size_t n,
                   size_t at)
{
        uint8_t code[16];

        return cfi->fd >= 0 && n <= sizeof(code) && offset >= at &&
               pread(cfi->fd, code, n, (off_t)(offset - at)) == (ssize_t)n &&
               !memcmp(code, bytes, n);
}

static void set_frame(struct ls_cfi_row *row, int32_t size)
{
        row->cfa_reg = LS_REG_RSP;
        row->cfa_offset = size;
        row->flags &= (uint8_t)~LS_CFI_LUA_VM;
}

/* LuaJIT has one row for all of its assembler. Where it builds and takes down its frame, the code
 * tells more: (push rbp;) push rbx; push r15; push r14; sub rsp, 40 and add rsp, 40; pop r14; pop
 * r15; pop rbx; pop rbp; ret. */
static void correct_lua_vm(const struct ls_cfi *cfi, uint64_t offset, struct ls_cfi_row *row)
{
        static const uint8_t enter[] = { 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 40 };
        static const uint8_t enter_rbp[] = { 0x55, 0x53, 0x41, 0x57, 0x41,
                                             0x56, 0x48, 0x83, 0xec, 40 };
        static const uint8_t leave[] = { 0x48, 0x83, 0xc4, 40,   0x41, 0x5e,
                                         0x41, 0x5f, 0x5b, 0x5d, 0xc3 };
        static const struct { const uint8_t *bytes; uint8_t n, at, frame;
        } places[] = {
                { enter_rbp, sizeof(enter_rbp), 0, 8 }, { enter, sizeof(enter), 0, 16 },
                { enter, sizeof(enter), 1, 24 },        { enter, sizeof(enter), 3, 32 },
                { enter, sizeof(enter), 5, 40 },        { leave, sizeof(leave), 4, 40 },
                { leave, sizeof(leave), 6, 32 },        { leave, sizeof(leave), 8, 24 },
                { leave, sizeof(leave), 9, 16 },        { leave, sizeof(leave), 10, 8 },
        };

        for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
                if (code_is(cfi, offset, places[i].bytes, places[i].n, places[i].at)) {
                        set_frame(row, places[i].frame);
                        return;
                }
}

/* Assembler that uses rbp may have one row as well: it is not yet right at push rbp; mov rbp, rsp,
 * and no more at ret. Slots below rsp are not read: those registers are as they were. */
static void correct_rbp(const struct ls_cfi *cfi, uint64_t offset, uint64_t function,
                        struct ls_cfi_row *row)
{
        static const uint8_t push[] = { 0x55 }, ret[] = { 0xc3 };

        if (offset == function || code_is(cfi, offset, ret, 1, 0))
                set_frame(row, 8);
        else if (offset == function + 1 && code_is(cfi, offset, push, 1, 1))
                set_frame(row, 16);
}

int ls_cfi_row(struct ls_cfi *cfi, uint64_t file_offset, struct ls_cfi_row *ret_row,
               uint64_t *ret_function)
{
        Dwarf_Frame *frame = NULL;
        uint64_t vaddr;
        int err;

        *ret_function = file_offset;
        if (vaddr_of(cfi, file_offset, &vaddr) < 0)
                return -ENOENT;
        if ((!cfi->eh || dwarf_cfi_addrframe(cfi->eh, vaddr, &frame) != 0) &&
            (!cfi->debug || dwarf_cfi_addrframe(cfi->debug, vaddr, &frame) != 0))
                return -ENOENT;
        *ret_function = file_offset - (vaddr - function_start(cfi, vaddr));
        err = convert(frame, ret_row);
        if (err == 0 && ret_row->flags & LS_CFI_LUA_VM)
                correct_lua_vm(cfi, file_offset, ret_row);
        else if (err == 0 && !ret_row->exprs && ret_row->cfa_reg == LS_REG_RBP)
                correct_rbp(cfi, file_offset, *ret_function, ret_row);
        return err;
}

void ls_cfi_row_drop(struct ls_cfi_row *row)
{
        free(row->exprs);
        row->exprs = NULL;
}
