/* The option tables for machines: the list that tests/check_man.py compares with the manual, and
 * the shell completions. Called by cli/main.c. */
#include "cli/list.h"

#include "cli/options.h"

#include <ctype.h>
#include <string.h>

struct list_ctx {
        const struct ls_command *cmd;
        FILE *out;
};

static const char *argument_of(const struct poptOption *o)
{
        if ((o->argInfo & POPT_ARG_MASK) == POPT_ARG_NONE ||
            (o->argInfo & POPT_ARG_MASK) == POPT_ARG_VAL)
                return "";
        return o->argDescrip ? o->argDescrip : "ARG";
}

static void list_one(void *ctx, const struct poptOption *o)
{
        struct list_ctx *list = ctx;
        char brief[2] = { o->shortName ? o->shortName : '-', 0 };

        fprintf(list->out, "%s\t--%s\t%s\t%s\t%s%s\t%s\n", list->cmd->name,
                o->longName ? o->longName : "", brief, *argument_of(o) ? argument_of(o) : "-",
                o->argInfo & POPT_ARGFLAG_OPTIONAL ? "optional" : "-",
                o->argInfo & POPT_ARGFLAG_DOC_HIDDEN ? ",hidden" : "",
                o->descrip ? o->descrip : "");
}

void ls_list_options(FILE *out)
{
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++) {
                struct list_ctx list = { *cmd, out };

                ls_command_options(*cmd, list_one, &list);
        }
}

/* "always|auto|never" names the values of an option; "FILE" is a file, "DIR" a directory; others
 * are free text. */
static int lists_values(const char *arg)
{
        if (!*arg)
                return 0;
        for (const char *p = arg; *p; p++)
                if (!islower((unsigned char)*p) && !strchr("|-,", *p))
                        return 0;
        return 1;
}

/* Text inside single quotes of a shell; the help texts of the tables hold no control characters. */
static void put_quoted(FILE *out, const char *text, const char *also_escape)
{
        for (; *text; text++) {
                if (*text == '\'')
                        fputs("'\\''", out);
                else if (strchr(also_escape, *text))
                        fprintf(out, "\\%c", *text);
                else
                        fputc(*text, out);
        }
}

static void put_words(FILE *out, const char *values)
{
        for (; *values; values++)
                fputc(*values == '|' ? ' ' : *values, out);
}

static void bash_words(void *ctx, const struct poptOption *o)
{
        struct list_ctx *list = ctx;

        if (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN)
                return;
        if (o->shortName)
                fprintf(list->out, " -%c", o->shortName);
        if (o->longName)
                fprintf(list->out, " --%s%s", o->longName,
                        *argument_of(o) && !(o->argInfo & POPT_ARGFLAG_OPTIONAL) ? "=" : "");
}

static void bash_values(void *ctx, const struct poptOption *o)
{
        struct list_ctx *list = ctx;
        const char *arg = argument_of(o);

        if (!*arg || !o->longName || (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN))
                return;
        fprintf(list->out, "        %s:--%s", list->cmd->name, o->longName);
        if (o->shortName)
                fprintf(list->out, "|%s:-%c", list->cmd->name, o->shortName);
        if (lists_values(arg)) {
                fprintf(list->out, ") COMPREPLY=($(compgen -W '");
                put_words(list->out, arg);
                fprintf(list->out, "' -- \"$word\")); return ;;\n");
        } else if (strstr(arg, "FILE") || strstr(arg, "DIR")) {
                fprintf(list->out, ") COMPREPLY=($(compgen -%c -- \"$word\")); return ;;\n",
                        strstr(arg, "FILE") ? 'f' : 'd');
        } else {
                fprintf(list->out, ") COMPREPLY=(); return ;;\n");
        }
}

static void completion_bash(FILE *out)
{
        fprintf(out, "# bash completion of luasample; made by luasample --completion bash\n"
                     "_luasample() {\n"
                     "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
                     "cmd=${COMP_WORDS[1]}\n"
                     "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "        COMPREPLY=($(compgen -W 'help --help --version");
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++)
                fprintf(out, " %s", (*cmd)->name);
        fprintf(out, "' -- \"$word\"))\n        return\n    fi\n"
                     "    # bash splits --option=value into three words\n"
                     "    if [ \"$word\" = = ]; then word=; fi\n"
                     "    if [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                     "    if [ \"${COMP_WORDS[COMP_CWORD]}\" = = ]; then "
                     "before=${COMP_WORDS[COMP_CWORD-1]}; fi\n"
                     "    case $cmd:$before in\n");
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++) {
                struct list_ctx list = { *cmd, out };

                ls_command_options(*cmd, bash_values, &list);
        }
        fprintf(out, "    esac\n    case $cmd in\n");
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++) {
                struct list_ctx list = { *cmd, out };

                fprintf(out, "        %s) COMPREPLY=($(compgen -W '", (*cmd)->name);
                ls_command_options(*cmd, bash_words, &list);
                fprintf(out, "' -- \"$word\")) ;;\n");
        }
        fprintf(out, "        help) COMPREPLY=($(compgen -W '");
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++)
                fprintf(out, "%s%s", cmd == ls_commands ? "" : " ", (*cmd)->name);
        fprintf(out, "' -- \"$word\")) ;;\n    esac\n"
                     "    case ${COMPREPLY[0]-} in *=) compopt -o nospace ;; esac\n"
                     "}\n"
                     "complete -o default -F _luasample luasample\n");
}

static void zsh_option(void *ctx, const struct poptOption *o)
{
        struct list_ctx *list = ctx;
        const char *arg = argument_of(o);

        if (!o->longName || (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN))
                return;
        for (int brief = 0; brief < 2; brief++) {
                if (brief && !o->shortName)
                        break;
                fprintf(list->out, "            '");
                if (brief)
                        fprintf(list->out, "-%c%s", o->shortName, *arg ? "+" : "");
                else
                        fprintf(list->out, "--%s%s", o->longName,
                                !*arg ? "" : o->argInfo & POPT_ARGFLAG_OPTIONAL ? "=-" : "=");
                fputc('[', list->out);
                put_quoted(list->out, o->descrip ? o->descrip : "", "[]:\\");
                fputc(']', list->out);
                if (*arg) {
                        fputs(o->argInfo & POPT_ARGFLAG_OPTIONAL ? "::" : ":", list->out);
                        put_quoted(list->out, arg, ":\\");
                        fputc(':', list->out);
                        if (lists_values(arg)) {
                                fputc('(', list->out);
                                put_words(list->out, arg);
                                fputc(')', list->out);
                        } else if (strstr(arg, "FILE")) {
                                fputs("_files", list->out);
                        } else if (strstr(arg, "DIR")) {
                                fputs("_files -/", list->out);
                        }
                }
                fprintf(list->out, "' \\\n");
        }
}

static void completion_zsh(FILE *out)
{
        fprintf(out, "#compdef luasample\n# zsh completion of luasample; made by luasample "
                     "--completion zsh\n"
                     "_luasample() {\n    local -a commands\n    commands=(\n");
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++) {
                fprintf(out, "        '%s:", (*cmd)->name);
                put_quoted(out, (*cmd)->summary, ":\\");
                fprintf(out, "'\n");
        }
        fprintf(out, "        'help:show the manual of a command'\n    )\n"
                     "    if (( CURRENT == 2 )); then\n        _describe command commands\n        "
                     "return\n    fi\n"
                     "    local cmd=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $cmd "
                     "in\n");
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++) {
                struct list_ctx list = { *cmd, out };

                fprintf(out, "        %s) _arguments -s -S \\\n", (*cmd)->name);
                ls_command_options(*cmd, zsh_option, &list);
                /* words that are no options: another command, or files */
                fprintf(out, "            '%s' ;;\n",
                        strstr((*cmd)->usage, "CMD") ? "*::argument:_normal" : "*:file:_files");
        }
        fprintf(out,
                "        help) _describe command commands ;;\n    esac\n}\n_luasample \"$@\"\n");
}

static void fish_option(void *ctx, const struct poptOption *o)
{
        struct list_ctx *list = ctx;
        const char *arg = argument_of(o);

        if (!o->longName || (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN))
                return;
        fprintf(list->out, "complete -c luasample -n '__fish_seen_subcommand_from %s' -l %s",
                list->cmd->name, o->longName);
        if (o->shortName)
                fprintf(list->out, " -s %c", o->shortName);
        if (*arg && !(o->argInfo & POPT_ARGFLAG_OPTIONAL))
                fprintf(list->out, strstr(arg, "FILE") || strstr(arg, "DIR") ? " -rF" : " -x");
        if (lists_values(arg)) {
                fprintf(list->out, " -a '");
                put_words(list->out, arg);
                fputc('\'', list->out);
        }
        fprintf(list->out, " -d '");
        for (const char *p = o->descrip ? o->descrip : ""; *p; p++)     /* fish has no '\'' */
                fprintf(list->out, strchr("'\\", *p) ? "\\%c" : "%c", *p);
        fprintf(list->out, "'\n");
}

static void completion_fish(FILE *out)
{
        fprintf(out, "# fish completion of luasample; made by luasample --completion fish\n");
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++) {
                fprintf(out, "complete -c luasample -n __fish_use_subcommand -f -a %s -d '",
                        (*cmd)->name);
                for (const char *p = (*cmd)->summary; *p; p++)
                        fprintf(out, strchr("'\\", *p) ? "\\%c" : "%c", *p);
                fprintf(out, "'\n");
        }
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++) {
                struct list_ctx list = { *cmd, out };

                ls_command_options(*cmd, fish_option, &list);
        }
}

static const struct {
        const char *shell;
        void (*print)(FILE *out);
} completions[] = {
        { "bash", completion_bash },
        { "zsh", completion_zsh },
        { "fish", completion_fish },
};

int ls_print_completion(const char *shell, FILE *out)
{
        for (size_t i = 0; i < sizeof(completions) / sizeof(completions[0]); i++) {
                if (!strcmp(completions[i].shell, shell)) {
                        completions[i].print(out);
                        return 0;
                }
        }
        return -1;
}
