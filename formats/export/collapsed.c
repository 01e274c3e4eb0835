/* Exporter "collapsed": one line per stack, root first, frames joined by ';', then its ticks. For
 * flamegraph.pl, speedscope, inferno. */
#include "formats/export/calltree.h"
#include "formats/export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct line {                           /* cells that give the same text */
        uint32_t prefix, node, suffix;
        uint64_t ticks;
};

/* ';' separates frames, so it cannot be in one. */
static void put_frame(FILE *out, const char *text)
{
        for (const char *semi; (semi = strchr(text, ';')) != NULL; text = semi + 1) {
                fwrite_unlocked(text, 1, (size_t)(semi - text), out);
                fputc_unlocked(':', out);
        }
        fputs_unlocked(text, out);
}

static int by_line(const void *a, const void *b)
{
        const struct line *x = a, *y = b;

        if (x->prefix != y->prefix)
                return x->prefix < y->prefix ? -1 : 1;
        if (x->node != y->node)
                return x->node < y->node ? -1 : 1;
        return x->suffix < y->suffix ? -1 : x->suffix > y->suffix;
}

/* path[]: room for the deepest stack. */
static void put_line(FILE *out, const struct ls_export *in, const struct ls_calltree *tree,
                     const struct line *line, uint32_t *path)
{
        const char *separator = "";
        size_t n = 0;

        if (line->prefix) {
                put_frame(out, in->tags[line->prefix]);
                separator = ";";
        }
        for (uint32_t i = line->node; i; i = tree->nodes[i].parent)
                path[n++] = tree->nodes[i].label;
        while (n > 0) {
                fputs_unlocked(separator, out);
                put_frame(out, in->frame_text(in->ctx, path[--n]));
                separator = ";";
        }
        if (line->suffix) {
                fputs_unlocked(separator, out);
                put_frame(out, in->tags[line->suffix]);
        }
        fprintf(out, " %" PRIu64 "\n", line->ticks);
}

static int put_lines(FILE *out, const struct ls_export *in, const struct ls_calltree *tree,
                     struct line *lines)
{
        uint32_t *path, depth = 0;
        size_t n = 0;

        for (uint32_t i = 0; i < tree->n; i++)
                if (tree->nodes[i].depth > depth)
                        depth = tree->nodes[i].depth;
        path = malloc(((size_t)depth + 1) * sizeof(*path));
        if (!path)
                return -ENOMEM;
        for (size_t i = 0; i < in->n_cells; i++) {
                const struct ls_export_cell *c = &in->cells[i];

                lines[n++] = (struct line){ c->prefix, tree->node_of_stack[c->stack], c->suffix,
                                            c->ticks };
        }
        qsort(lines, n, sizeof(*lines), by_line);
        for (size_t i = 0; i < n;) {
                struct line sum = lines[i++];

                while (i < n && by_line(&lines[i], &sum) == 0)
                        sum.ticks += lines[i++].ticks;
                put_line(out, in, tree, &sum, path);
        }
        free(path);
        return 0;
}

static int collapsed_write(FILE *out, const struct ls_export *in)
{
        uint64_t *self = calloc((size_t)in->profile->n_stacks + 1, sizeof(*self));
        struct line *lines = malloc((in->n_cells + 1) * sizeof(*lines));
        struct ls_calltree *tree = NULL;
        int r = -ENOMEM;

        if (!self || !lines)
                goto out;
        for (size_t i = 0; i < in->n_cells; i++)
                self[in->cells[i].stack] += in->cells[i].ticks;
        r = ls_calltree_new(&(struct ls_calltree_request){
                .profile = in->profile, .self = self, .label_of_location = in->frame_of_location,
                .want_nodes_of_stacks = 1,
        }, &tree);
        if (!r)
                r = put_lines(out, in, tree, lines);
out:
        ls_calltree_free(tree);
        free(lines);
        free(self);
        return r;
}

const struct ls_exporter ls_export_collapsed = {
        .name = "collapsed",
        .suffix = ".folded",
        .help = "one line per stack, for flamegraph.pl",
        .flags = LS_EXPORT_BY,
        .write = collapsed_write,
};
