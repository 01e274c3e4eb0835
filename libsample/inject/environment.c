/* See environment.h. */

#include "libsample/inject/environment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "formats/wire/shm.h"

#define PRELOAD "LD_PRELOAD="
#define PRELOAD_LEN (sizeof PRELOAD - 1)
#define AGENT LS_ENV_AGENT "="
#define AGENT_LEN (sizeof AGENT - 1)

/* First word of an entry in the auxiliary vector that its readers skip (elf.h's AT_IGNORE). */
#define AUX_IGNORE ((char *)1)

static char *put_decimal(char *to, uint64_t n)
{
        char digits[20];
        size_t len = 0;

        do
                digits[len++] = (char)('0' + n % 10);
        while (n /= 10);
        while (len)
                *to++ = digits[--len];
        return to;
}

void ls_env_memory_format(const struct ls_env_memory *memory, char buf[LS_ENV_MEMORY_MAX])
{
        char *p = put_decimal(buf, (uint64_t)(unsigned)memory->pid);

        *p++ = ':';
        p = put_decimal(p, (uint64_t)(unsigned)memory->fd);
        *p++ = ':';
        p = put_decimal(p, memory->generation);
        if (memory->after_exec) {
                *p++ = ':';
                *p++ = memory->after_exec;
        }
        *p = '\0';
}

/* A decimal number of at most max. Moves *text behind it. */
static int get_decimal(const char **text, uint64_t max, uint64_t *ret)
{
        const char *p = *text;
        uint64_t n = 0;

        if (*p < '0' || *p > '9')
                return -EINVAL;
        for (; *p >= '0' && *p <= '9'; p++) {
                unsigned digit = (unsigned)(*p - '0');

                if (n > (max - digit) / 10)
                        return -EINVAL;
                n = n * 10 + digit;
        }
        *text = p;
        *ret = n;
        return 0;
}

int ls_env_memory_parse(const char *text, struct ls_env_memory *ret_memory)
{
        uint64_t pid, fd, generation;
        char after_exec = 0;

        if (get_decimal(&text, INT32_MAX, &pid) < 0 || *text++ != ':' ||
            get_decimal(&text, INT32_MAX, &fd) < 0 || *text++ != ':' ||
            get_decimal(&text, UINT64_MAX, &generation) < 0 || pid == 0 || generation == 0)
                return -EINVAL;
        if (text[0] == ':' && (text[1] == 'e' || text[1] == 'i' || text[1] == 'c')) {
                after_exec = text[1];
                text += 2;
        }
        if (*text)
                return -EINVAL;
        *ret_memory = (struct ls_env_memory){ (int)pid, (int)fd, generation, after_exec };
        return 0;
}

static int is_preload(const char *entry)
{
        return strncmp(entry, PRELOAD, PRELOAD_LEN) == 0;
}

static int is_agent(const char *entry)
{
        return strncmp(entry, AGENT, AGENT_LEN) == 0;
}

static char *put(char *to, const char *text, size_t len)
{
        memcpy(to, text, len);
        to[len] = '\0';
        return to + len;
}

int ls_env_add_agent(char *const *env, const char *library, const char *memory,
                     struct ls_env *ret_env)
{
        size_t n = 0, preload_at = SIZE_MAX, library_len = strlen(library),
               memory_len = strlen(memory);
        size_t own_len = 0, size;
        char **out, *text;

        if (library[0] != '/' || strpbrk(library, ": $"))
                return -EINVAL;
        for (; env && env[n]; n++) {    /* of several the loader takes the last */
                if (is_preload(env[n]))
                        preload_at = n;
        }
        if (preload_at != SIZE_MAX)
                own_len = strlen(env[preload_at]);
        if (n > SIZE_MAX / 64 || own_len > SIZE_MAX / 4)
                return -E2BIG;
        size = (n + 3) * sizeof *out + PRELOAD_LEN + own_len + 1 + library_len + 1 + AGENT_LEN +
               memory_len + 1;
        out = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (out == MAP_FAILED)
                return -ENOMEM;
        *ret_env = (struct ls_env){ .env = out, .block = out, .block_size = size };

        if (n)
                memcpy(out, env, n * sizeof *out);
        text = (char *)(out + n + 3);
        out[n++] = text;
        if (preload_at == SIZE_MAX) {
                text = put(text, PRELOAD, PRELOAD_LEN);
        } else {
                text = put(text, env[preload_at], own_len);
                text = put(text, ":", 1);
        }
        text = put(text, library, library_len) + 1;
        out[n++] = text;
        text = put(text, AGENT, AGENT_LEN);
        put(text, memory, memory_len);
        out[n] = NULL;
        return 0;
}

void ls_env_done(struct ls_env *env)
{
        if (env->block)
                munmap(env->block, env->block_size);
        *env = (struct ls_env){ 0 };
}

/* Takes library out of an LD_PRELOAD entry together with the separator that came with it. Returns 1
 * when the entry has to go: it was ours alone, or it repeats with our library added what stands in
 * an entry before it (is_second). *ret_found = 1 when library was in it. */
static int strip_preload(char *entry, const char *library, int is_second, int *ret_found)
{
        size_t len = strlen(library), total = strlen(entry), cut;
        char *at = entry + PRELOAD_LEN, *end;

        for (;; at = end + 1) {
                end = at + strcspn(at, " :");
                if ((size_t)(end - at) == len && memcmp(at, library, len) == 0)
                        break;
                if (!*end)
                        return 0;
        }
        *ret_found = 1;
        if (is_second || (at == entry + PRELOAD_LEN && !*end))
                return 1;
        if (at > entry + PRELOAD_LEN)
                at--;                   /* ":library" */
        else
                end++;                  /* "library:" */
        cut = (size_t)(end - at);
        memmove(at, end, (size_t)(entry + total + 1 - end));
        memset(entry + total + 1 - cut, 0, cut);        /* what /proc/PID/environ shows */
        return 0;
}

int ls_env_remove_agent(char **env, const char *library, char memory[LS_ENV_MEMORY_MAX])
{
        size_t n, kept = 0;
        int found = 0, own_preload = 0;

        memory[0] = '\0';
        for (n = 0; env && env[n]; n++) {
                char *entry = env[n];

                if (is_agent(entry)) {
                        size_t len = strlen(entry + AGENT_LEN);

                        if (len < LS_ENV_MEMORY_MAX)
                                memcpy(memory, entry + AGENT_LEN, len + 1);
                        memset(entry, 0, AGENT_LEN + len);
                        found = 1;
                        continue;
                }
                if (is_preload(entry)) {
                        if (strip_preload(entry, library, own_preload, &found)) {
                                memset(entry, 0, strlen(entry));
                                continue;
                        }
                        own_preload = 1;
                }
                env[kept++] = entry;
        }
        if (kept == n)
                return found;
        for (size_t i = kept; i < n; i++)
                env[i] = NULL;
        /* Programs that look for the auxiliary vector behind the environment's NULL find an entry
         * to skip. */
        if (n - kept == 2)
                env[n - 1] = AUX_IGNORE;
        return 1;
}
