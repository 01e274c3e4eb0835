/* Native stacks as luasample's agent would send them, written to a file by a program of the tests:
 * registers and a copy of the stack at a signal, and what is mapped. Included by the programs that
 * are sampled and by the test that finds the frames (tests/unit/test_record_native_unwind.c). */
#ifndef LS_TESTS_NATIVE_DUMP_H
#define LS_TESTS_NATIVE_DUMP_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define DUMP_CFRAMES 64
#define DUMP_SIGNAL SIGRTMIN
#define DUMP_BELOW 128                  /* the red zone of x86-64 */

struct dump_record {
        uint32_t size;                  /* bytes that follow: of a stack, or the text of
                                         * /proc/PID/maps */
        uint32_t is_maps;
        char name[40];                  /* of the scenario */
        uint64_t reg[17];               /* by DWARF number; rip last */
        uint64_t cframes[DUMP_CFRAMES];
        uint32_t n_cframes;
        uint32_t pad;
        uint8_t below[DUMP_BELOW];      /* bytes below the stack pointer, which the agent does not
                                         * copy */
};

static int dump_fd = -1;
static const char *volatile dump_name;          /* NULL = take no sample */
static size_t dump_limit = 16384;
static __thread uintptr_t dump_stack_end;
static void (*dump_cframes)(struct dump_record *r);
static volatile sig_atomic_t dump_taken;

static inline void dump_set_stack_end(void)
{
        pthread_attr_t attr;
        void *start;
        size_t size;

        if (pthread_getattr_np(pthread_self(), &attr) != 0 ||
            pthread_attr_getstack(&attr, &start, &size) != 0)
                abort();
        dump_stack_end = (uintptr_t)start + size;
        pthread_attr_destroy(&attr);
}

static inline void dump_write(const void *p, size_t n)
{
        if (write(dump_fd, p, n) != (ssize_t)n)
                abort();
}

static inline void dump_handler(int sig, siginfo_t *info, void *context)
{
        static const int order[17] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                       REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
        const greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
        static char buffer[sizeof(struct dump_record) + 65536];
        struct dump_record *r = (struct dump_record *)buffer;
        uint64_t sp = (uint64_t)regs[REG_RSP];

        (void)sig, (void)info;
        if (!dump_name || dump_fd < 0)
                return;
        memset(r, 0, sizeof(*r));
        strncpy(r->name, dump_name, sizeof(r->name) - 1);
        for (int i = 0; i < 17; i++)
                r->reg[i] = (uint64_t)regs[order[i]];
        r->size = (uint32_t)(dump_stack_end - sp < dump_limit ? dump_stack_end - sp : dump_limit);
        memcpy(buffer + sizeof(*r), (const void *)sp, r->size);
        memcpy(r->below, (const uint8_t *)sp - DUMP_BELOW, DUMP_BELOW);
        if (dump_cframes)
                dump_cframes(r);
        dump_write(buffer, sizeof(*r) + r->size);
        dump_taken++;
}

/* The file is appended to: a program may be sampled by several parts. */
static inline void dump_open(const char *path)
{
        struct sigaction sa = { .sa_sigaction = dump_handler, .sa_flags = SA_SIGINFO | SA_RESTART };

        dump_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (dump_fd < 0 || sigaction(DUMP_SIGNAL, &sa, NULL) != 0 ||
            sigaction(SIGALRM, &sa, NULL) != 0)
                abort();
        dump_set_stack_end();
}

static inline void dump_maps(void)
{
        static char text[1 << 18];
        struct dump_record r = { .is_maps = 1 };
        int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
        ssize_t n;

        while (fd >= 0 && (n = read(fd, text + r.size, sizeof(text) - r.size)) > 0)
                r.size += (uint32_t)n;
        if (fd < 0 || !r.size)
                abort();
        close(fd);
        dump_write(&r, sizeof(r));
        dump_write(text, r.size);
}

/* Samples at an interval until count are taken: each call of work goes on for a while. */
static inline void dump_ticks(const char *name, int count, void (*work)(void *), void *arg)
{
        struct itimerval on = { { 0, 300 }, { 0, 300 } }, off = { { 0, 0 }, { 0, 0 } };

        dump_taken = 0;
        dump_name = name;
        setitimer(ITIMER_REAL, &on, NULL);
        while (dump_taken < count)
                work(arg);
        setitimer(ITIMER_REAL, &off, NULL);
        dump_name = NULL;
}

#endif
