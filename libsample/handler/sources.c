/* Sources by chunk name, and the texts of loaded chunks. See sources.h. */

#include "libsample/handler/sources.h"
#include "formats/wire/mix.h"

#include "libsample/agent.h"
#include "libsample/handler/kept_text.h"
#include "libsample/handler/proto_hash.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/layout.h"
#include "libsample/pages.h"

#define NAME_MOST   4096u               /* of a chunk name that is the text */
#define TEXT_MOST   (1u << 20)          /* of one text */
#define TEXTS_MOST  (16u << 20)         /* of all */
#define PIECE       (16u << 10)         /* of a text in one record */

struct source {
        const char *chunkname;          /* GCstr; compared with hashes and length, since addresses
                                         * are reused */
        uint64_t hash;                  /* of the name */
        uint32_t str_hash, len, id;
        int loaded;                     /* a text, not the name of a file */
};

struct text {                           /* waits to be sent; a copy, since Lua may collect the
                                         * string */
        char *copy;
        uint32_t source_id, len, sent;
};

struct ls_sources {
        struct source *slots;
        size_t nslots, used;
        uint32_t next_id;
        struct text *texts;
        size_t texts_room, ntexts, first_text;
        uint32_t total;                 /* bytes of text taken so far */
};

struct ls_sources *ls_sources_new(void)
{
        return ls_pages_new(sizeof(struct ls_sources));
}

void ls_sources_free(struct ls_sources *src)
{
        if (!src)
                return;
        for (size_t i = src->first_text; i < src->ntexts; i++)
                ls_pages_free(src->texts[i].copy, src->texts[i].len);
        ls_pages_free(src->texts, src->texts_room * sizeof *src->texts);
        ls_pages_free(src->slots, src->nslots * sizeof *src->slots);
        ls_pages_free(src, sizeof *src);
}

static struct source *slot_of(const struct ls_sources *src, const char *chunkname,
                              uint32_t str_hash, uint32_t len)
{
        size_t i = (size_t)(ls_mix((uint64_t)(uintptr_t)chunkname) >> 24);

        for (;; i++) {
                struct source *s = &src->slots[i & (src->nslots - 1)];

                if (!s->id ||
                    (s->chunkname == chunkname && s->str_hash == str_hash && s->len == len))
                        return s;
        }
}

static int make_room(struct ls_sources *src)
{
        struct source *old = src->slots;
        size_t n = src->nslots;

        if (old && src->used * 2 < n)
                return 0;
        if (n >= 1u << 18) {            /* a program that loads strings all the time: forget, send
                                         * again */
                memset(old, 0, n * sizeof *old);
                src->used = 0;
                return 0;
        }
        src->slots = ls_pages_new((n ? n * 2 : 256) * sizeof *old);
        if (!src->slots) {
                src->slots = old;
                return -1;
        }
        src->nslots = n ? n * 2 : 256;
        for (size_t i = 0; i < n; i++)
                if (old[i].id)
                        *slot_of(src, old[i].chunkname, old[i].str_hash, old[i].len) = old[i];
        ls_pages_free(old, n * sizeof *old);
        return 0;
}

/* Takes a copy of a text to send, or the copy itself. Returns its length, 0 when the limits forbid
 * it. */
static uint32_t queue_text(struct ls_sources *src, uint32_t source_id, const char *s, char *copy,
                           uint32_t len)
{
        if (!ls_agent.shm->want_text || !len)
                return 0;
        if (len > TEXT_MOST || len > TEXTS_MOST - src->total ||
            ls_pages_grow((void **)&src->texts, &src->texts_room, src->ntexts + 1,
                          sizeof *src->texts)) {
                atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_TEXT_CUT], 1);
                ls_pages_free(copy, len);
                return 0;
        }
        struct text t = { copy ? copy : ls_pages_new(len), source_id, len, 0 };

        if (!t.copy)
                return 0;
        if (!copy)
                memcpy(t.copy, ls_at(s, len), len);
        src->total += len;
        src->texts[src->ntexts++] = t;
        return len;
}

static uint32_t source_id(struct ls_thread *t, const char *chunkname, uint32_t str_hash,
                          const char *name, uint32_t len, int *ret_loaded)
{
        struct ls_sources *src = t->sources;
        struct ls_rec_source rec = { 0 };
        uint32_t copy_len;
        struct source *s;
        char *body, *copy;

        *ret_loaded = !(len && (LS_GET(name[0]) == '@' || LS_GET(name[0]) == '='));
        if (make_room(src))
                return 0;
        s = slot_of(src, chunkname, str_hash, len);
        rec.text_hash = ls_text_hash(name, len);
        if (s->id && s->hash == rec.text_hash) {
                *ret_loaded = s->loaded;
                return s->id;
        }
        rec.source_id = src->next_id + 1;
        rec.name_len = len < NAME_MOST ? len : NAME_MOST;
        body = ls_ring_reserve(t->ring, LS_REC_SOURCE, sizeof rec + rec.name_len,
                               LS_RESERVE_DEFINITION);
        if (!body) {
                atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_DEFINITION_LOST], 1);
                return 0;
        }
        copy = len && !*ret_loaded && LS_GET(name[0]) == '='
                       ? ls_kept_text_take(name, len, &copy_len)
                       : NULL;
        if (copy)
                rec.text_len = queue_text(src, rec.source_id, NULL, copy, copy_len);
        else if (*ret_loaded)
                rec.text_len = queue_text(src, rec.source_id, name, NULL, len);
        *ret_loaded |= copy != NULL;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, ls_at(name, rec.name_len), rec.name_len);
        ls_ring_commit(t->ring, body);
        src->used += !s->id;
        *s =
                (struct source){ chunkname, rec.text_hash,  str_hash,
                                 len,       ++src->next_id, *ret_loaded };
        return s->id;
}

uint32_t ls_source_id(struct ls_thread *t, const char *chunkname, int *ret_loaded)
{
        return source_id(t, chunkname, LS_READ(uint32_t, chunkname, LS_STR_HASH),
                         ls_str_data(chunkname), ls_str_len(chunkname), ret_loaded);
}

uint32_t ls_source_id_text(struct ls_thread *t, const char *name, uint32_t len, int *ret_loaded)
{
        return source_id(t, NULL, (uint32_t)ls_bytes_hash(name, len), name, len, ret_loaded);
}

void ls_sources_send_text(struct ls_thread *thread)
{
        struct ls_sources *src = thread->sources;
        struct ls_ring *ring = thread->ring;

        while (src->first_text < src->ntexts) {
                struct text *t = &src->texts[src->first_text];
                uint32_t most = (uint32_t)ls_ring_largest(ring) / 2 < PIECE
                                        ? (uint32_t)ls_ring_largest(ring) / 2
                                        : PIECE;
                uint32_t n = t->len - t->sent < most ? t->len - t->sent : most;
                struct ls_rec_text rec = { t->source_id, t->sent, n, t->len };
                uint64_t used = atomic_load(&ring->head) - atomic_load(&ring->tail);
                char *body;

                if (used > ring->size / 4)
                        return;
                body = ls_ring_reserve(ring, LS_REC_TEXT, sizeof rec + n, 0);
                if (!body)
                        return;
                memcpy(body, &rec, sizeof rec);
                memcpy(body + sizeof rec, t->copy + t->sent, n);
                ls_ring_commit(ring, body);
                t->sent += n;
                if (t->sent < t->len)
                        return;
                ls_pages_free(t->copy, t->len);
                t->copy = NULL;
                src->first_text++;
        }
        src->ntexts = src->first_text = 0;
}
