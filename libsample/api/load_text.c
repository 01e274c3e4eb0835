/* Texts of chunks loaded under a name. See load_text.h. */

#include "libsample/api/load_text.h"

#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/kept_text.h"
#include "libsample/pages.h"
#include "libsample/thread.h"

#define TEXT_MOST (1u << 20)

static __thread struct { char *text; size_t room; } spare
        __attribute__((tls_model("initial-exec")));    /* buffer of the last load, for the next
                                                        * one */

int ls_load_text_begin(struct ls_load_text *load, ls_reader reader, void *data,
                       const char *chunkname)
{
        if (!ls_agent_live() || !ls_thread_own || !ls_agent.shm->want_text || !chunkname ||
            chunkname[0] != '=')
                return 0;
        *load = (struct ls_load_text){
                .reader = reader, .data = data, .text = spare.text, .room = spare.room
        };
        spare.text = NULL;
        spare.room = 0;
        return 1;
}

/* A load may run in another one's reader: one buffer is kept, others are freed. */
static void drop(struct ls_load_text *load)
{
        if (spare.text) {
                ls_pages_free(load->text, load->room);
        } else {
                spare.text = load->text;
                spare.room = load->room;
        }
        load->text = NULL;
        load->room = load->len = 0;
        load->dropped = 1;
}

const char *ls_load_text_read(lua_State *L, void *data, size_t *size)
{
        struct ls_load_text *load = data;
        const char *piece = load->reader(L, load->data, size);

        if (!piece || !*size || load->dropped)
                return piece;
        if ((load->len == 0 && piece[0] == '\033') || *size > TEXT_MOST - load->len ||
            ls_pages_grow((void **)&load->text, &load->room, load->len + *size, 1)) {
                if (piece[0] != '\033')
                        atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_TEXT_CUT], 1);
                drop(load);
                return piece;
        }
        memcpy(load->text + load->len, piece, *size);
        load->len += *size;
        return piece;
}

void ls_load_text_end(struct ls_load_text *load, const char *chunkname, int error)
{
        if (!error && load->len && !load->dropped)
                ls_kept_text_put(chunkname, load->text, load->len);
        drop(load);
}
