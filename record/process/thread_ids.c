/* Ids of threads as pid namespaces have them: see thread_ids.h. */
#include "record/process/thread_ids.h"
#include "record/process/proc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

pid_t ls_thread_inner_id(pid_t pid, pid_t tid)
{
        char text[4096], *p, *end;
        pid_t last = 0;

        if (ls_proc_read(pid, tid, "status", text, sizeof(text)) <= 0)
                return 0;
        p = strstr(text, "\nNSpid:");
        if (!p)                         /* a kernel before 4.1 */
                return tid;
        for (p += 7; *p == '\t' || *p == ' ' || isdigit((unsigned char)*p); p = end) {
                last = (pid_t)strtol(p, &end, 10);
                if (end == p)
                        break;
                if (*end == '\n')
                        break;
        }
        return last;
}

pid_t ls_thread_outer_id(pid_t pid, pid_t inner)
{
        pid_t found = 0, tid;
        DIR *dir;

        if (inner > 0 && ls_thread_inner_id(pid, inner) == inner)       /* the same namespace */
                return inner;
        dir = ls_proc_tasks(pid);
        while (!found && (tid = ls_proc_next(dir)))
                if (ls_thread_inner_id(pid, tid) == inner)
                        found = tid;
        if (dir)
                closedir(dir);
        return inner > 0 ? found : 0;
}
