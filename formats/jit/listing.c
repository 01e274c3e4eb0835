/* The machine code of a JIT trace as text: see listing.h. All that comes from the record is checked
 * by input.c; the work is bounded as a map's is. */
#include "formats/jit/listing.h"
#include "formats/jit/map.h"
#include "formats/jit/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 6u                    /* bytes of a name in irnames */
#define FRAMES_MOST 128u
#define STUBS 32u                       /* of LuaJIT's stubs of exits that stand in a row, */
#define STUB_BYTES 4u                   /* each of so many */
#define CONSTANTS_FROM 0x4000u          /* operands from here to the references are constants */

static const char types[][4] = {
        "nil", "fal", "tru", "lud", "str", "p32", "thr", "pro", "fun", "p64", "cdt", "tab", "udt",
        "flt", "num", "i8", "u8", "i16", "u16", "int", "u32", "i64", "u64", "sfp",
};

static void operand_text(uint32_t operand, char *ret, size_t room)
{
        if (operand >= JIT_OPERAND_BIAS)
                snprintf(ret, room, "%04u", operand - JIT_OPERAND_BIAS);
        else if (operand >= CONSTANTS_FROM)
                snprintf(ret, room, "k%u", JIT_OPERAND_BIAS - operand);
        else
                snprintf(ret, room, "#%u", operand);
}

/* The names are the file's: what is not visible text is shown as "?". */
void ls_jit_ir_text(const struct ls_jit_input *in, const char *irnames, size_t irnames_len,
                    uint32_t ref, char *ret, size_t room)
{
        const struct jit_ir *ir = (const struct jit_ir *)in->ir;
        unsigned type;
        char name[NAME_SIZE + 1] = "?     ", op1[8], op2[8];

        *ret = 0;
        if (ref == LS_JIT_REF_HEAD || ref >= in->head->nir)
                return;
        ir += ref;
        type = ir->type & JIT_IR_TYPE;
        if ((ir->op + 1u) * NAME_SIZE <= irnames_len)
                memcpy(name, irnames + ir->op * NAME_SIZE, NAME_SIZE);
        for (size_t i = 0; i < NAME_SIZE; i++)
                if (name[i] < ' ' || name[i] > '~')
                        name[i] = '?';
        operand_text(ir->op1, op1, sizeof(op1));
        operand_text(ir->op2, op2, sizeof(op2));
        snprintf(ret, room, "%c %-3s %s %s %s", ir->type & JIT_IR_GUARD ? '>' : ' ',
                 type < sizeof(types) / sizeof(*types) ? types[type] : "?", name, op1, op2);
}

struct work {
        const struct ls_jit_input *in;
        const struct ls_jit_map *map;
        struct ls_jit_listing *l;
};

/* The exit that a guard takes: that of the last snapshot before it. */
static uint32_t exit_of(const struct ls_jit_input *in, uint32_t ref)
{
        uint32_t lo = 0, hi = in->head->nsnapshots;

        while (lo < hi) {
                uint32_t mid = (lo + hi) / 2;

                if (in->snapshots[mid].ref <= ref)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo ? lo - 1 : 0;
}

static int add(void *ctx, uint32_t offset, const char *name, const char *operands, uint64_t target)
{
        struct work *w = ctx;
        struct ls_jit_listing *l = w->l;
        struct ls_jit_frame frames[FRAMES_MOST];
        struct ls_jit_row *row;
        uint32_t origin = 0;
        unsigned n;

        if (l->n == l->room) {
                uint32_t room = l->room ? l->room * 2 : 256;

                row = reallocarray(l->rows, room, sizeof(*row));
                if (!row)
                        return -ENOMEM;
                l->rows = row;
                l->room = room;
        }
        row = &l->rows[l->n++];
        n = ls_jit_map_frames(w->map, offset, frames, FRAMES_MOST);
        *row = (struct ls_jit_row){ .offset = offset, .target = target, .exit = LS_JIT_NO_EXIT };
        row->ref = (uint16_t)ls_jit_map_ref(w->map, offset, &origin);
        if (n && n <= FRAMES_MOST) {
                row->function = frames[n - 1].function;
                row->line = frames[n - 1].line;
        }
        if (target && row->ref != LS_JIT_REF_HEAD && row->ref != LS_JIT_REF_TAIL &&
            w->in->head->nsnapshots)
                row->exit = exit_of(w->in, row->ref);
        snprintf(row->text, sizeof(row->text), "%s%s%s", name, *operands ? " " : "", operands);
        return 0;
}

/* Jumps of code that is no instruction's of LuaJIT's: exits of a group have stubs in a row, so
 * where one leads tells the others of its group. */
static void find_exits(const struct ls_jit_input *in, struct ls_jit_listing *l)
{
        uint32_t n = in->head->nsnapshots / STUBS + 1;
        uint64_t stubs[UINT16_MAX / STUBS + 1] = { 0 };         /* of each group */

        for (uint32_t i = 0; i < l->n; i++) {
                uint32_t exit = l->rows[i].exit;

                if (exit != LS_JIT_NO_EXIT)
                        stubs[exit / STUBS] = l->rows[i].target - exit % STUBS * STUB_BYTES;
        }
        for (uint32_t i = 0; i < l->n; i++) {
                struct ls_jit_row *row = &l->rows[i];

                for (uint32_t g = 0; g < n && row->target && row->exit == LS_JIT_NO_EXIT; g++) {
                        uint64_t at = row->target - stubs[g];

                        if (stubs[g] && at < STUBS * STUB_BYTES && at % STUB_BYTES == 0)
                                row->exit = g * STUBS + (uint32_t)(at / STUB_BYTES);
                }
        }
}

int ls_jit_listing_new(const struct ls_jit_input *in, const char *irnames, size_t irnames_len,
                       struct ls_jit_listing *ret)
{
        struct ls_jit_map *map;
        struct work w = { .in = in, .l = ret };
        uint32_t size = in->head->mcode_size < JIT_MAX_CODE ? in->head->mcode_size : JIT_MAX_CODE;
        int error = ls_jit_map_new(in, irnames, irnames_len, NULL, &map);

        *ret = (struct ls_jit_listing){ 0 };
        if (error)
                return error;
        w.map = map;
        ret->doubt = ls_jit_map_is_approximate(map) & ~(unsigned)LS_JIT_NO_PARENT;
        error = jit_disassemble_text(in->code, size, in->head->mcode, add, &w);
        ls_jit_map_free(map);
        if (error)
                ls_jit_listing_done(ret);
        else
                find_exits(in, ret);
        return error;
}

void ls_jit_listing_done(struct ls_jit_listing *l)
{
        free(l->rows);
        *l = (struct ls_jit_listing){ 0 };
}
