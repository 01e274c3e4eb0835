/* Texts of chunks loaded under a name. See load_text.h.
 *
 * A text is kept until a function of its chunk is sampled, so only the last ones are: a program may load any number
 * that never run long. Of chunks with one name and different texts none is shown, since which of them a function came
 * from is not known. */
#include "libsample/load_text.h"

#include "libsample/agent.h"
#include "libsample/handler/tick.h"
#include "libsample/pages.h"
#include "libsample/proto_hash.h"

#define KEPT      64u
#define TEXT_MOST (1u << 20)
#define KEPT_MOST (2u << 20)            /* bytes of all that are kept */

static struct kept {
        uint64_t name;                  /* hash, 0 = free */
        uint64_t hash;                  /* of the text */
        char *text;                     /* NULL = taken, or different texts came under this name */
        size_t len;
} kept[KEPT];
static unsigned next_kept;
static size_t kept_bytes;

static struct { char *text; size_t room; } spare;       /* buffer of the last load, for the next one */

int ls_load_text_begin(struct ls_load_text *load, ls_reader reader, void *data, const char *chunkname)
{
        if (!ls_agent_live() || !ls_tick_thread || !ls_agent.shm->want_text || !chunkname || chunkname[0] != '=')
                return 0;
        *load = (struct ls_load_text){ .reader = reader, .data = data, .text = spare.text, .room = spare.room };
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

static void forget(struct kept *k)
{
        if (k->text) {
                ls_pages_free(k->text, k->len);
                kept_bytes -= k->len;
        }
        k->text = NULL;
}

void ls_load_text_end(struct ls_load_text *load, const char *chunkname, int error)
{
        uint64_t name = ls_bytes_hash(chunkname, strlen(chunkname)) | 1, hash;
        struct kept *k;

        if (error || !load->len || load->dropped) {
                drop(load);
                return;
        }
        hash = ls_bytes_hash(load->text, load->len);
        for (unsigned i = 0; i < KEPT; i++)
                if (kept[i].name == name) {
                        if (kept[i].hash != hash)
                                forget(&kept[i]);
                        drop(load);
                        return;
                }
        do {
                k = &kept[next_kept++ % KEPT];
                forget(k);
                k->name = 0;
        } while (kept_bytes + load->len > KEPT_MOST);
        *k = (struct kept){ name, hash, ls_pages_new(load->len), load->len };
        if (k->text) {
                memcpy(k->text, load->text, load->len);
                kept_bytes += load->len;
        }
        drop(load);
}

char *ls_load_text_take(const char *name, size_t name_len, uint32_t *ret_len)
{
        uint64_t hash = ls_bytes_hash(name, name_len) | 1;
        char *text;

        for (unsigned i = 0; i < KEPT; i++)
                if (kept[i].name == hash && kept[i].text) {
                        text = kept[i].text;
                        *ret_len = (uint32_t)kept[i].len;
                        kept[i].text = NULL;
                        kept_bytes -= kept[i].len;
                        return text;
                }
        return NULL;
}
