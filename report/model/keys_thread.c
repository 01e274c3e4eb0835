/* Keys of what ran: processes, threads, VMs, coroutines, traces of the JIT compiler. See keys.h;
 * the table is in keys.c. */
#include "report/model/keys_thread.h"

#include "formats/escape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Groups of the n entries of a table by key; entry 0 ("none") is group 0. */
static int prepare(struct ls_grouping *g, uint32_t n,
                   void (*key)(const struct ls_profile *, uint32_t, struct ls_keyed *))
{
        struct ls_keyed *k = malloc(((size_t)n + 1) * sizeof(*k));
        int r;

        if (!k)
                return -ENOMEM;
        k[0] = (struct ls_keyed){ 0, 0, 0 };
        for (uint32_t i = 1; i < n; i++) {
                k[i] = (struct ls_keyed){ 0, 0, i };
                key(g->profile, i, &k[i]);
                k[i].a++;
        }
        r = ls_number_groups(g, k, n ? n : 1);
        free(k);
        return r;
}

/* A group's text, made once with the allocated text that make returns. */
static const char *cached(const struct ls_grouping *g, uint32_t group,
                          char *(*make)(const struct ls_grouping *, uint32_t))
{
        if (!g->texts[group])
                g->texts[group] = make(g, g->sample_of[group]);
        return g->texts[group] ? g->texts[group] : "[out of memory]";
}

/* Whether a number needs its process beside it. */
static int many_processes(const struct ls_profile *p)
{
        return p->n_processes > 2;
}

static void key_thread(const struct ls_profile *p, uint32_t i, struct ls_keyed *k)
{
        (void)p;
        k->a = i;
}

int ls_prepare_thread(struct ls_grouping *g)
{
        return prepare(g, g->profile->n_threads, key_thread);
}

uint32_t ls_group_thread(const struct ls_grouping *g, const struct ls_cell *c)
{
        return g->group_of[c->thread];
}

static char *make_thread(const struct ls_grouping *g, uint32_t id)
{
        const struct ls_thread *t = &g->profile->threads[id];
        char *name = ls_visible(t->name.s, t->name.len), *text;

        if (!name)
                return NULL;
        text = *name ? ls_print("%s (%u)", name, t->tid) : ls_print("%u", t->tid);
        free(name);
        return text;
}

const char *ls_text_thread(const struct ls_grouping *g, uint32_t group)
{
        return g->sample_of[group] ? cached(g, group, make_thread) : "(not known)";
}

uint32_t ls_number_thread(const struct ls_grouping *g, uint32_t group)
{
        return g->profile->threads[g->sample_of[group]].tid;
}

/* Groups are of threads. A process that was given another name has two entries. */
static void key_process(const struct ls_profile *p, uint32_t i, struct ls_keyed *k)
{
        k->a = p->processes[p->threads[i].process].pid;
}

int ls_prepare_process(struct ls_grouping *g)
{
        return prepare(g, g->profile->n_threads, key_process);
}

uint32_t ls_group_process(const struct ls_grouping *g, const struct ls_cell *c)
{
        return g->group_of[c->thread];
}

static char *make_process(const struct ls_grouping *g, uint32_t thread)
{
        const struct ls_process *p = &g->profile->processes[g->profile->threads[thread].process];
        char *name = ls_visible(p->name.s, p->name.len), *text;

        if (!name)
                return NULL;
        text = *name ? ls_print("%u %s", p->pid, name) : ls_print("%u", p->pid);
        free(name);
        return text;
}

const char *ls_text_process(const struct ls_grouping *g, uint32_t group)
{
        return g->sample_of[group] ? cached(g, group, make_process) : "(not known)";
}

uint32_t ls_number_process(const struct ls_grouping *g, uint32_t group)
{
        return g->profile->processes[g->profile->threads[g->sample_of[group]].process].pid;
}

/* A VM whose runtime became known late has two entries. */
static void key_vm(const struct ls_profile *p, uint32_t i, struct ls_keyed *k)
{
        k->a = p->vms[i].process;
        k->b = p->vms[i].number;
}

int ls_prepare_vm(struct ls_grouping *g)
{
        return prepare(g, g->profile->n_vms, key_vm);
}

uint32_t ls_group_vm(const struct ls_grouping *g, const struct ls_cell *c)
{
        return g->group_of[c->vm];
}

static char *make_vm(const struct ls_grouping *g, uint32_t id)
{
        const struct ls_vm *vm = &g->profile->vms[id];

        if (!many_processes(g->profile))
                return ls_print("VM %u", vm->number);
        return ls_print("VM %u of process %u", vm->number, g->profile->processes[vm->process].pid);
}

const char *ls_text_vm(const struct ls_grouping *g, uint32_t group)
{
        return g->sample_of[group] ? cached(g, group, make_vm) : "(none)";
}

uint32_t ls_number_vm(const struct ls_grouping *g, uint32_t group)
{
        return g->profile->vms[g->sample_of[group]].number;
}

static void key_coroutine(const struct ls_profile *p, uint32_t i, struct ls_keyed *k)
{
        const struct ls_coroutine *c = &p->coroutines[i];

        k->a = (uint64_t)p->vms[c->vm].process << 32 | p->vms[c->vm].number;
        k->b = (uint64_t)c->function << 32 | c->generation;
}

int ls_prepare_coroutine(struct ls_grouping *g)
{
        return prepare(g, g->profile->n_coroutines, key_coroutine);
}

uint32_t ls_group_coroutine(const struct ls_grouping *g, const struct ls_cell *c)
{
        return g->group_of[c->coroutine];
}

static char *make_coroutine(const struct ls_grouping *g, uint32_t id)
{
        const struct ls_coroutine *c = &g->profile->coroutines[id];
        const char *body = g->labels->function[c->function];

        return c->generation ? ls_print("%s #%u", body, c->generation)
                             : ls_print("%s (many)", body);
}

const char *ls_text_coroutine(const struct ls_grouping *g, uint32_t group)
{
        return g->sample_of[group] ? cached(g, group, make_coroutine) : "main";
}

/* Traces that start alike are one: after a flush LuaJIT often makes the same ones again. */
static void key_trace(const struct ls_profile *p, uint32_t i, struct ls_keyed *k)
{
        const struct ls_jittrace *t = &p->jittraces[i];

        k->a = (uint64_t)p->vms[t->vm].number << 32 | t->number;
        k->b = t->number ? (uint64_t)t->start << 32 | t->root : (uint64_t)1 << 63 | i;
}

int ls_prepare_trace(struct ls_grouping *g)
{
        return prepare(g, g->profile->n_jittraces, key_trace);
}

uint32_t ls_group_trace(const struct ls_grouping *g, const struct ls_cell *c)
{
        return g->group_of[c->trace];
}

/* "trace 12, root, app.work:33"; "trace 14, side of 12, app.work:35". */
static char *make_trace(const struct ls_grouping *g, uint32_t id)
{
        const struct ls_profile *p = g->profile;
        const struct ls_jittrace *t = &p->jittraces[id];
        const struct ls_location *start = &p->locations[t->start];
        uint32_t parent = p->jittraces[t->parent].number ? p->jittraces[t->parent].number : t->root;
        char vm[40] = "", kind[40] = "root", *place, *text;

        if (!t->number)
                return ls_print("trace not recorded (%llu)",
                                (unsigned long long)p->functions[t->function].offset);
        if (p->n_vms > 2)
                snprintf(vm, sizeof(vm), " of VM %u", p->vms[t->vm].number);
        if (t->root)
                snprintf(kind, sizeof(kind), "side of %u", parent);
        place = !t->start ? ls_print("?")
                : start->line ? ls_print("%s:%u", g->labels->function[start->function], start->line)
                              : ls_print("%s", g->labels->function[start->function]);
        text = place ? ls_print("trace %u%s, %s, %s", t->number, vm, kind, place) : NULL;
        free(place);
        return text;
}

const char *ls_text_trace(const struct ls_grouping *g, uint32_t group)
{
        return g->sample_of[group] ? cached(g, group, make_trace) : "(not in a trace)";
}

uint32_t ls_number_trace(const struct ls_grouping *g, uint32_t group)
{
        return g->profile->jittraces[g->sample_of[group]].number;
}
