/* What LuaJIT tries to compile: see attempts.h. Each attempt that ends is a record in the ring, as
 * long as there are not too many: a program that loads code all the time makes tens of thousands a
 * second. The recorder adds up those that are alike (record/translate/attempt_sums.c). */
#include "libsample/jit/attempts.h"

#include "libsample/agent.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/jit_send.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/jit/facts.h"
#include "libsample/layout.h"
#include "libsample/lua_debug.h"

#define TELL_NS    UINT64_C(2000000)    /* an attempt is described in each: 500 a second, */
#define TELL_FREE  UINT64_C(1000)       /* and so many at once */
#define REASON_MOST 96u                 /* bytes */
#define LINK_STITCH 8u                  /* kind of link: up to a call that is not compiled */

/* Bytecodes that count how hot something is, and what they become when LuaJIT has given it up. */
static const struct { char name[7]; uint32_t flags;
} counting[] = {
        { "FORL  ", LS_ATTEMPT_LOOP },
        { "ITERL ", LS_ATTEMPT_LOOP },
        { "LOOP  ", LS_ATTEMPT_LOOP },
        { "FUNCF ", LS_ATTEMPT_FUNCTION },
        { "FUNCV ", LS_ATTEMPT_FUNCTION },
        { "IFORL ", LS_ATTEMPT_LOOP | LS_ATTEMPT_BLACKLISTED },
        { "IITERL", LS_ATTEMPT_LOOP | LS_ATTEMPT_BLACKLISTED },
        { "ILOOP ", LS_ATTEMPT_LOOP | LS_ATTEMPT_BLACKLISTED },
        { "IFUNCF", LS_ATTEMPT_FUNCTION | LS_ATTEMPT_BLACKLISTED },
        { "IFUNCV", LS_ATTEMPT_FUNCTION | LS_ATTEMPT_BLACKLISTED },
};

static const char *bytecode_name(uint32_t op)
{
        return 6 * (op + 1) <= ls_jit_facts.nbcnames ? ls_jit_facts.bcnames + 6 * (size_t)op : NULL;
}

static uint32_t flags_of(const char *pc)
{
        const char *name = bytecode_name(LS_READ(uint8_t, pc, 0));

        for (size_t i = 0; name && i < sizeof counting / sizeof *counting; i++)
                if (!memcmp(name, counting[i].name, 6))
                        return counting[i].flags;
        return 0;
}

/* The lines of the loop or function that begins to be compiled at a bytecode. A numeric loop and
 * one over an iterator jump back, another one forward, behind its end. */
static void describe_range(struct ls_jit_attempt *a, const char *pt, const char *pc)
{
        uint32_t pos = ls_jit_pos(pt, pc), size = LS_READ(uint32_t, pt, LS_PT_SIZEBC);
        int64_t to = (int64_t)pos + 1 + LS_READ(uint16_t, pc, 2) - 0x8000;

        if (a->flags & LS_ATTEMPT_FUNCTION) {
                a->first_line = LS_READ(uint32_t, pt, LS_PT_FIRSTLINE);
                a->last_line = a->first_line + LS_READ(uint32_t, pt, LS_PT_NUMLINE);
        } else if (a->flags & LS_ATTEMPT_LOOP && to > 0 && to <= size) {
                a->first_line = a->last_line = a->line;
                for (uint32_t i = to < pos ? (uint32_t)to : pos,
                              end = to < pos ? pos : (uint32_t)to - 1;
                     i <= end; i++) {
                        uint32_t line = ls_jit_line(pt, i);

                        if (line && line < a->first_line)
                                a->first_line = line;
                        if (line > a->last_line)
                                a->last_line = line;
                }
        }
}

static void note_parameters(const struct ls_jit *jit)
{
        const char *state = atomic_load_explicit(&jit->global, memory_order_relaxed) +
                            jit->at.state;
        const struct { unsigned at; _Atomic uint32_t *to;
        } parameters[] = {
                { jit->at.maxtrace, &ls_agent.shm->jit_maxtrace },
                { jit->at.maxmcode, &ls_agent.shm->jit_maxmcode },
                { jit->at.hotloop, &ls_agent.shm->jit_hotloop },
                { jit->at.hotexit, &ls_agent.shm->jit_hotexit },
        };

        for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
                if (parameters[i].at)
                        atomic_store_explicit(parameters[i].to,
                                              LS_READ(uint32_t, state, parameters[i].at),
                                              memory_order_relaxed);
}

/* 1 when an attempt may be described: else it is counted, which is all that it then costs. */
static int may_tell(struct ls_jit *jit, uint64_t now)
{
        if (jit->told_ns + TELL_FREE * TELL_NS < now)
                jit->told_ns = now - TELL_FREE * TELL_NS;
        if (jit->told_ns + TELL_NS > now)
                return 0;
        jit->told_ns += TELL_NS;
        return 1;
}

void ls_jit_attempt_begins(struct ls_jit *jit)
{
        const char *at = atomic_load_explicit(&jit->global, memory_order_relaxed) + jit->at.state +
                         jit->at.pc;
        const char *pc = LS_READ(const char *, at, 0), *fn = LS_READ(const char *, at, 8);
        const char *pt = LS_READ(const char *, at, 16);
        struct ls_jit_attempt *a = &jit->attempt;
        uint64_t now = ls_now_ns();

        jit->code_full = 0;
        a->start = 0;
        atomic_fetch_add_explicit(&ls_agent.shm->jit_attempts, 1, memory_order_relaxed);
        if (!may_tell(jit, now))
                return;
        note_parameters(jit);
        *a = (struct ls_jit_attempt){ .start = ls_jit_key(fn, pt), .begin_ns = now };
        if (jit->parent)
                a->flags = LS_ATTEMPT_SIDE;
        if (!ls_fn_is_lua(fn) || !pt || ls_jit_pos(pt, pc) == UINT32_MAX)
                return;
        a->pc = pc;
        a->line = ls_jit_line(pt, ls_jit_pos(pt, pc));
        if (!jit->parent) {
                a->flags = flags_of(pc) & ~(uint32_t)LS_ATTEMPT_BLACKLISTED;
                describe_range(a, pt, pc);
        }
}

/* Sends what is known of the attempt that ends, with the place and the reason that rec has. */
static void tell(struct ls_jit *jit, struct ls_thread *t, struct ls_rec_attempt *rec,
                 const char *reason, uint64_t now)
{
        const struct ls_jit_attempt *a = &jit->attempt;
        uint64_t ns = now - a->begin_ns;
        char *body;

        rec->vm_id = jit->vm->vm_id;
        rec->flags |= a->flags;
        rec->start_function = ls_jit_function(t, a->start, now);
        rec->start_line = a->line;
        rec->first_line = a->first_line;
        rec->last_line = a->last_line;
        rec->bytecodes = a->bytecodes;
        rec->ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
        rec->reason_len = (uint32_t)strlen(reason);
        body = ls_ring_reserve(t->ring, LS_REC_ATTEMPT, sizeof *rec + rec->reason_len,
                               LS_RESERVE_DEFINITION);
        if (!body) {
                atomic_fetch_add_explicit(&ls_agent.shm->jit_untold, 1, memory_order_relaxed);
                return;
        }
        memcpy(body, rec, sizeof *rec);
        memcpy(body + sizeof *rec, reason, rec->reason_len);
        ls_ring_commit(t->ring, body);
}

/* 1 when the attempt that ends is to be described. */
static int ends(const struct ls_jit *jit, const struct ls_thread *t)
{
        if (jit->attempt.start && t)
                return 1;
        atomic_fetch_add_explicit(&ls_agent.shm->jit_untold, 1, memory_order_relaxed);
        return 0;
}

void ls_jit_attempt_compiled(struct ls_jit *jit, struct ls_thread *t, const char *trace)
{
        const char *at = atomic_load_explicit(&jit->global, memory_order_relaxed) + jit->at.state +
                         jit->at.pc;
        const char *pc = LS_READ(const char *, at, 0), *fn = LS_READ(const char *, at, 8);
        const char *pt = LS_READ(const char *, at, 16);
        struct ls_rec_attempt rec = { .flags = LS_ATTEMPT_COMPILED };
        uint64_t now;

        if (!ends(jit, t))
                return;
        now = ls_now_ns();
        if (LS_READ(uint8_t, trace, LS_TR_LINKTYPE) == LINK_STITCH) {
                rec.flags |= LS_ATTEMPT_STITCHED;
                if (!ls_fn_is_lua(fn))
                        rec.about = ls_jit_function(t, ls_jit_key(fn, NULL), now);
        }
        if (pt && ls_jit_pos(pt, pc) != UINT32_MAX) {
                rec.stop_function = ls_jit_function(t, (uint64_t)(uintptr_t)pt, now);
                rec.stop_line = ls_jit_line(pt, ls_jit_pos(pt, pc));
        }
        tell(jit, t, &rec, "", now);
        jit->attempt.start = 0;
}

/* The text of an error of LuaJIT's by its number, NULL = not known. */
static const char *error_text(uint32_t number)
{
        const char *text = ls_jit_facts.errors;

        if (number >= ls_jit_facts.nerrors)
                return NULL;
        while (number--)
                text += strlen(text) + 1;
        return text;
}

static void append(char *to, size_t *n, const char *s, size_t len)
{
        for (; len && *n < REASON_MOST - 1; len--)
                to[(*n)++] = *s++;
        to[*n] = 0;
}

/* LuaJIT's words, with the name of the bytecode that they are about. Where they are about a
 * function it is left out: the record names it. */
static void put_reason(char *to, uint32_t error, int32_t info)
{
        const char *text = error_text(error), *hole = text ? strchr(text, '%') : NULL, *name;
        char number[] = "error 0000";
        size_t n = 0, len = 6;

        if (!text) {
                for (uint32_t i = 0; i < 4; i++, error /= 10)
                        number[9 - i] = (char)('0' + error % 10);
                append(to, &n, number, 10);
                return;
        }
        append(to, &n, text, hole ? (size_t)(hole - text) : strlen(text));
        name = hole && info >= 0 && strstr(text, "bytecode") ? bytecode_name((uint32_t)info) : NULL;
        while (name && len && name[len - 1] == ' ')
                len--;
        if (name)
                append(to, &n, name, len);
        while (n && to[n - 1] == ' ')
                to[--n] = 0;
}

/* Arguments: "abort", number, function, position, error (a number, or what was thrown), and what it
 * is about (a number, a function). */
static void describe_abort(struct ls_jit *jit, struct ls_thread *t, lua_State *L)
{
        const struct ls_jit_attempt *a = &jit->attempt;
        const char *fn = ls_lua.lua_type(L, 3) == LS_LUA_TFUNCTION ? ls_lua.lua_topointer(L, 3)
                                                                   : NULL;
        const char *about = ls_lua.lua_type(L, 6) == LS_LUA_TFUNCTION ? ls_lua.lua_topointer(L, 6)
                                                                      : NULL;
        struct ls_rec_attempt rec = { 0 };
        char reason[REASON_MOST] = "an error was thrown while it was recorded";
        uint64_t now = ls_now_ns();

        if (ls_lua.lua_type(L, 5) == LS_LUA_TNUMBER)
                put_reason(reason, (uint32_t)ls_lua.lua_tonumber(L, 5),
                           ls_lua.lua_type(L, 6) == LS_LUA_TNUMBER
                                   ? (int32_t)ls_lua.lua_tonumber(L, 6)
                                   : -1);
        if (fn && ls_fn_is_lua(fn)) {
                rec.stop_function = ls_jit_function(t, ls_jit_key(fn, ls_fn_proto(fn)), now);
                rec.stop_line = ls_jit_line(ls_fn_proto(fn), (uint32_t)ls_lua.lua_tonumber(L, 4));
        }
        if (about)
                rec.about =
                        ls_jit_function(t,
                                        ls_jit_key(about,
                                                   ls_fn_is_lua(about) ? ls_fn_proto(about) : NULL),
                                        now);
        if (a->pc && !(a->flags & LS_ATTEMPT_SIDE))
                rec.flags |= flags_of(a->pc) & LS_ATTEMPT_BLACKLISTED;
        tell(jit, t, &rec, reason, now);
}

void ls_jit_attempt_aborted(struct ls_jit *jit, struct ls_thread *t, lua_State *L)
{
        uint64_t cpu, start;

        atomic_fetch_add_explicit(&ls_agent.shm->jit_aborts, 1, memory_order_relaxed);
        jit->code_full = ls_lua.lua_type(L, 5) == LS_LUA_TNUMBER &&
                         (uint32_t)ls_lua.lua_tonumber(L, 5) == ls_jit_facts.code_full;
        if (!ends(jit, t))
                return;
        cpu = ls_thread_cpu_ns();
        start = ls_now_ns();
        ls_thread_enter(t);
        describe_abort(jit, t, L);
        ls_thread_leave(t);
        jit->attempt.start = 0;
        atomic_fetch_add(&ls_agent.shm->own_hook_ns, ls_own_ns(start, cpu));
}

/* The C function that runs below our handler, NULL = a Lua function does, or nothing. */
static void *running_c_function(lua_State *L)
{
        struct lua_Debug ar;
        void *f;

        if (!ls_lua.lua_getstack(L, 1, &ar) || !ls_lua.lua_getinfo(L, "f", &ar))
                return NULL;
        f = ls_lua.lua_tocfunction(L, -1);
        ls_lua.lua_settop(L, -2);
        return f;
}

/* LuaJIT tells no cause. It flushes by itself while Lua code runs: when there is no room for code,
 * which it has just said by giving up an attempt, and when it has grown its table to each number
 * that maxtrace allows and none is free. What a C function does is the program's: compiled code
 * knows the metatables of basic types, so debug.setmetatable throws it away. */
static enum ls_jit_flush flush_cause(const struct ls_jit *jit, lua_State *L)
{
        const char *state = atomic_load_explicit(&jit->global, memory_order_relaxed) +
                            jit->at.state;
        uint32_t most = jit->at.maxtrace ? LS_READ(uint32_t, state, jit->at.maxtrace) : 0;
        void *f = running_c_function(L);

        if (f)
                return f == ls_jit_facts.set_metatable ? LS_JIT_FLUSH_METATABLE
                                                       : LS_JIT_FLUSH_PROGRAM;
        if (jit->code_full)
                return LS_JIT_FLUSH_CODE;
        if (most && LS_READ(uint32_t, state, jit->at.ntraces) > most)
                return LS_JIT_FLUSH_TRACES;
        return LS_JIT_FLUSH_PROGRAM;
}

void ls_jit_attempt_flushed(struct ls_jit *jit, lua_State *L)
{
        note_parameters(jit);
        atomic_fetch_add_explicit(&ls_agent.shm->jit_flushes[flush_cause(jit, L)], 1,
                                  memory_order_relaxed);
        jit->code_full = 0;
}

void ls_jit_attempt_names(lua_State *L)
{
        size_t len = 0;
        const char *s;

        ls_jit_facts.nerrors = ls_jit_facts.nbcnames = 0;
        ls_jit_facts.code_full = UINT32_MAX;
        ls_lua.lua_getfield(L, -1, "errors");
        s = ls_lua.lua_tolstring(L, -1, &len);
        if (s && len && len <= sizeof ls_jit_facts.errors && !s[len - 1]) {
                memcpy(ls_jit_facts.errors, s, len);
                for (size_t i = 0; i < len; i++)
                        ls_jit_facts.nerrors += !s[i];
                for (uint32_t i = 0; i < ls_jit_facts.nerrors; i++)
                        if (strstr(error_text(i), "allocate mcode"))
                                ls_jit_facts.code_full = i;
        }
        ls_lua.lua_settop(L, -2);
        ls_lua.lua_getfield(L, -1, "bcnames");
        s = ls_lua.lua_tolstring(L, -1, &len);
        if (s && len <= sizeof ls_jit_facts.bcnames && len % 6 == 0) {
                memcpy(ls_jit_facts.bcnames, s, len);
                ls_jit_facts.nbcnames = (uint32_t)len;
        }
        ls_lua.lua_settop(L, -2);
}
