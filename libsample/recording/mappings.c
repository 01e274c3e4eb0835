/* Tells the recorder what is loaded where, so that it can give C functions their names. Called at
 * start and after objects were loaded. */

#include "libsample/recording/mappings.h"

#include <pthread.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/inject/objects.h"
#include "libsample/thread.h"

#define MAX_SENT 4096u          /* segments remembered; more are not sent */
#define MAX_BUILD_ID 64u

static uint64_t sent[MAX_SENT]; /* open addressing by key; 0 = free */
static unsigned nsent;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t key_of(const struct ls_rec_mapping *map, const char *path, const void *build_id)
{
        uint64_t h = UINT64_C(0xcbf29ce484222325) ^ map->start;
        const unsigned char *id = build_id;

        for (h *= UINT64_C(0x100000001b3); *path; path++)
                h = (h ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
        for (uint32_t i = 0; i < map->build_id_len; i++)
                h = (h ^ id[i]) * UINT64_C(0x100000001b3);
        return h ? h : 1;
}

static uint64_t *slot_of(uint64_t key)
{
        uint64_t *slot = &sent[key % MAX_SENT];

        while (*slot && *slot != key)
                slot = slot == &sent[MAX_SENT - 1] ? sent : slot + 1;
        return slot;
}

static void send_segment(struct ls_ring *ring, const struct ls_object *object, const ElfW(Phdr) *ph)
{
        struct ls_rec_mapping map = {
                .start = object->base + ph->p_vaddr,
                .end = object->base + ph->p_vaddr + ph->p_memsz,
                .file_offset = ph->p_offset,
                .path_len = (uint32_t)strlen(object->path),
        };
        size_t id_len;
        const void *id = ls_object_build_id(object, &id_len);
        uint64_t key, *slot;
        char *body;

        map.build_id_len = id && id_len <= MAX_BUILD_ID ? (uint32_t)id_len : 0;
        key = key_of(&map, object->path, id);
        slot = slot_of(key);
        if (*slot || nsent == MAX_SENT - 1)
                return;
        body = ls_ring_reserve(ring, LS_REC_MAPPING, sizeof map + map.path_len + map.build_id_len,
                               LS_RESERVE_DEFINITION);
        if (!body)
                return;                 /* the next call tries again */
        memcpy(body, &map, sizeof map);
        memcpy(body + sizeof map, object->path, map.path_len);
        if (map.build_id_len)
                memcpy(body + sizeof map + map.path_len, id, map.build_id_len);
        ls_ring_commit(ring, body);
        *slot = key;
        nsent++;
}

static int send_object(const struct ls_object *object, void *data)
{
        for (unsigned i = 0; i < object->nphdrs; i++) {
                const ElfW(Phdr) *ph = &object->phdrs[i];

                if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X))
                        send_segment(data, object, ph);
        }
        return 0;
}

void ls_mappings_restart(void)
{
        memset(sent, 0, sizeof sent);
        nsent = 0;
}

int ls_may_write_ring(void)
{
        return ls_thread_self() != NULL;
}

void ls_mappings_send(void)
{
        struct ls_thread *t = ls_thread_self();

        if (!t)
                return;
        pthread_mutex_lock(&lock);
        ls_objects_each(send_object, t->ring);
        pthread_mutex_unlock(&lock);
}

void ls_mappings_after_fork(void)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        memcpy(&lock, &fresh, sizeof fresh);
        memset(sent, 0, sizeof sent);
        nsent = 0;
}
