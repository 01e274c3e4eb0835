/* Texts kept from load to first sample: see kept_text.h.
 *
 * A text is kept until a function of its chunk is sampled, so only the last ones are: a program may
 * load any number that never run long. Of chunks with one name and different texts none is shown,
 * since which of them a function came from is not known. The handler never waits: while somebody
 * else is at the table it goes without a text. */

#include "libsample/handler/kept_text.h"

#include <stdatomic.h>
#include <string.h>

#include "libsample/handler/proto_hash.h"
#include "libsample/pages.h"

#define KEPT      64u
#define KEPT_MOST (2u << 20)            /* bytes of all that are kept */

static struct kept {
        uint64_t name;                  /* hash, 0 = free */
        uint64_t hash;                  /* of the text */
        char *text;                     /* NULL = taken, or different texts came under this name */
        size_t len;
} kept[KEPT];
static unsigned next_kept;
static size_t kept_bytes;
static atomic_flag in_use = ATOMIC_FLAG_INIT;

static void forget(struct kept *k)
{
        if (k->text) {
                ls_pages_free(k->text, k->len);
                kept_bytes -= k->len;
        }
        k->text = NULL;
}

static void put(uint64_t name, const char *text, size_t len)
{
        uint64_t hash = ls_bytes_hash(text, len);
        struct kept *k;

        for (unsigned i = 0; i < KEPT; i++)
                if (kept[i].name == name) {
                        if (kept[i].hash != hash)
                                forget(&kept[i]);
                        return;
                }
        do {
                k = &kept[next_kept++ % KEPT];
                forget(k);
                k->name = 0;
        } while (kept_bytes + len > KEPT_MOST);
        *k = (struct kept){ name, hash, ls_pages_new(len), len };
        if (k->text) {
                memcpy(k->text, text, len);
                kept_bytes += len;
        }
}

void ls_kept_text_put(const char *name, const char *text, size_t len)
{
        if (!len || len > KEPT_MOST ||
            atomic_flag_test_and_set_explicit(&in_use, memory_order_acquire))
                return;
        put(ls_bytes_hash(name, strlen(name)) | 1, text, len);
        atomic_flag_clear_explicit(&in_use, memory_order_release);
}

LS_HANDLER char *ls_kept_text_take(const char *name, size_t name_len, uint32_t *ret_len)
{
        uint64_t hash = ls_bytes_hash(name, name_len) | 1;
        char *text = NULL;

        if (atomic_flag_test_and_set_explicit(&in_use, memory_order_acquire))
                return NULL;
        for (unsigned i = 0; i < KEPT && !text; i++)
                if (kept[i].name == hash && kept[i].text) {
                        text = kept[i].text;
                        *ret_len = (uint32_t)kept[i].len;
                        kept[i].text = NULL;
                        kept_bytes -= kept[i].len;
                }
        atomic_flag_clear_explicit(&in_use, memory_order_release);
        return text;
}
