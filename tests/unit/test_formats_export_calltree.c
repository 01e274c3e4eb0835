/* formats/export/calltree.c: totals and trees of random stacks, compared with walks over every
 * stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "formats/export/calltree.h"
#include "tests/unit/profile_fixture.h"

static uint32_t *labels_by_function(const struct fixture *f)
{
        uint32_t *labels = ROWS(f->p.n_locations, uint32_t);

        for (uint32_t i = 0; i < f->p.n_locations; i++)
                labels[i] = f->p.locations[i].function;
        return labels;
}

static uint64_t sum(const uint64_t *v, uint32_t n)
{
        uint64_t s = 0;

        for (uint32_t i = 0; i < n; i++)
                s += v[i];
        return s;
}

static void totals(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 50; seed++) {
                struct fixture f;
                uint64_t *want, *sums, *got;
                uint32_t *labels;

                fixture_make(&f, 1 + seed % 7, 5 + (uint32_t)seed * 9, seed);
                want = fixture_totals(&f);
                got = ROWS(f.p.n_functions + 1, uint64_t);
                labels = labels_by_function(&f);
                sums = ls_stack_totals(&f.p, f.self);
                assert_int_equal(ls_label_totals(&f.p, sums, labels, f.p.n_functions, got), 0);
                assert_memory_equal(got, want, f.p.n_functions * sizeof(*got));
                free(want);
                free(got);
                free(sums);
                free(labels);
                fixture_free(&f);
        }
}

/* The labels from the root (or leaf) of a tree to a node must be those of a stack, and the ticks of
 * all stacks with these labels are its self. */
static uint64_t self_of_path(const struct fixture *f, const uint32_t *path, uint32_t n)
{
        uint64_t ticks = 0;

        for (uint32_t i = 1; i < f->p.n_stacks; i++) {
                uint32_t at = i, k = n;

                if (f->p.stacks[i].depth != n)
                        continue;
                while (k > 0 && f->p.locations[f->p.stacks[at].location].function == path[k - 1]) {
                        at = f->p.stacks[at].parent;
                        k--;
                }
                if (k == 0)
                        ticks += f->self[i];
        }
        return ticks;
}

static void root_first(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct fixture f;
                struct ls_calltree *t = NULL;
                uint32_t *labels, path[512];
                uint64_t all = 0;

                fixture_make(&f, 1 + seed % 5, 5 + (uint32_t)seed * 7, seed);
                labels = labels_by_function(&f);
                assert_int_equal(
                        ls_calltree_new(&(struct ls_calltree_request){ .profile = &f.p,
                                                                       .self = f.self,
                                                                       .label_of_location = labels,
                                                                       .want_nodes_of_stacks = 1 },
                                        &t),
                        0);
                assert_int_equal(t->nodes[0].total, sum(f.self, f.p.n_stacks));
                for (uint32_t i = 1; i < t->n; i++) {
                        const struct ls_calltree_node *node = &t->nodes[i];
                        uint64_t children = 0;

                        for (uint32_t at = i, n = node->depth; at; at = t->nodes[at].parent)
                                path[--n] = t->nodes[at].label;
                        assert_int_equal(node->self, self_of_path(&f, path, node->depth));
                        for (uint32_t c = 0; c < node->n_children; c++)
                                children += t->nodes[node->first_child + c].total;
                        assert_int_equal(node->total, node->self + children);
                        all += node->self;
                }
                assert_int_equal(all, t->nodes[0].total);
                for (uint32_t i = 1; i < f.p.n_stacks; i++)
                        if (f.self[i])
                                assert_int_equal(t->nodes[t->node_of_stack[i]].depth,
                                                 f.p.stacks[i].depth);
                ls_calltree_free(t);
                free(labels);
                fixture_free(&f);
        }
}

static void inverse(void **state)
{
        struct fixture f;
        struct ls_calltree *t = NULL;
        uint32_t *labels;
        uint64_t *self;

        (void)state;
        fixture_make(&f, 4, 120, 7);
        labels = labels_by_function(&f);
        self = ROWS(f.p.n_functions, uint64_t);
        for (uint32_t i = 1; i < f.p.n_stacks; i++)
                self[f.p.locations[f.p.stacks[i].location].function] += f.self[i];
        assert_int_equal(ls_calltree_new(&(struct ls_calltree_request){ .profile = &f.p,
                                                                        .self = f.self,
                                                                        .label_of_location = labels,
                                                                        .inverse = 1 },
                                         &t),
                         0);
        for (uint32_t c = 0; c < t->nodes[0].n_children; c++) {
                const struct ls_calltree_node *node = &t->nodes[t->nodes[0].first_child + c];

                assert_int_equal(node->self, self[node->label]);
                assert_int_equal(node->total, self[node->label]);
                if (c)
                        assert_true(node->total <= node[-1].total);
        }
        ls_calltree_free(t);
        free(self);
        free(labels);
        fixture_free(&f);
}

/* A million frames deep: neither recursion in C nor a walk for each frame. */
static void deep(void **state)
{
        enum { N = 1000000 };
        struct fixture f;
        struct ls_calltree *t = NULL;
        uint32_t *labels;
        uint64_t *sums, got[3] = { 0 };

        (void)state;
        fixture_make(&f, 1, 2, 1);
        free(f.p.stacks);
        free(f.self);
        f.p.stacks = ROWS(N + 2, struct ls_stack);
        f.self = ROWS(N + 2, uint64_t);
        f.p.n_stacks = N + 1;
        for (uint32_t i = 1; i <= N; i++) {
                f.p.stacks[i] = (struct ls_stack){ i - 1, 1, i };
                f.self[i] = 1;
        }
        labels = labels_by_function(&f);
        sums = ls_stack_totals(&f.p, f.self);
        assert_int_equal(ls_label_totals(&f.p, sums, labels, 2, got), 0);
        assert_int_equal(got[1], N);
        assert_int_equal(ls_calltree_new(&(struct ls_calltree_request){
                .profile = &f.p, .self = f.self, .label_of_location = labels }, &t), 0);
        assert_int_equal(t->n, N + 1);
        ls_calltree_free(t);
        free(sums);
        free(labels);
        fixture_free(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(totals),
                cmocka_unit_test(root_first),
                cmocka_unit_test(inverse),
                cmocka_unit_test(deep),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
