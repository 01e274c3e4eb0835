/* Marks and counters that somebody wants to hear of: see tell.h. */
#include "record/writer/tell.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/escape.h"

static int take_pattern(struct ls_tell *t, const char *text, size_t len)
{
        if (!len || len >= sizeof(t->pattern))
                return -EINVAL;
        memcpy(t->pattern, text, len);
        return 0;
}

int ls_tell_read(const char *text, struct ls_tell *t)
{
        const char *sign;
        char *end;

        memset(t, 0, sizeof(*t));
        if (!strncmp(text, "mark:", 5)) {
                t->kind = LS_TELL_MARK;
                return take_pattern(t, text + 5, strlen(text + 5));
        }
        if (strncmp(text, "counter:", 8) != 0)
                return -EINVAL;
        text += 8;
        sign = strrchr(text, '>') ? strrchr(text, '>') : strrchr(text, '<');
        if (!sign || !sign[1] || strchr(" \t", sign[1]))
                return -EINVAL;
        t->kind = *sign == '>' ? LS_TELL_OVER : LS_TELL_UNDER;
        t->limit = strtod(sign + 1, &end);
        return *end || !isfinite(t->limit) ? -EINVAL : take_pattern(t, text, (size_t)(sign - text));
}

/* Bits of those of the kinds whose pattern the name fits. */
static uint32_t fitting(const struct ls_out_setup *setup, unsigned kinds, const char *name,
                        uint32_t len)
{
        char *visible = ls_visible(name, len);
        uint32_t bits = 0;

        for (unsigned i = 0; visible && i < LS_TELLS_MOST && setup->tells[i].kind; i++)
                if (kinds & 1u << setup->tells[i].kind &&
                    fnmatch(setup->tells[i].pattern, visible, 0) == 0)
                        bits |= 1u << i;
        free(visible);
        return bits;
}

void ls_tell_mark(const struct ls_out_setup *setup, struct ls_out_figures *f, const char *name,
                  uint32_t len)
{
        uint32_t bits = setup->tells[0].kind ? fitting(setup, 1u << LS_TELL_MARK, name, len) : 0;

        for (unsigned i = 0; bits >> i; i++)
                f->told[i].came += bits >> i & 1;
}

static void set(struct ls_out_figures *f, struct ls_told *told, unsigned i, int over)
{
        const uint32_t bit = 1u << i;

        if (told->known & bit && !(told->over & bit) == !over)
                return;
        if (over)
                f->told[i].holds++;
        else if (told->over & bit)
                f->told[i].holds--;
        told->over = over ? told->over | bit : told->over & ~bit;
        told->known |= bit;
        if (over)
                f->told[i].came++;
        else
                f->told[i].went++;
}

void ls_tell_count(const struct ls_out_setup *setup, struct ls_out_figures *f, struct ls_told *told,
                   const char *name, uint32_t len, double value)
{
        if (name && !told->asked) {
                told->fits = fitting(setup, 1u << LS_TELL_OVER | 1u << LS_TELL_UNDER, name, len);
                told->asked = 1;
        }
        for (unsigned i = 0; i < LS_TELLS_MOST && told->fits >> i; i++) {
                const struct ls_tell *t = &setup->tells[i];

                if (told->fits >> i & 1)
                        set(f, told, i,
                            name && (t->kind == LS_TELL_OVER ? value > t->limit
                                                             : value < t->limit));
        }
}
