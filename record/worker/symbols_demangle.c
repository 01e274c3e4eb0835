/* Names of symbols as people write them; declared in symbols_demangle.h. libiberty knows C++ and
 * both kinds of Rust names. */
#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/worker/symbols_demangle.h"

#define MANGLED_MAX 4096u               /* longer names are shown as they are */

/* A clone that the compiler made is the function that was written: foo.constprop.0, foo.cold,
 * "foo() [clone .cold]". */
static void strip_clones(char *name)
{
        static const char *const clones[] = { ".cold", ".part",     ".constprop",
                                              ".isra", ".lto_priv", ".llvm" };
        char *cut = strstr(name, " [clone ");

        if (cut)
                *cut = 0;
        for (unsigned i = 0; i < sizeof(clones) / sizeof(*clones); i++) {
                size_t len = strlen(clones[i]);

                cut = strstr(name, clones[i]);
                if (cut && cut != name &&
                    (!cut[len] || (cut[len] == '.' && isdigit((unsigned char)cut[len + 1]))))
                        *cut = 0;
        }
}

void ls_symbols_demangle(const char *symbol, char *ret_name, size_t size)
{
        /* No DMGL_PARAMS: a profile has no use for the types of parameters. */
        char *name = strlen(symbol) <= MANGLED_MAX ? cplus_demangle(symbol, DMGL_AUTO | DMGL_ANSI)
                                                   : NULL;

        snprintf(ret_name, size, "%s", name ? name : symbol);
        if (!name && size)
                ret_name[strcspn(ret_name, "@")] = 0;   /* a symbol's version */
        if (size)
                strip_clones(ret_name);
        free(name);
}
