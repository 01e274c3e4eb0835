/* See data.h. */
#include "report/coverage/data.h"

#include "formats/trace/reader.h"
#include "formats/wire/events.h"
#include "report/model/events.h"
#include "report/model/source.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

struct ls_coverage_path {
        char *path;                     /* the file's */
        size_t file;                    /* its index until they are sorted */
        int failed;
        UT_hash_handle hh;
};

struct pass {
        const struct ls_profile *p;
        const char *const *include;
        unsigned n_include;
        uint8_t lines_event;            /* LINES, or COVERAGE where there is no other */
        uint64_t *hits;                 /* [n_locations] */
        uint8_t *could;                 /* [n_locations] 1 = it is a line that could be executed */
        uint64_t *calls;                /* [n_functions] */
        uint8_t *has_calls;
        struct arm { uint32_t function; struct ls_coverage_arm arm; } *arms;
        size_t n_arms, room_arms;
        uint32_t *pos;                  /* [n_sample_labels] 2 * bytecode + 1 when it jumps, 0 = it
                                         * is of no branch */
        struct ls_coverage *c;
};

/* What labels say of branches: "17 next" or "17 jump" (luasample-trace(5)). */
static uint32_t read_pos(const struct ls_sample_label *l)
{
        uint32_t pos = 0, i = 0;

        if (l->key.len != 6 || memcmp(l->key.s, "branch", 6))
                return 0;
        for (; i < l->value.len && i < 9 && isdigit((unsigned char)l->value.s[i]); i++)
                pos = 10 * pos + (uint32_t)(l->value.s[i] - '0');
        if (!i || l->value.len != i + 5)
                return 0;
        return !memcmp(l->value.s + i, " jump", 5) ? 2 * pos + 1
               : !memcmp(l->value.s + i, " next", 5) ? 2 * pos : 0;
}

static int take_arm(struct pass *s, uint32_t location, uint32_t label, uint64_t weight)
{
        const struct ls_location *at = &s->p->locations[location];
        uint32_t pos = label < s->p->n_sample_labels ? s->pos[label] : 0;

        if (!pos || !at->line)
                return 0;
        if (s->n_arms == s->room_arms) {
                struct arm *bigger = reallocarray(s->arms, 2 * s->room_arms + 256, sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                s->arms = bigger;
                s->room_arms = 2 * s->room_arms + 256;
        }
        s->arms[s->n_arms++] = (struct arm){ at->function,
                                             { at->line, pos / 2, pos & 1,
                                               s->p->functions[at->function].hash, weight } };
        return 0;
}

static int take_block(void *ctx, const struct ls_sample_block *b)
{
        struct pass *s = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                uint32_t location = s->p->stacks[b->stack[i]].location,
                         function = s->p->locations[location].function;

                if (b->event[i] == s->lines_event) {
                        s->could[location] = 1;
                        s->hits[location] += b->weight[i];
                } else if (b->event[i] == LS_EVENT_CALLS) {
                        s->has_calls[function] = 1;
                        s->calls[function] += b->weight[i];
                } else if (b->event[i] == LS_EVENT_BRANCHES &&
                           take_arm(s, location, b->label[i], b->weight[i])) {
                        return -ENOMEM;
                }
        }
        return 0;
}

static int is_below(const char *path, const char *directory)
{
        char real[PATH_MAX];
        size_t n;

        if (fnmatch(directory, path, 0) == 0)
                return 1;
        if (!realpath(directory, real))
                return 0;
        n = strlen(real);
        return !strncmp(path, real, n) && (path[n] == '/' || !path[n] || n == 1);
}

static int is_wanted(const struct pass *s, const char *path)
{
        for (unsigned i = 0; i < s->n_include; i++)
                if (is_below(path, s->include[i]))
                        return 1;
        return s->n_include == 0;
}

/* The file of this path, made at its first use; NULL = no memory. */
static struct ls_coverage_file *file_of(struct ls_coverage *c, const char *path)
{
        struct ls_coverage_path *known;

        HASH_FIND_STR(c->by_path, path, known);
        if (known)
                return &c->files[known->file];
        if (c->n_files == c->room) {
                struct ls_coverage_file *bigger =
                        reallocarray(c->files, 2 * c->room + 64, sizeof(*bigger));

                if (!bigger)
                        return NULL;
                c->files = bigger;
                c->room = 2 * c->room + 64;
        }
        known = calloc(1, sizeof(*known));
        if (!known || !(known->path = strdup(path))) {
                free(known);
                return NULL;
        }
        known->file = c->n_files;
        HASH_ADD_KEYPTR(hh, c->by_path, known->path, strlen(path), known);
        if (known->failed) {
                free(known->path);
                free(known);
                return NULL;
        }
        c->files[c->n_files] = (struct ls_coverage_file){ .path = known->path };
        return &c->files[c->n_files++];
}

static int add_arm(struct ls_coverage_file *f, const struct ls_coverage_arm *arm)
{
        if ((f->n_arms & (f->n_arms - 1)) == 0) {
                struct ls_coverage_arm *bigger =
                        reallocarray(f->arms, f->n_arms ? 2 * f->n_arms : 1, sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                f->arms = bigger;
        }
        f->arms[f->n_arms++] = *arm;
        return 0;
}

static int add_line(struct ls_coverage_file *f, uint32_t line, uint64_t hits)
{
        if ((f->n_lines & (f->n_lines - 1)) == 0) {
                struct ls_coverage_line *bigger =
                        reallocarray(f->lines, f->n_lines ? 2 * f->n_lines : 1, sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                f->lines = bigger;
        }
        f->lines[f->n_lines++] = (struct ls_coverage_line){ line, hits };
        return 0;
}

static int add_function(struct ls_coverage_file *f, uint32_t line, struct ls_str name,
                        uint64_t calls)
{
        if ((f->n_functions & (f->n_functions - 1)) == 0) {
                struct ls_coverage_function *bigger =
                        reallocarray(f->functions, f->n_functions ? 2 * f->n_functions : 1,
                                     sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                f->functions = bigger;
        }
        f->functions[f->n_functions++] = (struct ls_coverage_function){ line, name, calls };
        return 0;
}

/* The file of a source; NULL in *ret = it is none, or not wanted. */
static int source_file(struct pass *s, uint32_t source, struct ls_coverage_file **ret,
                       size_t *ret_none)
{
        const struct ls_source *src = &s->p->sources[source];
        const char *path;

        *ret = NULL;
        if (!src->name.len || src->name.s[0] != '@') {
                ++*ret_none;
                return 0;
        }
        path = src->path.len ? src->path.s : src->name.s + 1;
        if (!is_wanted(s, path))
                return 0;
        *ret = file_of(s->c, path);
        if (*ret) {
                (*ret)->name = src->name.s + 1;
                (*ret)->source = source;
        }
        return *ret ? 0 : -ENOMEM;
}

static int add_functions(struct pass *s, struct ls_coverage_file **files, const uint8_t *hit)
{
        int r = 0;

        for (uint32_t i = 1; !r && i < s->p->n_functions; i++) {
                const struct ls_function *f = &s->p->functions[i];
                struct ls_coverage_file *file = f->kind == LS_FUNC_LUA ? files[f->source] : NULL;

                if (file && (s->has_calls[i] || hit[i]) && !(f->flags & LS_FUNCF_MAIN))
                        r = add_function(file, f->first_line, f->name,
                                         s->has_calls[i] ? s->calls[i] : hit[i] > 1);
        }
        return r;
}

/* What the rows said, by file. */
static int add_rows(struct pass *s)
{
        const struct ls_profile *p = s->p;
        uint32_t *numbers = calloc((size_t)p->n_sources + 1, sizeof(*numbers));
        struct ls_coverage_file **files = calloc((size_t)p->n_sources + 1, sizeof(*files)), *f;
        uint8_t *hit = calloc((size_t)p->n_functions + 1, 1);   /* 1 = it has lines, 3 = of which
                                                                 * some were executed */
        int r = numbers && files && hit ? 0 : -ENOMEM;

        for (uint32_t i = 1; !r && i < p->n_sources; i++) {
                r = source_file(s, i, &f, &s->c->no_files);
                numbers[i] = f ? (uint32_t)(f - s->c->files) + 1 : 0;
        }
        for (uint32_t i = 1; !r && i < p->n_sources; i++)
                files[i] = numbers[i] ? &s->c->files[numbers[i] - 1] : NULL;
        for (uint32_t i = 1; !r && i < p->n_locations; i++) {
                const struct ls_location *at = &p->locations[i];

                if (!s->could[i])
                        continue;
                hit[at->function] |= s->hits[i] ? 3 : 1;
                f = p->functions[at->function].kind == LS_FUNC_LUA
                            ? files[p->functions[at->function].source]
                            : NULL;
                if (f && at->line)
                        r = add_line(f, at->line, s->hits[i]);
        }
        for (size_t i = 0; !r && i < s->n_arms; i++) {
                const struct ls_function *function = &p->functions[s->arms[i].function];

                f = function->kind == LS_FUNC_LUA ? files[function->source] : NULL;
                r = f ? add_arm(f, &s->arms[i].arm) : 0;
        }
        if (!r)
                r = add_functions(s, files, hit);
        free(numbers);
        free(files);
        free(hit);
        return r;
}

/* Whether a line may have code, of a file that nobody has loaded: it is not blank, no comment, and
 * more than what closes a block. */
static int may_have_code(struct ls_str line)
{
        static const char *const closers[] = { "end",  "else", "})", "}",      ")",
                                               "end)", "end,", "},", "repeat", "do" };
        size_t from = 0, to = line.len;

        while (from < to && isspace((unsigned char)line.s[from]))
                from++;
        while (to > from && isspace((unsigned char)line.s[to - 1]))
                to--;
        if (from == to || (to - from >= 2 && !strncmp(line.s + from, "--", 2)) ||
            line.s[from] == '#')
                return 0;
        for (size_t i = 0; i < sizeof(closers) / sizeof(*closers); i++)
                if (to - from == strlen(closers[i]) &&
                    !strncmp(line.s + from, closers[i], to - from))
                        return 0;
        return 1;
}

static int is_name(char c)
{
        return isalnum((unsigned char)c) || c == '_' || c == '.' || c == ':';
}

/* Whether a name of a text says more than the one that is known: "M.used" of "used". */
static int says_more(struct ls_str name, struct ls_str known)
{
        return name.len > known.len &&
               !memcmp(name.s + name.len - known.len, known.s, known.len) &&
               (!known.len || strchr(".:", name.s[name.len - known.len - 1]));
}

/* "function NAME(", "NAME = function(": the name that stands in its line. */
static void name_function(struct ls_coverage_function *f, struct ls_str line)
{
        const char *word = memmem(line.s, line.len, "function", 8), *end = line.s + line.len, *from,
                   *to;

        if (!word)
                return;
        for (from = word + 8; from < end && *from == ' '; from++)
                ;
        for (to = from; to < end && is_name(*to); to++)
                ;
        if (to == from) {
                for (to = word; to > line.s && (to[-1] == ' ' || to[-1] == '='); to--)
                        ;
                for (from = to;
                     from > line.s && is_name(from[-1]) && memchr(to, '=', (size_t)(word - to));
                     from--)
                        ;
        }
        if (says_more((struct ls_str){ from, (uint32_t)(to - from) }, f->name))
                f->name = (struct ls_str){ from, (uint32_t)(to - from) };
}

/* Lines between "-- luacov: disable" and "-- luacov: enable" do not count. For a file that was
 * never loaded, those that may have code are added. */
static int apply_text(struct ls_coverage_file *f, const struct ls_source_text *t)
{
        int off = 0;
        size_t k = 0, kept = 0, fn = 0, fn_kept = 0, arm = 0, arms_kept = 0;

        for (uint32_t n = 1; n <= t->n_lines; n++) {
                const struct ls_str *line = &t->lines[n - 1];
                const char *mark = memmem(line->s, line->len, "luacov:", 7);
                size_t left = mark ? line->len - (size_t)(mark - line->s) : 0;

                if (mark && memmem(mark, left, "disable", 7))
                        off = 1;
                if (f->never && !off && may_have_code(*line) && add_line(f, n, 0))
                        return -ENOMEM;
                for (; !f->never && k < f->n_lines && f->lines[k].line == n; k++)
                        if (!off)
                                f->lines[kept++] = f->lines[k];
                for (; fn < f->n_functions && f->functions[fn].first_line <= n; fn++)
                        if (!off) {
                                f->functions[fn_kept] = f->functions[fn];
                                name_function(&f->functions[fn_kept++], *line);
                        }
                for (; arm < f->n_arms && f->arms[arm].line <= n; arm++)
                        if (!off)
                                f->arms[arms_kept++] = f->arms[arm];
                if (mark && memmem(mark, left, "enable", 6))
                        off = 0;
        }
        if (f->never)
                return 0;
        for (; k < f->n_lines; k++)
                f->lines[kept++] = f->lines[k];
        f->n_lines = kept;
        for (; fn < f->n_functions; fn++)
                f->functions[fn_kept++] = f->functions[fn];
        f->n_functions = fn_kept;
        for (; arm < f->n_arms; arm++)
                f->arms[arms_kept++] = f->arms[arm];
        f->n_arms = arms_kept;
        return 0;
}

static int by_line(const void *a, const void *b)
{
        const struct ls_coverage_line *x = a, *y = b;

        return x->line < y->line ? -1 : x->line > y->line;
}

static int by_function(const void *a, const void *b)
{
        const struct ls_coverage_function *x = a, *y = b;

        return x->first_line < y->first_line ? -1 : x->first_line > y->first_line;
}

static int by_arm(const void *a, const void *b)
{
        const struct ls_coverage_arm *x = a, *y = b;

        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        if (x->function != y->function)
                return x->function < y->function ? -1 : 1;
        return x->pos != y->pos ? (x->pos < y->pos ? -1 : 1) : x->jumps - y->jumps;
}

static void settle_arms(struct ls_coverage_file *f)
{
        size_t n = 0;

        if (f->n_arms)
                qsort(f->arms, f->n_arms, sizeof(*f->arms), by_arm);
        for (size_t i = 0; i < f->n_arms; i++) {
                if (n && by_arm(&f->arms[n - 1], &f->arms[i]) == 0)
                        f->arms[n - 1].hits += f->arms[i].hits;
                else
                        f->arms[n++] = f->arms[i];
        }
        f->n_arms = n;
}

/* Sorted, each line and function once. */
static void settle(struct ls_coverage_file *f)
{
        size_t n = 0;

        if (f->n_lines)
                qsort(f->lines, f->n_lines, sizeof(*f->lines), by_line);
        for (size_t i = 0; i < f->n_lines; i++) {
                if (n && f->lines[n - 1].line == f->lines[i].line)
                        f->lines[n - 1].hits += f->lines[i].hits;
                else
                        f->lines[n++] = f->lines[i];
        }
        f->n_lines = n;
        n = 0;
        if (f->n_functions)
                qsort(f->functions, f->n_functions, sizeof(*f->functions), by_function);
        for (size_t i = 0; i < f->n_functions; i++) {
                if (n && by_function(&f->functions[n - 1], &f->functions[i]) == 0)
                        f->functions[n - 1].calls += f->functions[i].calls;
                else
                        f->functions[n++] = f->functions[i];
        }
        f->n_functions = n;
        settle_arms(f);
}

static int read_text(struct pass *s, struct ls_coverage_file *f)
{
        struct ls_report_options o = { 0 };
        struct ls_source src[2] = { { .name = { "", 0 } },
                                    { .name = { "@", 1 },
                                      .path = { f->path, (uint32_t)strlen(f->path) } } };
        struct ls_profile alone = { .sources = src, .n_sources = 2 };
        int r = ls_source_read(f->source ? s->p : &alone, f->source ? f->source : 1, &o, &f->text);

        if (r)
                return r;
        f->changed = f->text.problem == LS_SOURCE_CHANGED ||
                             f->text.problem == LS_SOURCE_WITHHELD;
        return f->text.lines && !f->changed ? apply_text(f, &f->text) : 0;
}

/* Lua files below the directories that the trace does not know. */
static int add_never_loaded(struct pass *s)
{
        int r = 0;

        for (unsigned i = 0; !r && i < s->n_include; i++) {
                char real[PATH_MAX], *roots[] = { real, NULL };
                FTS *walk = realpath(s->include[i], real)
                                    ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL)
                                    : NULL;
                FTSENT *e;

                while (walk && !r && (e = fts_read(walk))) {
                        size_t known = s->c->n_files;
                        struct ls_coverage_file *f;

                        if (e->fts_info != FTS_F || e->fts_namelen < 5 ||
                            strcmp(e->fts_name + e->fts_namelen - 4, ".lua"))
                                continue;
                        f = file_of(s->c, e->fts_path);
                        r = f ? 0 : -ENOMEM;
                        if (f && s->c->n_files > known) {
                                f->never = 1;
                                f->name = f->path;
                        }
                }
                if (walk)
                        fts_close(walk);
        }
        return r;
}

static int by_path(const void *a, const void *b)
{
        return strcmp(((const struct ls_coverage_file *)a)->path,
                      ((const struct ls_coverage_file *)b)->path);
}

static void add_up(struct ls_coverage *c)
{
        if (c->n_files)
                qsort(c->files, c->n_files, sizeof(*c->files), by_path);
        for (size_t i = 0; i < c->n_files; i++) {
                struct ls_coverage_file *f = &c->files[i];

                for (size_t k = 0; k < f->n_lines; k++)
                        f->lines_hit += f->lines[k].hits != 0;
                for (size_t k = 0; k < f->n_functions; k++)
                        f->functions_hit += f->functions[k].calls != 0;
                for (size_t k = 0; k < f->n_arms; k++)
                        f->arms_hit += f->arms[k].hits != 0;
                c->arms += f->n_arms;
                c->arms_hit += f->arms_hit;
                f->last = f->n_lines ? f->lines[f->n_lines - 1].line : 0;
                c->lines += f->n_lines;
                c->lines_hit += f->lines_hit;
                c->functions += f->n_functions;
                c->functions_hit += f->functions_hit;
        }
}

int ls_coverage_new(struct ls_profile *p, const char *const *include, unsigned n,
                    struct ls_coverage *ret)
{
        struct pass s = { .p = p, .include = include, .n_include = n, .c = ret };
        int r = -ENOMEM;

        *ret = (struct ls_coverage){ .counted = ls_events_have(p, LS_EVENT_LINES),
                                     .has_branches = ls_events_have(p, LS_EVENT_BRANCHES) };
        s.lines_event = ret->counted ? LS_EVENT_LINES : LS_EVENT_COVERAGE;
        if (!ls_events_have(p, s.lines_event))
                return -ENODATA;
        s.hits = calloc((size_t)p->n_locations + 1, sizeof(*s.hits));
        s.could = calloc((size_t)p->n_locations + 1, 1);
        s.calls = calloc((size_t)p->n_functions + 1, sizeof(*s.calls));
        s.has_calls = calloc((size_t)p->n_functions + 1, 1);
        s.pos = calloc((size_t)p->n_sample_labels + 1, sizeof(*s.pos));
        for (uint32_t i = 1; s.pos && i < p->n_sample_labels; i++)
                s.pos[i] = read_pos(&p->sample_labels[i]);
        if (s.hits && s.could && s.calls && s.has_calls && s.pos)
                r = ls_profile_samples(p, 0, take_block, &s);
        if (!r)
                r = add_rows(&s);
        if (!r)
                r = add_never_loaded(&s);
        for (size_t i = 0; !r && i < ret->n_files; i++) {
                settle(&ret->files[i]);
                r = read_text(&s, &ret->files[i]);
        }
        if (!r)
                add_up(ret);
        free(s.hits);
        free(s.could);
        free(s.calls);
        free(s.has_calls);
        free(s.pos);
        free(s.arms);
        if (r)
                ls_coverage_free(ret);
        return r;
}

void ls_coverage_free(struct ls_coverage *c)
{
        struct ls_coverage_path *known, *next;

        for (size_t i = 0; i < c->n_files; i++) {
                ls_source_done(&c->files[i].text);
                free(c->files[i].path);
                free(c->files[i].lines);
                free(c->files[i].functions);
                free(c->files[i].arms);
        }
        free(c->files);
        HASH_ITER(hh, c->by_path, known, next) {
                HASH_DEL(c->by_path, known);
                free(known);
        }
        *c = (struct ls_coverage){ 0 };
}
