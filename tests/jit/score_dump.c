/* Shows a trace: what was recorded, its IR, and each x86 instruction with the IR instruction that
 * LuaJIT says it comes from and the one that formats/jit/map.h ascribes it to. Called by
 * score_compare.c. */
#include "tests/jit/score.h"

#include <capstone/capstone.h>

static void dump_record(const struct trace *t, const struct ls_jit_input *in, FILE *f)
{
        const struct ls_rec_jittrace *h = in->head;

        fprintf(f, "--- trace %u root %u link %u (%u) parent %u exit %u size %u loop %u doubt %u\n",
                t->number, h->root, h->link, h->link_kind, t->parent, h->parent_exit, t->size,
                h->mcode_loop, ls_jit_map_is_approximate(t->map));
        for (uint32_t k = 0; k < h->nsnapshots; k++) {
                const struct ls_jit_snapshot *s = &in->snapshots[k];

                fprintf(f, "snap %u ref %u ofs %u fn %u pos %u line %u frames %u\n", k, s->ref,
                        s->mcofs, s->function, s->pos, s->line, s->nframes);
        }
        for (uint32_t k = 0; k < h->nevents; k++) {
                const struct ls_jit_event *e = &in->events[k];

                fprintf(f, "event ref %u fn %u depth %u pos %u line %u\n", e->ref, e->function,
                        e->depth, e->pos, e->line);
        }
}

static void dump_ir(const struct trace *t, const struct ls_jit_input *in, const char *irnames,
                    FILE *f)
{
        for (uint32_t r = 1; r < t->nir; r++) {
                uint64_t i = in->ir[r];
                int a = (int)(i & 0xffff) - 0x8000, b = (int)(i >> 16 & 0xffff) - 0x8000;

                fprintf(f, "%4u %.6s t%02x r%02x s%02x %6d %6d  origin %u\n", r,
                        irnames + 6 * (i >> 40 & 255), (unsigned)(i >> 32 & 255),
                        (unsigned)(i >> 48 & 255), (unsigned)(i >> 56), a, b, t->origin[r]);
        }
}

/* "*" marks another IR instruction, "!" another original of a copy. */
static void dump_instruction(const struct trace *t, const cs_insn *in, uint32_t o, FILE *f)
{
        uint32_t origin, ref = ls_jit_map_ref(t->map, o, &origin), hits = 0;
        uint32_t truth = t->truth[o], truth_origin = truth < t->nir ? t->origin[truth] : 0;
        struct ls_jit_frame a = score_truth(t, o), b = score_ours(t, o);

        for (uint32_t k = 0; k < in->size && o + k < t->size; k++)
                hits += t->hits[o + k];
        fprintf(f, "%5u %-9s%-40s truth %5u ours %5u%s origin %u %u%s hits %u      %s\n", o,
                in->mnemonic, in->op_str, truth, ref, truth == ref ? " " : "*", truth_origin,
                origin, truth == ref && truth_origin && truth_origin != origin ? "!" : " ", hits,
                a.function == b.function && a.line == b.line ? "same" : "DIFFERS");
}

void score_dump(const struct trace *t, const char *irnames, FILE *f)
{
        struct ls_jit_input in;
        csh handle;
        cs_insn *insn;
        size_t n;

        if (ls_jit_input_parse(t->blob, t->blob_len, &in) < 0)
                return;
        dump_record(t, &in, f);
        dump_ir(t, &in, irnames, f);
        if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
                return;
        n = cs_disasm(handle, in.code, t->size, in.head->mcode, 0, &insn);
        for (size_t k = 0; k < n; k++)
                dump_instruction(t, &insn[k], (uint32_t)(insn[k].address - in.head->mcode), f);
        if (n)
                cs_free(insn, n);
        cs_close(&handle);
}
