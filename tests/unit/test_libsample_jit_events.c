/* The watch of the JIT compiler against a real LuaJIT: what the probe finds, definitions of traces
 * against jit.util and against the events that the program itself hears, the program's own
 * jit.attach beside ours. Linked with libluajit. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/jit_watch.h"

#define STITCH 8                        /* kind of link */

/* The record after the one at *p in the ring; NULL = none left, and the ring is empty again. */
static void *next_record(uint64_t *p, unsigned kind)
{
        while (*p < self->ring->head) {
                struct ls_ring_rec *rec =
                        (void *)((char *)self->ring + LS_RING_DATA + (*p & (self->ring->size - 1)));

                *p += LS_RING_SIZE(rec->size_kind);
                if (LS_RING_KIND(rec->size_kind) == kind)
                        return rec + 1;
        }
        return NULL;
}

/* Arrays of a definition. */
struct definition {
        const struct ls_rec_jittrace *rec;
        const uint32_t *functions;
        const struct ls_jit_event *events;
        const struct ls_jit_snapshot *snapshots;
        const uint64_t *ir;
        const unsigned char *code;
};

static struct definition definition(const void *body)
{
        struct definition d = { .rec = body };

        d.functions = (const uint32_t *)(d.rec + 1);
        d.events = (const void *)(d.functions + (d.rec->nfunctions + 1) / 2 * 2);
        d.snapshots = (const void *)(d.events + d.rec->nevents);
        d.ir = (const void *)(d.snapshots + d.rec->nsnapshots);
        d.code = (const void *)(d.ir + d.rec->nir);
        return d;
}

static int field(lua_State *L, const char *name)
{
        int n;

        lua_getfield(L, -1, name);
        n = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
        return n;
}

/* Calls jit.util.NAME(a, b), 5 results. */
static void util(lua_State *L, const char *name, int a, int b)
{
        lua_settop(L, 0);
        lua_getglobal(L, "util");
        lua_getfield(L, 1, name);
        lua_remove(L, 1);
        lua_pushinteger(L, a);
        lua_pushinteger(L, b);
        lua_call(L, 2, 5);
}

static void compare_with_util(lua_State *L, const struct definition *d)
{
        int tr = (int)d->rec->number;
        size_t size;

        util(L, "traceinfo", tr, 0);
        lua_settop(L, 1);
        assert_true(lua_istable(L, 1));
        assert_int_equal(field(L, "nins") + 1, d->rec->nir);
        assert_int_equal(field(L, "nexit"), d->rec->nsnapshots);
        if (d->rec->link_kind != STITCH)        /* gets its link when the trace behind the call is
                                                 * made */
                assert_int_equal(field(L, "link"), d->rec->link);
        util(L, "tracemc", tr, 0);
        assert_int_equal((uint64_t)lua_tonumber(L, 2), d->rec->mcode);
        assert_int_equal(lua_tointeger(L, 3), d->rec->mcode_loop);
        lua_tolstring(L, 1, &size);
        assert_int_equal(size, d->rec->mcode_size);
        for (uint32_t i = 1; i < d->rec->nir; i++) {
                const uint16_t *ir = (const uint16_t *)&d->ir[i];

                util(L, "traceir", tr, (int)i);
                assert_int_equal(lua_tointeger(L, 2), ir[2]);
                assert_int_equal(lua_tointeger(L, 5), ir[3]);
        }
        for (uint32_t i = 0; i < d->rec->nsnapshots; i++) {
                util(L, "tracesnap", tr, (int)i);
                lua_rawgeti(L, 1, 0);
                assert_int_equal(lua_tointeger(L, -1), d->snapshots[i].ref);
        }
        lua_settop(L, 0);
}

/* What the program heard of a trace, as text: the events must be some of these, in order, and the
 * last be the last. */
static void compare_with_heard(lua_State *L, const struct definition *d)
{
        const char *heard, *at, *end;

        lua_getglobal(L, "heard");
        lua_rawgeti(L, -1, (int)d->rec->number);
        at = heard = lua_tostring(L, -1);
        assert_non_null(heard);
        for (uint32_t i = 0; i < d->rec->nevents; i++) {
                const struct ls_jit_event *e = &d->events[i];
                char text[64];

                assert_true(e->function == 0xffff || e->function < d->rec->nfunctions);
                assert_true(i == 0 || e->ref > e[-1].ref ||
                            (e->ref == e[-1].ref && e->depth > e[-1].depth));
                assert_true(e->ref < d->rec->nir);
                snprintf(text, sizeof text, "\n%u:%u:%u\n", e->line ? e->pos : 0, e->depth,
                         e->line);
                at = strstr(at, text);
                assert_non_null(at);
                at += strlen(text) - 1;
        }
        end = heard + strlen(heard) - 1;
        if (d->rec->nevents)
                assert_ptr_equal(at, end);
        lua_settop(L, 0);
}

static void definitions_are_the_traces(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);
        lua_State *L = vm->main;
        unsigned n = 0, sides = 0, loops = 0, inlined = 0;
        uint64_t p = self->ring->head;
        const struct ls_rec_irnames *names;
        void *body;

        (void)state;
        run(L, "collectgarbage('stop')         -- keeps traces that LuaJIT gives up\n"
               "util = require 'jit.util' heard = {}\n"
               "jit.attach(function(tr, f, pc, depth)\n"
               "  local info = util.funcinfo(f, pc)\n"
               "  local line = info.currentline or 0\n"
               "  if not info.proto then line = 0 end\n"
               "  heard[tr] = heard[tr] .. (pc < 0 and 0 or pc) .. ':' .. depth .. ':' .. line .. "
               "'\\n'\n"
               "end, 'record')\n"
               "jit.attach(function(what, tr) if what == 'start' then heard[tr] = '\\n' end end, "
               "'trace')\n");
        run(L, work);
        run(L, "work(300) jit.off()");
        names = next_record(&p, LS_REC_IRNAMES);
        assert_non_null(names);
        assert_int_equal(names->len, ls_jit_facts.nirnames);
        assert_int_equal(names->vm_id, vm->vm_id);
        p = self->ring->tail;
        while ((body = next_record(&p, LS_REC_JITTRACE))) {
                struct definition d = definition(body);

                assert_int_equal(d.rec->flags, LS_JITF_MAP);
                assert_int_equal(d.rec->vm_id, vm->vm_id);
                assert_true(d.rec->start_function < d.rec->nfunctions && d.rec->start_line > 0);
                assert_true((d.rec->root == 0) == (d.rec->parent_id == 0));
                if (ls_jit_entry(vm->jit, d.rec->number)->jit_id == d.rec->jit_id) {
                        compare_with_util(L, &d);
                        compare_with_heard(L, &d);
                        n++;
                }
                for (uint32_t i = 0; i < d.rec->nsnapshots; i++) {
                        assert_true(d.snapshots[i].function < d.rec->nfunctions ||
                                    d.snapshots[i].function == 0xffff);
                        inlined += d.snapshots[i].nframes > 0 && d.snapshots[i].line > 0;
                }
                loops += d.rec->mcode_loop > 0;
                sides += d.rec->root > 0;
        }
        assert_true(n >= 6 && sides >= 1 && loops >= 2 && inlined >= 2);
        assert_int_equal(ls_agent.shm->lost[LS_LOSS_MAP_MISSING], 0);
        close_vm(vm);
        empty_ring();
}

static void without_map_only_the_start_is_told(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_ROOT);
        uint64_t p = self->ring->head;
        struct definition d;
        void *body;
        unsigned n = 0;

        (void)state;
        run(vm->main, work);
        run(vm->main, "work(300)");
        while ((body = next_record(&p, LS_REC_JITTRACE))) {
                d = definition(body);
                assert_true(d.rec->nfunctions == 1 && d.rec->nir == 0 && d.rec->nevents == 0 &&
                            d.rec->mcode_size == 0);
                assert_true(d.rec->start_line > 0 && d.rec->mcode > 0 && d.rec->flags == 0);
                n++;
        }
        assert_true(n >= 6);
        close_vm(vm);
        empty_ring();
}

/* A ring without room: the maps are counted, nothing is broken, and the traces that were not told
 * have no id. */
static void a_full_ring_is_counted(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);
        uint64_t before = ls_agent.shm->lost[LS_LOSS_MAP_MISSING];
        uint32_t id, offset;
        void *body;

        (void)state;
        for (size_t size = 4096; size; size /= 2)
                while ((body = ls_ring_reserve(self->ring, LS_REC_PAD, size,
                                               LS_RESERVE_DEFINITION)))
                        ls_ring_commit(self->ring, body);
        run(vm->main, work);
        run(vm->main, "work(300)");
        assert_true(ls_agent.shm->lost[LS_LOSS_MAP_MISSING] > before);
        for (uint32_t i = 0; i < 300; i++)
                assert_true(!ls_jit_entry(vm->jit, i) || !ls_jit_entry(vm->jit, i)->jit_id);
        assert_int_equal(ls_jit_locate(vm, vm->main, vm->jit->at.state, 0, &id, &offset), 0);
        ls_agent.shm->lost[LS_LOSS_MAP_MISSING] = 0;
        empty_ring();
        close_vm(vm);
}

static const char attach_source[] =
        "local log, records = {}, 0\n"
        "local function tr(what) log[#log + 1] = what end\n"
        "local function rec(t, f, pc, depth)\n"
        "  records = records + 1\n"
        "  if type(t) ~= 'number' or type(f) ~= 'function' or not (pc and depth) then log.bad = "
        "true end\n"
        "end\n"
        "local function loop(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
        "jit.attach(tr, 'trace') jit.attach(rec, 'record')\n"
        "loop(1000)\n"
        "assert(log[1] == 'start' and log[#log] == 'stop' and records > 2 and not log.bad)\n"
        "local n, r = #log, records\n"
        "jit.attach(rec) jit.attach(tr)\n"
        "jit.flush() loop(1000)\n"
        "assert(#log == n and records == r)\n"
        "local a, b, e = 0, 0, 0\n"
        "local f1, f2 = function() a = a + 1 end, function() b = b + 1 end\n"
        "jit.attach(f1, 'trace') jit.flush() assert(a == 1)\n"
        "jit.attach(f2, 'trace') jit.flush() assert(a == 1 and b == 1)\n"
        "jit.attach(f1) jit.flush() assert(b == 2)\n"
        "jit.attach(f2) jit.flush() assert(b == 2)\n"
        "local function bc() e = e + 1 end\n"
        "jit.attach(bc, 'bc') loadstring('return 1') assert(e == 1)\n"
        "jit.attach(f1, 'trace') jit.attach(bc) loadstring('return 1') assert(e == 1)\n"
        "jit.flush() assert(a == 2)\n"
        "coroutine.wrap(function() jit.flush() assert(a == 3) end)()\n"
        "jit.attach(function() jit.attach(f2, 'trace') end, 'trace') jit.flush() jit.flush() "
        "assert(b == 3)\n"
        "jit.attach(f2)\n"
        "local function message(...) return tostring(select(2, pcall(jit.attach, ...))) end\n"
        "assert(message():find('function expected, got no value', 1, true))\n"
        "assert(message(1):find('function expected, got number', 1, true))\n"
        "assert(message(print, {}):find('string expected, got table', 1, true))\n"
        "assert(debug.gethook() == nil)\n";

/* The same program without and with our watch; the asserts in it tell. */
static void the_programs_own_attach_works(void **state)
{
        lua_State *L = luaL_newstate();
        struct ls_vm *vm;

        (void)state;
        luaL_openlibs(L);
        run(L, attach_source);
        lua_close(L);
        for (int leaf = LS_JIT_LEAF_MAP; leaf <= LS_JIT_LEAF_ROOT; leaf++) {
                vm = new_vm(leaf);
                run(vm->main, attach_source);
                close_vm(vm);
        }
        empty_ring();
}

/* An error in the program's handler is LuaJIT's to report, and ours has done its work before. */
static void errors_of_a_handler_pass(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);
        uint64_t p = self->ring->head;
        int err = dup(2), pipes[2];
        char text[512] = "";

        (void)state;
        assert_int_equal(pipe(pipes), 0);
        dup2(pipes[1], 2);
        run(vm->main,
            "jit.attach(function(what) if what == 'stop' then error('boom', 0) end end, 'trace')\n"
            "for i = 1, 300 do end jit.attach(print) jit.off()");
        dup2(err, 2);
        close(err);
        close(pipes[1]);
        assert_true(read(pipes[0], text, sizeof text - 1) > 0);
        close(pipes[0]);
        assert_string_equal(text, "VM handler failed: boom\n");
        assert_non_null(next_record(&p, LS_REC_JITTRACE));
        close_vm(vm);
        empty_ring();
}

/* LuaJIT runs finalizers while it closes a VM: these may compile, attach and flush. In between
 * another VM takes the place of the watch. */
static struct ls_vm *taken;

static int take_place(lua_State *L)
{
        (void)L;
        taken = watch(luaL_newstate(), LS_JIT_LEAF_MAP);
        return 0;
}

static void closing_is_safe(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);
        uint64_t p;

        (void)state;
        lua_register(vm->main, "take_place", take_place);
        run(vm->main, work);
        run(vm->main,
            "work(300) proxy = newproxy(true)\n"
            "getmetatable(proxy).__gc = function()\n"
            "  take_place() jit.attach(print, 'trace') jit.attach(print) pcall(jit.flush)\n"
            "  for i = 1, 300 do end work(100)\n"
            "end");
        empty_ring();
        p = self->ring->head;
        close_vm(vm);
        assert_null(next_record(&p, LS_REC_JITTRACE));
        luaL_openlibs(taken->main);
        run(taken->main, "for i = 1, 300 do end");
        p = self->ring->tail;
        assert_non_null(next_record(&p, LS_REC_JITTRACE));
        close_vm(taken);
        empty_ring();
}

static void a_forked_child_is_left_alone(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);
        static volatile uint64_t gone;
        int status;
        pid_t pid = fork();

        (void)state;
        if (pid == 0) {
                uint64_t head = self->ring->head;

                ls_agent.generation = &gone;
                if (luaL_dostring(vm->main, attach_source) || self->ring->head != head)
                        _exit(1);
                lua_close(vm->main);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close_vm(vm);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(probe_accepts_this_build),
                cmocka_unit_test(definitions_are_the_traces),
                cmocka_unit_test(without_map_only_the_start_is_told),
                cmocka_unit_test(a_full_ring_is_counted),
                cmocka_unit_test(the_programs_own_attach_works),
                cmocka_unit_test(errors_of_a_handler_pass),
                cmocka_unit_test(closing_is_safe),
                cmocka_unit_test(a_forked_child_is_left_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
