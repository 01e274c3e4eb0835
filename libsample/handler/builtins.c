/* Names of the fast functions: see builtins.h. */

#include "libsample/handler/builtins.h"

#include <string.h>

#include "libsample/handler/walk.h"

static const char *builtins[256];
static char builtin_text[256][40];

char (*ls_builtin_table(size_t *ret_size))[40]
{
        *ret_size = sizeof builtin_text;
        return builtin_text;
}

void ls_builtin_adopt(void)
{
        for (int i = 0; i < 256; i++) {
                builtin_text[i][sizeof *builtin_text - 1] = 0;  /* it may be another process's */
                builtins[i] = builtin_text[i][0] ? builtin_text[i] : NULL;
        }
}

void ls_builtin_note(uint8_t ffid, const char *prefix, size_t prefix_len, const char *key)
{
        char *text = builtin_text[ffid];
        size_t len = ls_str_len(key);

        if (builtins[ffid] || ffid <= LS_FFID_C || prefix_len + len + 2 > sizeof *builtin_text)
                return;
        key = ls_at(ls_str_data(key), len);
        memcpy(text, prefix, prefix_len);
        if (prefix_len)
                text[prefix_len++] = '.';
        memcpy(text + prefix_len, key, len);
        text[prefix_len + len] = 0;
        builtins[ffid] = text;
}

void ls_builtin_note_aux(void)
{
        if (!builtins[ls_vm_facts.ffid_wrap_aux])
                builtins[ls_vm_facts.ffid_wrap_aux] = "coroutine.wrap function";
        if (!builtins[ls_vm_facts.ffid_ipairs_aux])
                builtins[ls_vm_facts.ffid_ipairs_aux] = "ipairs iterator";
        if (ls_vm_facts.ffid_gmatch_aux > LS_FFID_C && !builtins[ls_vm_facts.ffid_gmatch_aux])
                builtins[ls_vm_facts.ffid_gmatch_aux] = "string.gmatch iterator";
}

const char *ls_builtin_name(uint8_t ffid)
{
        return builtins[ffid];
}
