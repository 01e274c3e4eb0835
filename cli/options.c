/* Option handling of all commands on popt: opens a context with --help added, prints usage errors
 * in one line. */
#include "cli/command.h"
#include "cli/keeper.h"
#include "cli/options.h"
#include "cli/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VAL_HELP 0x7f01
#define MAX_OPTIONS 128

static const struct poptOption help_options[] = {
        { "help", 'h', POPT_ARG_NONE, NULL, VAL_HELP, "show this help", NULL },
        POPT_TABLEEND
};

/* popt keeps a pointer to its table. One command runs in a process, so one table will do. */
static struct poptOption whole_table[3];
static const char **whole_argv;         /* popt and the command keep pointers into it */

void ls_options_walk(const struct poptOption *table, ls_option_fn fn, void *ctx)
{
        for (const struct poptOption *o = table;
             o && (o->longName || o->shortName || o->arg); o++) {
                if ((o->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE)
                        ls_options_walk(o->arg, fn, ctx);
                else
                        fn(ctx, o);
        }
}

void ls_command_options(const struct ls_command *cmd, ls_option_fn fn, void *ctx)
{
        ls_options_walk(cmd->options, fn, ctx);
        if (cmd->run)
                ls_options_walk(help_options, fn, ctx);
}

struct name_list {
        const char *names[MAX_OPTIONS + 1];
        unsigned n;
        const char *find;               /* long name to find, of find_len bytes */
        size_t find_len;
        char letter;                    /* or the short name to find */
        const struct poptOption *found;
};

static void collect_name(void *ctx, const struct poptOption *o)
{
        struct name_list *list = ctx;

        if (list->letter && o->shortName == list->letter)
                list->found = o;
        if (!o->longName)
                return;
        if (list->n < MAX_OPTIONS && !(o->argInfo & POPT_ARGFLAG_DOC_HIDDEN))
                list->names[list->n++] = o->longName;
        if (list->find && strlen(o->longName) == list->find_len &&
            !strncmp(o->longName, list->find, list->find_len))
                list->found = o;
}

/* Whether the word after this option is its argument: "-i 1ms", "--depth 5", not "-i1ms",
 * "--depth=5". */
static int takes_next_word(const struct ls_command *cmd, const char *word)
{
        struct name_list list = { .n = 0 };

        if (!strncmp(word, "--", 2)) {
                if (strchr(word, '='))
                        return 0;
                list.find = word + 2;
                list.find_len = strlen(word + 2);
                ls_command_options(cmd, collect_name, &list);
                return list.found && (list.found->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE &&
                       !(list.found->argInfo & POPT_ARGFLAG_OPTIONAL);
        }
        for (const char *p = word + 1; *p; p++) {       /* flags may stand before it in one word */
                list = (struct name_list){ .letter = *p };
                ls_command_options(cmd, collect_name, &list);
                if (!list.found)
                        return 0;
                if ((list.found->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE)
                        return !p[1];
        }
        return 0;
}

/* popt takes the next word as the argument of an option with an optional one; git and perf never
 * do. "--split" becomes "--split=", which the command reads as "no argument". The copy lives as
 * long as the process. posix_me_harder: words after the first that is neither option nor argument
 * of one are the program's, and stay as they are. */
static const char **fix_optional(const struct ls_command *cmd, int argc, const char **argv,
                                 int posix_me_harder)
{
        size_t room = ((size_t)argc + 1) * sizeof(char *);
        const char **copy;
        char *with;                     /* behind the pointers: the words that were changed */

        for (int i = 0; i < argc; i++)
                room += strlen(argv[i]) + 2;
        copy = calloc(1, room);
        if (!copy)
                return argv;
        with = (char *)(copy + argc + 1);
        free(whole_argv);               /* of an earlier command line in this process: tests have
                                         * some */
        whole_argv = copy;
        for (int i = 0; i < argc; i++) {
                struct name_list list = { .n = 0 };

                copy[i] = argv[i];
                if (!strcmp(argv[i], "--") || (posix_me_harder && i > 0 && *argv[i] != '-')) {
                        memcpy(copy + i, argv + i, (size_t)(argc - i) * sizeof(*copy));
                        break;
                }
                if (posix_me_harder && i > 0 && takes_next_word(cmd, argv[i]) && i + 1 < argc) {
                        i++;
                        copy[i] = argv[i];
                        continue;
                }
                if (strncmp(argv[i], "--", 2) || strchr(argv[i], '='))
                        continue;
                list.find = argv[i] + 2;
                list.find_len = strlen(argv[i] + 2);
                ls_command_options(cmd, collect_name, &list);
                if (list.found && (list.found->argInfo & POPT_ARGFLAG_OPTIONAL)) {
                        copy[i] = with;
                        with += sprintf(with, "%s=", argv[i]) + 1;
                }
        }
        return copy;
}

poptContext ls_options_begin(const struct ls_command *cmd, int argc, const char **argv,
                             int posix_me_harder)
{
        poptContext ctx;

        whole_table[0] = (struct poptOption){
                NULL,       0,   POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)cmd->options, 0,
                "Options:", NULL
        };
        whole_table[1] = (struct poptOption){
                NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)help_options, 0, "Help:", NULL
        };
        whole_table[2] = (struct poptOption)POPT_TABLEEND;
        if (!cmd->run)
                whole_table[1] = whole_table[2];
        /* Words after the program's name are the program's: they are not looked at when
         * posix_me_harder is set. */
        ctx = poptGetContext(NULL, argc, fix_optional(cmd, argc, argv, posix_me_harder),
                             whole_table, posix_me_harder ? POPT_CONTEXT_POSIXMEHARDER : 0);
        if (!ctx) {
                ls_error("out of memory");
                exit(LS_EXIT_FAIL);
        }
        return ctx;
}

#define HELP_COLUMN 28                  /* where the help texts begin */

/* Text from HELP_COLUMN on, broken at spaces; the cursor is at column at. */
static void put_wrapped(FILE *out, const char *text, unsigned at, unsigned width)
{
        if (at + 1 > HELP_COLUMN) {
                fputc('\n', out);
                at = 0;
        }
        fprintf(out, "%*s", (int)(HELP_COLUMN - at), "");
        at = HELP_COLUMN;
        while (*text) {
                size_t word = strcspn(text, " ");

                if (at > HELP_COLUMN && at + 1 + word > width) {
                        fprintf(out, "\n%*s", HELP_COLUMN, "");
                        at = HELP_COLUMN;
                } else if (at > HELP_COLUMN) {
                        fputc(' ', out);
                        at++;
                }
                fwrite(text, 1, word, out);
                at += (unsigned)word;
                text += word + strspn(text + word, " ");
        }
        fputc('\n', out);
}

/* popt's own help puts all texts right of the longest option, which leaves no room for them. */
static void print_option(void *ctx, const struct poptOption *o)
{
        FILE *out = ctx;
        int takes = (o->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE &&
                    (o->argInfo & POPT_ARG_MASK) != POPT_ARG_VAL;
        int optional = (o->argInfo & POPT_ARGFLAG_OPTIONAL) != 0;
        char left[256];

        if (!o->longName || (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN))
                return;
        snprintf(left, sizeof(left), "  %c%c%s --%s%s%s%s%s", o->shortName ? '-' : ' ',
                 o->shortName ? o->shortName : ' ', o->shortName ? "," : " ", o->longName,
                 takes && optional ? "[" : "", takes ? "=" : "",
                 takes ? (o->argDescrip ? o->argDescrip : "ARG") : "",
                 takes && optional ? "]" : "");
        fputs(left, out);
        put_wrapped(out, o->descrip ? o->descrip : "", (unsigned)strlen(left), 80);
}

void ls_command_help(const struct ls_command *cmd, FILE *out)
{
        fprintf(out, "usage: luasample %s %s\n\n%s\n\nOptions:\n", cmd->name, cmd->usage,
                cmd->summary);
        ls_command_options(cmd, print_option, out);
        fprintf(out, "\nThe manual: luasample help %s\n", cmd->name);
}

static void say_bad_option(const struct ls_command *cmd, poptContext ctx, int error)
{
        const char *option = poptBadOption(ctx, 0);
        struct name_list list = { .n = 0 };
        char word[80];
        const char *near = NULL;

        if (!option)
                option = "?";
        if (error == POPT_ERROR_BADOPT && !strncmp(option, "--", 2)) {
                ls_command_options(cmd, collect_name, &list);
                snprintf(word, sizeof(word), "%.*s", (int)strcspn(option + 2, "="), option + 2);
                near = ls_suggest(word, list.names);
        }
        if (near)
                ls_error("%s: unknown option %s; did you mean --%s? (luasample %s --help lists "
                         "all)",
                         cmd->name, option, near, cmd->name);
        else if (error == POPT_ERROR_BADOPT)
                ls_error("%s: unknown option %s (luasample %s --help lists all)", cmd->name, option,
                         cmd->name);
        else
                ls_error("%s: option %s: %s (see luasample %s --help)", cmd->name, option,
                         poptStrerror(error), cmd->name);
}

int ls_check_output(const char *path)
{
        if (path[0] != '-' || !path[1])
                return 0;
        ls_error("-o %s: the name of a file to write cannot begin with -; give -o FILE, or ./%s "
                 "when it is meant",
                 path, path);
        return -EINVAL;
}

static void check_kept_output(void *ctx, const struct poptOption *o)
{
        const char *path = o->longName && !strcmp(o->longName, "output") && o->arg
                                   ? *(char *const *)o->arg
                                   : NULL;

        if (path && ls_check_output(path))
                *(int *)ctx = -2;
        else if (path)
                ls_keeper_name(path);
}

int ls_options_next(const struct ls_command *cmd, poptContext ctx)
{
        int val = poptGetNextOpt(ctx);

        if (val == -1)
                ls_command_options(cmd, check_kept_output, &val);
        if (val == VAL_HELP) {
                ls_command_help(cmd, stdout);
                return -3;
        }
        if (val < -2) {
                say_bad_option(cmd, ctx, val);
                return -2;
        }
        return val;
}
