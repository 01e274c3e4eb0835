/* What the probe has found out about the JIT compiler: filled by probe.c, read by events.c. */
#ifndef LS_LIBSAMPLE_JIT_FACTS_H
#define LS_LIBSAMPLE_JIT_FACTS_H

#include "libsample/handler/jit_traces.h"

typedef struct lua_State lua_State;

struct ls_jit_facts {
        int traces_known;               /* 1 = traces can be watched */
        const char *why;                /* why no map can be made, NULL = verified */
        struct ls_jit_places at;
        int (*attach)(lua_State *L);    /* the original jit.attach behind our patch */
        void *set_metatable;            /* the C function debug.setmetatable, NULL = not known */
        uint32_t nirnames;              /* bytes */
        char irnames[6 * 256];
        char errors[4096];              /* LuaJIT's words for why it gives up, by number; each ends
                                         * with a zero byte; "" = not known */
        uint32_t nerrors;               /* texts */
        uint32_t code_full;             /* number of the one for a lack of room; UINT32_MAX = not
                                         * known */
        char bcnames[6 * 128];          /* names of bytecodes, filled up with blanks */
        uint32_t nbcnames;              /* bytes, 0 = not known */
};
extern struct ls_jit_facts ls_jit_facts;

/* Who else is told what LuaJIT tells of its compiler, in a VM that counts its bytecodes: set by
 * exact/probe.c. */
struct ls_exact;
struct ls_jit_listener {
        void (*trace)(struct ls_exact *exact, lua_State *L, const char *what);
        void (*record)(struct ls_exact *exact, lua_State *L);
};
extern struct ls_jit_listener ls_jit_listener;

#endif
