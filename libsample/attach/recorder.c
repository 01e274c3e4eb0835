/* See recorder.h. A process is known by its number and by when it began, since numbers are used
 * again. */

#include "libsample/attach/recorder.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "libsample/agent.h"

#define START_FIELD 20                  /* of /proc/PID/stat, counted from the state */

static char began[24];                  /* "" = it was not seen */
static int may_be_seen;                 /* 0 = it may live without being seen */

static char *decimal(char *p, unsigned n)
{
        char digits[12];
        int i = 0;

        do
                digits[i++] = (char)('0' + n % 10);
        while (n /= 10);
        while (i)
                *p++ = digits[--i];
        return p;
}

/* Returns the state's letter, 0 = no such process is seen, and when it began. */
static char look(uint32_t pid, char ret_began[24])
{
        char path[32] = "/proc/", buf[1024], *p;
        ssize_t n = -1;
        int fd;

        ret_began[0] = 0;
        memcpy(decimal(path + 6, pid), "/stat", 6);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
                n = read(fd, buf, sizeof buf - 1);
                close(fd);
        }
        if (n <= 0)
                return 0;
        buf[n] = 0;
        p = strrchr(buf, ')');
        if (!p || !p[1])
                return 0;
        char state = p[2];

        p++;
        for (int field = 0; p && field < START_FIELD - 1; field++)
                p = strchr(p + 1, ' ');
        for (size_t i = 0; p && i < 23 && p[i + 1] >= '0' && p[i + 1] <= '9'; i++) {
                ret_began[i] = p[i + 1];
                ret_began[i + 1] = 0;
        }
        return state;
}

/* The first process is seen wherever those of others are: not with hidepid=2. */
void ls_recorder_remember(void)
{
        char first[24];
        uint32_t pid = ls_agent.shm->recorder_pid;

        began[0] = 0;
        may_be_seen = pid && (look(pid, began) || look(1, first));
}

enum ls_recorder_state ls_recorder_state(void)
{
        char now[24], state;

        if (!may_be_seen)
                return LS_RECORDER_THERE;
        state = look(ls_agent.shm->recorder_pid, now);
        return !state || state == 'Z' || state == 'X' || strcmp(now, began) ? LS_RECORDER_GONE : LS_RECORDER_THERE;
}
