/* Walks over option tables, for help, completions and checks. Used inside cli/. */
#ifndef LS_CLI_OPTIONS_H
#define LS_CLI_OPTIONS_H

#include <stdio.h>

#include "cli/command.h"

typedef void (*ls_option_fn)(void *ctx, const struct poptOption *option);

/* Calls fn for each option of a table, included tables too. */
void ls_options_walk(const struct poptOption *table, ls_option_fn fn, void *ctx);
/* Calls fn for all options that cmd takes, --help too. */
void ls_command_options(const struct ls_command *cmd, ls_option_fn fn, void *ctx);

/* Prints what luasample CMD --help shows. */
void ls_command_help(const struct ls_command *cmd, FILE *out);

#endif
