/* The pager of commands with long output, as git has it. Used by cli/output.c. */
#ifndef LS_CLI_PAGER_H
#define LS_CLI_PAGER_H

/* Puts LUASAMPLE_PAGER, PAGER or less between stdout and us, when stdout is a terminal. Returns 1
 * when there is one. */
int ls_pager_start(void);
/* The user quits the pager with its own keys: Ctrl-C must not take its text away. A pager that is
 * gone is told by EPIPE, which ends the command quietly. */
void ls_pager_quiet(void);
/* Ends our side of the pipe and waits until the user quits. Does nothing without a pager. Returns 1
 * when there was one. */
int ls_pager_finish(void);

#endif
