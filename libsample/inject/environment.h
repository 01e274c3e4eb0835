/* The two entries that bring the agent into a program, put in and taken out of an environment.
 * record/ puts them in at launch, the exec wrappers put them in again when the recorded process
 * execs, the agent's constructor takes them out, so that the program sees the environment as
 * without us, in the same order. No malloc, async-signal-safe. */
#ifndef LS_ENVIRONMENT_H
#define LS_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

/* "PID:FD:GENERATION" of LS_ENV_AGENT, all decimal. The agent adds ":e" or ":i" when the process
 * execs, ":c" for a child. */
struct ls_env_memory {
        int pid;
        int fd;
        uint64_t generation;
        char after_exec;                /* 0 = started by the recorder; 'e' = after an exec; 'i' =
                                         * and the program ignores the tick's signal; 'c' = a child,
                                         * and fd is the registry's */
};
#define LS_ENV_MEMORY_MAX 64            /* bytes of the text, terminator included */

void ls_env_memory_format(const struct ls_env_memory *memory, char buf[LS_ENV_MEMORY_MAX]);
/* 0, or -EINVAL unless text is exactly that. */
int ls_env_memory_parse(const char *text, struct ls_env_memory *ret_memory);

/* A new environment: that of the program and, behind it, an LD_PRELOAD with the program's own
 * entries and the agent's library, and LS_ENV_AGENT. The program's own LD_PRELOAD stays where it
 * is; of several the loader takes the last. So exactly the last two entries are ours. The strings
 * of env are shared, not copied. */
struct ls_env {
        char **env;                     /* for execve; ended by NULL */
        void *block;                    /* mmapped */
        size_t block_size;
};

/* env may be NULL (empty). Returns 0, -ENOMEM, -E2BIG, or -EINVAL: the loader cannot take library
 * from LD_PRELOAD (not absolute, or a space or colon in its path). */
int ls_env_add_agent(char *const *env, const char *library, const char *memory,
                     struct ls_env *ret_env);
void ls_env_done(struct ls_env *env);

/* Takes both out of env, in place: entries behind them move down, their strings become zeros; an
 * LD_PRELOAD that others put together is shortened. library is the library's path as it stands in
 * LD_PRELOAD. What stood in LS_ENV_AGENT is copied to memory, "" if it was not there or too long.
 * Returns 1 if something was removed. */
int ls_env_remove_agent(char **env, const char *library, char memory[LS_ENV_MEMORY_MAX]);

#endif
