/* Texts of chunks that are loaded under a name of their own ("=access_by_lua(nginx.conf:10)"): Lua
 * keeps the name only. Called by the patched lua_loadx and by sources.c, on the sampled thread. */
#ifndef LS_LIBSAMPLE_API_LOAD_TEXT_H
#define LS_LIBSAMPLE_API_LOAD_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct lua_State lua_State;
typedef const char *(*ls_reader)(lua_State *L, void *data, size_t *size);

struct ls_load_text {                   /* one load under way; on the stack of the patched
                                         * lua_loadx */
        ls_reader reader;               /* the program's */
        void *data;
        char *text;                     /* pages */
        size_t len, room;
        int dropped;                    /* too long, bytecode, or no memory */
};

/* 1 when the text of a chunk of this name is worth keeping: then lua_loadx gets ls_load_text_read
 * and &load in place of the program's reader, and ls_load_text_end follows. */
int ls_load_text_begin(struct ls_load_text *load, ls_reader reader, void *data,
                       const char *chunkname);
const char *ls_load_text_read(lua_State *L, void *load, size_t *size);
/* error: what lua_loadx returned. */
void ls_load_text_end(struct ls_load_text *load, const char *chunkname, int error);

#endif
