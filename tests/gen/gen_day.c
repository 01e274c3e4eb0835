/* Makes a time of a service as the daemon has recorded it, a chunk a minute, at 100 Hz:
 *
 *     gen_day FOLDER NAME PID BEGIN MINUTES TICKS STACKS
 *
 * FOLDER: of the service in a store; NAME: of its process; BEGIN: seconds of wall time, a full
 * minute; TICKS: samples of a minute, 6000 = a busy processor; STACKS: different ones, the first of
 * which are met most. Prints each function with its own ticks, and those of all functions in the
 * first half of the time. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "formats/info.h"
#include "formats/trace/writer.h"

#define INTERVAL_NS 10000000ull
#define MINUTE_NS 60000000000ull
#define FUNCTIONS 40u
#define UPTIME_S 1000000u               /* wall time less this: when the machine booted */

static uint64_t state = 1, ticks_of[FUNCTIONS], first_half;

static uint32_t draw(uint32_t below)
{
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)((state >> 33) % below);
}

/* Stack number i: depth and frames follow from the number alone. *ret_leaf: its innermost
 * function. */
static uint32_t stack_of(struct ls_trace_writer *w, const uint32_t *functions, uint32_t i,
                         uint32_t *ret_leaf)
{
        uint32_t stack = 0, at = i * 2654435761u;

        for (uint32_t depth = 3 + i % 9; depth > 0; depth--, at = at * 1664525u + 1013904223u) {
                uint32_t line;

                *ret_leaf = (at >> 16) % FUNCTIONS;
                line = *ret_leaf * 10 + 1 + (at >> 8) % 8;
                stack = ls_trace_stack(w, stack, ls_trace_location(w, functions[*ret_leaf], line));
        }
        return stack;
}

static void add_functions(struct ls_trace_writer *w, uint32_t *functions)
{
        uint32_t source = ls_trace_source(w, &(struct ls_source_def){
                .name = ls_trace_string(w, "@made.lua", 9), .text_hash = 7, .size = 1000 });

        for (uint32_t i = 0; i < FUNCTIONS; i++) {
                char name[16];
                int n = snprintf(name, sizeof(name), "f%" PRIu32, i);

                functions[i] = ls_trace_function(w, &(struct ls_function_def){ .kind = LS_FUNC_LUA,
                        .source = source, .first_line = i * 10 + 1, .last_line = i * 10 + 9,
                        .hash = i + 1 });
                ls_trace_name(w, functions[i], LS_NAME_GLOBAL, ls_trace_string(w, name, (size_t)n));
        }
}

static void add_samples(struct ls_trace_writer *w, uint64_t start_ns, uint32_t thread, uint32_t vm,
                        uint32_t ticks, uint32_t stacks, int is_first)
{
        uint32_t functions[FUNCTIONS], leaf = 0;

        add_functions(w, functions);
        for (uint32_t i = 0; i < ticks; i++) {
                uint32_t stack = stack_of(w, functions, draw(draw(stacks) + 1), &leaf);

                ls_trace_sample(w, &(struct ls_sample_row){
                        .event = LS_EVENT_CPU, .thread = thread, .vm = vm, .stack = stack,
                        .vmstate = (uint8_t)draw(2), .weight = 1,
                        .time_ns = start_ns + MINUTE_NS / ticks * (i + 1) });
                ticks_of[leaf]++;
                first_half += (uint64_t)is_first;
        }
}

static int write_chunk(int fd, const char *name, uint32_t pid, uint64_t begin_s, uint32_t ticks,
                       uint32_t stacks, int is_first)
{
        uint64_t realtime = begin_s * 1000000000ull;
        uint64_t start = UPTIME_S * 1000000000ull + realtime % (86400000000000ull * 4);
        struct ls_trace_writer *w;
        uint32_t process, thread, vm, text;
        int r = ls_trace_writer_open(fd, INTERVAL_NS, &w);

        if (r)
                return r;
        text = ls_trace_string(w, name, strlen(name));
        process = ls_trace_process(w, pid, text);
        thread = ls_trace_thread(w, process, pid, text);
        vm = ls_trace_vm(w, process, 1, ls_trace_string(w, "LuaJIT 2.1", 10));
        ls_trace_event(w, LS_EVENT_CPU, INTERVAL_NS);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_START_MONOTONIC), start);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_START_REALTIME), realtime);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_ELAPSED), MINUTE_NS);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_TICKS), ticks);
        ls_trace_info_u64(w, ls_info_key(LS_INFO_COMPLETE), 1);
        ls_trace_info_str(w, ls_info_key(LS_INFO_HOST), "made");
        ls_trace_clocks(w, start, realtime, start);
        add_samples(w, start, thread, vm, ticks, stacks, is_first);
        return ls_trace_writer_close(w);
}

/* Opens DAY/NAME of the folder for the minute. Returns the descriptor or -errno. */
static int open_chunk(const char *folder, uint32_t pid, uint64_t begin_s)
{
        time_t then = (time_t)begin_s;
        char path[4096], day[16], hour[16];
        struct tm tm;
        int fd;

        gmtime_r(&then, &tm);
        strftime(day, sizeof(day), "%Y-%m-%d", &tm);
        strftime(hour, sizeof(hour), "%H%M%S", &tm);
        snprintf(path, sizeof(path), "%s/%s", folder, day);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        snprintf(path, sizeof(path), "%s/%s/%s.000-60000-%" PRIu32 "-0.luasample", folder, day,
                 hour, pid);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

int main(int argc, char **argv)
{
        uint64_t begin = argc == 8 ? strtoull(argv[4], NULL, 10) : 0;
        uint32_t pid = argc == 8 ? (uint32_t)atoi(argv[3]) : 0, minutes, ticks, stacks;

        if (!begin || !pid) {
                fprintf(stderr, "usage: gen_day FOLDER NAME PID BEGIN MINUTES TICKS STACKS\n");
                return 129;
        }
        minutes = (uint32_t)atoi(argv[5]);
        ticks = (uint32_t)atoi(argv[6]);
        stacks = (uint32_t)atoi(argv[7]);
        state = pid;
        for (uint32_t i = 0; i < minutes; i++) {
                uint64_t at = begin + i * 60ull;
                int fd = open_chunk(argv[1], pid, at), r = fd < 0 ? fd :
                         write_chunk(fd, argv[2], pid, at, ticks, stacks, i < minutes / 2);

                if (r || close(fd)) {
                        fprintf(stderr, "gen_day: %s: %s\n", argv[1], strerror(r ? -r : errno));
                        return 1;
                }
        }
        for (uint32_t i = 0; i < FUNCTIONS; i++)
                printf("f%" PRIu32 " %" PRIu64 "\n", i, ticks_of[i]);
        printf("first-half %" PRIu64 "\n", first_half);
        return 0;
}
