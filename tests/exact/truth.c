/* A Lua module that counts how often each bytecode of a program is executed, in one of two ways: by
 * the agent's exact counts, or by hooks of Lua's own C API, one call for each instruction and each
 * function. run.py compares the two, and what was compiled. Built from the agent's sources; loaded
 * into each LuaJIT that is tested. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/exact/flow.h"
#include "libsample/agent.h"
#include "libsample/exact/exact.h"
#include "libsample/handler/walk.h"
#include "libsample/jit/jit.h"
#include "libsample/thread.h"
#include "libsample/lua_debug.h"
#include "libsample/handler/vms.h"
#include "tests/unit/vm_agent.h"

static struct ls_vm vm;
static const void *memory;
static int memory_fd = -1;

/* What a prototype is known by: those that are equal are counted together. */
struct kind {
        char *name;
        size_t len;
        int first, last, at_least;
        uint32_t n;
        uint64_t *counts;
        struct call *calls;
        struct kind *next;
};
struct call {                           /* of this one, from a line of another */
        const struct kind *caller;
        uint32_t line;
        uint64_t times;
        struct call *next;
};
enum { BUCKETS = 65536 };
static struct kind *kinds[BUCKETS];

static struct kind *kind_of(const char *name, size_t len, int first, int last, uint32_t n)
{
        uint32_t h = (uint32_t)first * 31 + (uint32_t)last * 1009 + n;
        struct kind *k;

        for (size_t i = 0; i < len; i++)
                h = h * 33 + (unsigned char)name[i];
        for (k = kinds[h % BUCKETS]; k; k = k->next)
                if (k->len == len && k->first == first && k->last == last && k->n == n &&
                    !memcmp(k->name, name, len))
                        return k;
        k = calloc(1, sizeof *k);
        *k = (struct kind){ .name = malloc(len + 1),
                            .len = len,
                            .first = first,
                            .last = last,
                            .n = n,
                            .counts = calloc(n, sizeof *k->counts),
                            .next = kinds[h % BUCKETS] };
        memcpy(k->name, name, len);
        k->name[len] = 0;
        return kinds[h % BUCKETS] = k;
}

/* Numbers of instructions, less that of FORI. */
enum { CALLMT = -10, CALLT = -9 };

static void add_calls(struct kind *callee, const struct kind *caller, uint32_t line, uint64_t times)
{
        struct call *c;

        for (c = callee->calls; c && (c->caller != caller || c->line != line); c = c->next)
                ;
        if (!c) {
                c = calloc(1, sizeof *c);
                *c = (struct call){ caller, line, 0, callee->calls };
                callee->calls = c;
        }
        c->times += times;
}

static struct kind *kind_of_proto(const char *pt)
{
        const char *name = LS_READ(const char *, pt, LS_PT_CHUNKNAME);

        return kind_of(ls_str_data(name), ls_str_len(name), LS_READ(int32_t, pt, LS_PT_FIRSTLINE),
                       LS_READ(int32_t, pt, LS_PT_FIRSTLINE) + LS_READ(int32_t, pt, LS_PT_NUMLINE),
                       LS_READ(uint32_t, pt, LS_PT_SIZEBC));
}

/* The last instruction, when it is a tail call. */
static struct { const struct kind *k; uint32_t line; } tail;

/* A function is called: by the tail call that was the last instruction, else by the innermost Lua
 * function below. */
static void hook_caller(lua_State *L, struct kind *callee)
{
        struct lua_Debug below;

        if (tail.k) {
                add_calls(callee, tail.k, tail.line, 1);
                return;
        }
        for (int level = 1; ls_lua.lua_getstack(L, level, &below); level++) {
                const char *fn;

                ls_lua.lua_getinfo(L, "fl", &below);
                fn = ls_lua.lua_topointer(L, -1);
                ls_lua.lua_settop(L, -2);
                if (ls_fn_is_lua(fn)) {
                        add_calls(callee, kind_of_proto(ls_fn_proto(fn)),
                                  (uint32_t)below.currentline, 1);
                        return;
                }
        }
}

static void hook(lua_State *L, struct lua_Debug *ar)
{
        static const char *last;
        static uint32_t last_hash;
        static struct kind *k;
        const char *fn = ls_gcptr(LS_READ(uint64_t, LS_READ(const char *, L, LS_L_BASE), -16)), *pt,
                   *name, *pc;

        if (ar->event == 0 && !ls_fn_is_lua(fn))
                tail.k = NULL;
        if (!ls_fn_is_lua(fn))
                return;
        pt = ls_fn_proto(fn);
        name = LS_READ(const char *, pt, LS_PT_CHUNKNAME);
        if (pt != last || !k ||
            last_hash != (LS_READ(uint32_t, name, LS_STR_HASH) ^ ls_pt_shape(pt))) {
                last = pt;
                last_hash = LS_READ(uint32_t, name, LS_STR_HASH) ^ ls_pt_shape(pt);
                k = kind_of_proto(pt);
        }
        pc = LS_READ(const char *, ls_cframe_of(L), LS_CF_PC);
        if (ar->event == 3) {           /* LUA_HOOKCOUNT */
                int op = LS_READ(uint8_t, pc, -4) - ls_vm_facts.op_fori;

                k->counts[(pc - (pt + LS_PT_SIZE)) / 4 - 1]++;
                tail.k = op == CALLMT || op == CALLT ? k : NULL;
                tail.line = ls_pt_line(pt, pc);
        } else {
                k->counts[0]++;
                hook_caller(L, k);
                tail.k = NULL;
        }
}

static int probe_others(lua_State *L)
{
        ls_lua.luaL_openlibs(L);
        ls_jit_probe(L);
        ls_exact_probe(L);
        return 0;
}

/* probe(): nothing, or why the program's bytecodes cannot be counted. */
static int probe(lua_State *L)
{
        lua_State *other;

        vm_agent_probe();
        other = ls_lua.luaL_newstate();
        ls_lua.lua_cpcall(other, probe_others, NULL);
        ls_lua.lua_close(other);
        if (!ls_exact_why_not(1))
                return 0;
        ls_lua.lua_pushstring(L, ls_exact_why_not(1));
        return 1;
}

static void after_fork(void)
{
        ls_exact_after_fork();
}

/* Watches the compiler as the agent does, and counts when vm.exact is set. */
static const char *watch(lua_State *L)
{
        ls_thread_enter(ls_thread_own);
        ls_jit_open(&vm, L);
        ls_thread_leave(ls_thread_own);
        return vm.jit ? NULL : "the compiler is not watched";
}

static void begin_vm(lua_State *L)
{
        vm = (struct ls_vm){ .main = L, .vm_id = 1, .jit_leaf = LS_JIT_LEAF_MAP };
        vm.global = LS_READ(const char *, L, LS_L_GLREF);
}

static int answer(lua_State *L, const char *why)
{
        if (why)
                ls_lua.lua_pushstring(L, why);
        return why != NULL;
}

/* watch(): what the agent does without counting. Returns why not, or nothing. */
static int begin_watch(lua_State *L)
{
        begin_vm(L);
        return answer(L, watch(L));
}

static int open_memory(const char *path, int flags)
{
        int fd = path ? open(path, O_RDWR | O_CLOEXEC | flags, 0600)
                      : (int)syscall(SYS_memfd_create, "counts", 1u);

        if (fd < 0 || ((flags || !path) && ftruncate(fd, (off_t)LS_EXACT_SIZE)))
                return -1;
        memory = mmap(NULL, LS_EXACT_SIZE, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
        memory_fd = fd;
        return memory == MAP_FAILED ? -1 : fd;
}

/* exact(file): counts from now on, in the file, or in memory. Returns why not, or nothing. */
static int begin_exact(lua_State *L)
{
        const char *path = ls_lua.lua_tolstring(L, 1, NULL), *why = "no memory";
        int fd = open_memory(path, O_CREAT | O_TRUNC);

        begin_vm(L);
        if (fd >= 0 && !ls_exact_map(fd, (uintptr_t)L)) {
                vm.exact = ls_exact_open(L, 1, LS_EXACT_ALL, &why);
                pthread_atfork(NULL, NULL, after_fork);
        }
        ls_lua.lua_settop(L, 0);
        return answer(L, vm.exact ? watch(L) : why);
}

/* read(file): what a process has counted there, which may have ended by any means. */
static int read_file(lua_State *L)
{
        return answer(L, open_memory(ls_lua.lua_tolstring(L, 1, NULL), 0) < 0 ? "it cannot be read"
                                                                              : NULL);
}

static int begin_hook(lua_State *L)
{
        ls_lua.lua_sethook(L, hook, 8 | 1, 1);
        return 0;
}

/* What a hook costs that does nothing, at each line: for tests/bench. */
static void nothing(lua_State *L, struct lua_Debug *ar)
{
        (void)L;
        (void)ar;
}

static int begin_nothing(lua_State *L)
{
        ls_lua.lua_sethook(L, nothing, 4, 0);
        return 0;
}

static struct kind *kind_of_record(const struct ls_flow_proto *p)
{
        return kind_of(p->name, p->rec->name_len, p->rec->first_line, p->rec->last_line, p->rec->n);
}

static int read_counts(struct ls_flow *flow)
{
        if (ls_flow_read(memory_fd, flow))
                return -1;
        for (size_t i = 1; i < flow->nprotos; i++) {
                const struct ls_flow_proto *p = &flow->protos[i];
                struct kind *k = p->rec ? kind_of_record(p) : NULL;

                for (uint32_t pos = 0; k && pos < k->n; pos++)
                        k->counts[pos] += p->counts[pos];
                if (k)
                        k->at_least |= p->at_least;
        }
        for (size_t i = 0; i < flow->ncalls; i++) {
                const struct ls_flow_calls *c = &flow->calls[i];
                struct kind *callee = kind_of_record(&flow->protos[c->callee]);
                const struct ls_flow_proto *from = &flow->protos[c->caller];

                add_calls(callee, kind_of_record(from), from->lines ? from->lines[c->pos] : 0,
                          c->times);
        }
        return 0;
}

/* A line for each line that calls the function. */
static void write_calls(FILE *f, const struct kind *k, const char *skip)
{
        for (const struct call *c = k->calls; c; c = c->next)
                if (strcmp(c->caller->name, skip))
                        fprintf(f, "%.60s:%d-%d:%u calls %.60s:%d-%d:%u %u %llu\n", c->caller->name,
                                c->caller->first, c->caller->last, c->caller->n, k->name, k->first,
                                k->last, k->n, c->line, (unsigned long long)c->times);
}

/* write(file, skip): a line for each bytecode of all chunks but skip that was executed. */
static int write_counts(lua_State *L)
{
        const char *skip = ls_lua.lua_tolstring(L, 2, NULL);
        FILE *f = fopen(ls_lua.lua_tolstring(L, 1, NULL), "w");
        struct ls_flow flow = { 0 };

        ls_lua.lua_sethook(L, NULL, 0, 0);
        if (memory && read_counts(&flow))
                fprintf(f, "damaged\n");
        for (size_t i = 0; i < BUCKETS; i++)
                for (const struct kind *k = kinds[i]; k; k = k->next) {
                        for (uint32_t pos = 0; strcmp(k->name, skip) && pos < k->n; pos++)
                                if (k->counts[pos])
                                        fprintf(f, "%.60s:%d-%d:%u %u %llu%s\n", k->name, k->first,
                                                k->last, k->n, pos,
                                                (unsigned long long)k->counts[pos],
                                                k->at_least ? " at least" : "");
                        if (strcmp(k->name, skip))
                                write_calls(f, k, skip);
                }
        if (vm.exact) {
                const struct ls_exact_figures *n = ls_exact_figures(vm.exact);
                const struct ls_exact_head *head = memory;

                fprintf(f,
                        "# traces %llu aborts %llu flushes %llu updates %llu no_head %llu no_loop "
                        "%llu compiled %llu "
                        "unbalanced %llu damaged %llu lost %llu outside %llu\n",
                        (unsigned long long)n->traces, (unsigned long long)n->aborts,
                        (unsigned long long)n->flushes, (unsigned long long)n->updates,
                        (unsigned long long)n->no_head, (unsigned long long)n->no_loop,
                        (unsigned long long)flow.compiled, (unsigned long long)flow.unbalanced,
                        (unsigned long long)flow.damaged,
                        (unsigned long long)atomic_load(&head->lost),
                        (unsigned long long)head->outside);
        }
        ls_flow_free(&flow);
        fclose(f);
        return 0;
}

__attribute__((visibility("default"))) int luaopen_exacttruth(lua_State *L);
int luaopen_exacttruth(lua_State *L)
{
        static const struct { const char *name; int (*f)(lua_State *); } functions[] = {
                { "probe", probe }, { "exact", begin_exact }, { "watch", begin_watch },
                { "hook", begin_hook }, { "read", read_file }, { "write", write_counts },
                { "nothing", begin_nothing },
        };
#define LS_LUA(ret, name, args) ls_lua.name = (ret (*) args)dlsym(RTLD_DEFAULT, #name);
#include "libsample/lua_api.def"
#undef LS_LUA
        ls_lua.lua_createtable(L, 0, 7);
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
                ls_lua.lua_pushcclosure(L, functions[i].f, 0);
                ls_lua.lua_setfield(L, -2, functions[i].name);
        }
        return 1;
}
