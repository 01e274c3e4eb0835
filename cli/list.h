/* The options of all commands, for other programs: see list.c. */
#ifndef LS_CLI_LIST_H
#define LS_CLI_LIST_H

#include <stdio.h>

/* luasample --list-options: one line per option of each command, fields separated by tabs (command,
 * long, short, argument, "optional" / "hidden" / "-", help), for tests/check_man.py. */
void ls_list_options(FILE *out);
/* luasample --completion SHELL: a completion script made from the same tables. Returns -1 for an
 * unknown shell. */
int ls_print_completion(const char *shell, FILE *out);

#endif
