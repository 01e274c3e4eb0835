/* Ids of threads as pid namespaces have them: see thread_ids.h. */
#include "record/process/thread_ids.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_status(pid_t pid, pid_t tid, char *buf, size_t size)
{
        char path[80];
        size_t n;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
        f = fopen(path, "re");
        if (!f)
                return -1;
        n = fread(buf, 1, size - 1, f);
        buf[n] = 0;
        fclose(f);
        return n ? 0 : -1;
}

pid_t ls_thread_inner_id(pid_t pid, pid_t tid)
{
        char text[4096], *p, *end;
        pid_t last = 0;

        if (read_status(pid, tid, text, sizeof(text)) < 0)
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
        char path[64];
        struct dirent *e;
        pid_t found = 0;
        DIR *dir;

        if (inner > 0 && ls_thread_inner_id(pid, inner) == inner)       /* the same namespace */
                return inner;
        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        dir = opendir(path);
        while (dir && !found && (e = readdir(dir))) {
                pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

                if (tid > 0 && ls_thread_inner_id(pid, tid) == inner)
                        found = tid;
        }
        if (dir)
                closedir(dir);
        return inner > 0 ? found : 0;
}
