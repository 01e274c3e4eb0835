/* posix_spawn, which starts a child in libc's own code: its exec is not seen, so the parent puts
 * the agent into its environment; and what tells the recorder of children that run LuaJIT and
 * cannot be followed. */
#include "libsample/libc/real.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libsample/agent.h"
#include "libsample/inject/inspect.h"
#include "libsample/interpose/interpose.h"

/* Writes a child slot; all are taken while the recorder sleeps or is gone: then it is not told. */
static void tell(struct ls_shm *shm, pid_t pid, const char *path)
{
        size_t len = strlen(path);
        struct ls_child_exec *slot;

        if (len >= LS_CHILD_PATH)
                len = LS_CHILD_PATH - 1;
        for (int i = 0; i < LS_CHILD_SLOTS; i++) {
                slot = &shm->children[atomic_fetch_add(&shm->child_next, 1) % LS_CHILD_SLOTS];
                if (atomic_load(&slot->pid) != 0)
                        continue;
                memcpy(slot->path, path, len);
                slot->path[len] = '\0';
                atomic_store(&slot->pid, (uint32_t)pid);
                return;
        }
}

void ls_note_child(pid_t pid, const char *file, const char *search_path)
{
        struct ls_shm *shm = ls_agent.shm;
        struct ls_image *image;
        int saved = errno;

        if (!shm || !file)
                return;
        image = mmap(NULL, sizeof *image, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                     0);
        if (image != MAP_FAILED) {
                ls_image_inspect(file, search_path, LS_INSPECT_SHELL, image);
                if (ls_image_has_luajit(image) &&
                    !(ls_preload.registry.pid && ls_image_preloadable(image)))
                        tell(shm, pid, image->path);
                munmap(image, sizeof *image);
        }
        errno = saved;
}

void ls_note_command(pid_t pid, const char *command)
{
        char word[256];

        while (command) {
                size_t len;

                command += strspn(command, " \t\n");
                len = strcspn(command, " \t\n;&|<>()");
                if (len == 0 || len >= sizeof word)
                        return;
                memcpy(word, command, len);
                word[len] = '\0';
                command += len;
                if (!strchr(word, '=') && strcmp(word, "exec") != 0) {
                        ls_note_child(pid, word, getenv("PATH"));
                        return;
                }
        }
}

void ls_note_shell(pid_t pid, char *const argv[])
{
        size_t len = argv && argv[0] ? strlen(argv[0]) : 0;

        if (len >= 2 && strcmp(argv[0] + len - 2, "sh") == 0 && argv[1] &&
            strcmp(argv[1], "-c") == 0)
                ls_note_command(pid, argv[2]);
}

typedef int (*spawn_fn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                        const posix_spawnattr_t *, char *const[], char *const[]);

static int spawn(spawn_fn fn, pid_t *pid, const char *file, const char *search_path,
                 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
                 char *const argv[], char *const envp[])
{
        struct ls_env made = { 0 };
        pid_t child = 0;
        int r, followed;

        if (ls_process_is_known())
                envp = ls_env_of_child(file, search_path, search_path ? LS_INSPECT_SHELL : 0, envp,
                                       &made);
        r = fn(&child, file, actions, attr, argv, envp);
        followed = made.env != NULL;
        if (r && followed)
                ls_process_child_comes(-1);
        ls_env_done(&made);
        if (r == 0 && pid)
                *pid = child;
        if (r == 0 && !followed) {
                ls_note_child(child, file, search_path);
                ls_note_shell(child, argv);
        }
        return r;
}

LS_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
        return spawn(ls_libc()->posix_spawn, pid, path, NULL, actions, attr, argv, envp);
}

LS_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
        const char *path = getenv("PATH");

        return spawn(ls_libc()->posix_spawnp, pid, file, path ? path : "", actions, attr, argv,
                     envp);
}
