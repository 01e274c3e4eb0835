/* Uses LuaJIT's own profiler through its C API, as programs with their own profiler do:
 * profile_api. Prints, eight times: window SAMPLES CPU_MS; then: calls N data ok|bad dump TEXT len
 * N states LETTERS. */
#include "tests/hosts/host.h"

#include <luajit.h>
#include <string.h>

struct count {
        int samples, calls;
        const char *first, *second;     /* the buffers that dumpstack returned */
        char dump[64];
        size_t len;
        char states[8];
};

static int magic;                       /* its address is the data that must come back */
static struct count counted;

static void on_sample(void *data, lua_State *L, int samples, int vmstate)
{
        size_t len = 0;
        const char *text;

        if (data != &magic)
                counted.calls = -1000000;
        counted.samples += samples;
        counted.calls++;
        if (!strchr(counted.states, vmstate) && strlen(counted.states) < 7)
                counted.states[strlen(counted.states)] = (char)vmstate;
        text = luaJIT_profile_dumpstack(L, "fZ;", -100, &len);
        counted.second = counted.first;
        counted.first = text;
        counted.len = len < sizeof(counted.dump) - 1 ? len : sizeof(counted.dump) - 1;
        memcpy(counted.dump, text, counted.len);
        counted.dump[counted.len] = 0;
}

int main(void)
{
        lua_State *L = host_new();
        uint64_t start, now;
        int before = 0;

        host_run(L, HOST_BURN, "=burn");
        host_run(L, "burn2(300)", "=before");
        start = host_ns(CLOCK_PROCESS_CPUTIME_ID);
        luaJIT_profile_start(L, "fi10", on_sample, &magic);
        for (int i = 0; i < 8; i++) {
                host_run(L, "burn(250)", "=work");
                now = host_ns(CLOCK_PROCESS_CPUTIME_ID);
                printf("window %d %.3f\n", counted.samples - before, (double)(now - start) / 1e6);
                before = counted.samples;
                start = now;
        }
        luaJIT_profile_stop(L);
        luaJIT_profile_stop(L);
        host_run(L, "burn2(300)", "=after");
        printf("calls %d data %s dump %s len %zu states %s\n", counted.calls,
               counted.calls > 0 ? "ok" : "bad", counted.dump, counted.len, counted.states);
        lua_close(L);
        return 0;
}
