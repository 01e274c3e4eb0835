/* The agent's first and last steps in a program: the constructor takes the agent's traces out of
 * the environment, finds the recorder's memory (process.c), and patches LuaJIT's entries; the
 * destructor says that the process ended. Prints nothing and keeps errno; what fails leaves the
 * program unrecorded and otherwise alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/attach/attached.h"
#include "libsample/handler/clock.h"
#include "libsample/inject/objects.h"
#include "libsample/interpose/interpose.h"
#include "libsample/libc/real.h"
#include "libsample/recording/mappings.h"
#include "libsample/recording/pass.h"
#include "libsample/start/probe_entry.h"
#include "libsample/vm/life.h"
#include "libsample/vm/view.h"

struct ls_preload ls_preload;

/* Started only to be asked how its LuaJIT lays out VMs. The program's own code must not run. */
static void answer_probe(void)
{
        const char *fd = getenv(LS_PROBE_VARIABLE);

        if (fd)
                _exit(luasample_probe(atoi(fd)) ? 1 : 0);
}

__attribute__((constructor(101))) static void come_up(void)
{
        int saved = errno;
        uint64_t began = ls_thread_cpu_ns();
        struct ls_object self;
        struct ls_env_memory memory = { 0 };
        char text[LS_ENV_MEMORY_MAX];

        ls_libc_resolve();
        if (ls_object_of_address(&ls_preload, &self) &&
            strlen(self.path) < sizeof ls_preload.library)
                strcpy(ls_preload.library, self.path);
        if (ls_attach_is_way_of(ls_preload.library)) {  /* the environment may be changing now */
                errno = saved;
                return;
        }
        ls_env_remove_agent(environ, ls_preload.library, text);
        if (ls_env_memory_parse(text, &memory) == 0)
                ls_process_start(&memory);
        else
                answer_probe();
        if (ls_process_is_known())
                ls_vm_library_scan(1);
        if (memory.after_exec == 'c')
                ls_process_child_is_here();
        if (ls_agent.shm)
                atomic_fetch_add(&ls_agent.shm->own_start_ns, ls_thread_cpu_ns() - began);
        errno = saved;
}

__attribute__((destructor(101))) static void process_ends(void)
{
        int saved = errno;

        if (ls_agent.shm && ls_in_recorded_process() && ls_control_pass_vm()) {
                ls_mappings_send();
                ls_engine_process_end();
                ls_control_go_out();
        }
        errno = saved;
}
