/* The nearest of a list of words to a mistyped one. Used for commands, options and values of options. */
#ifndef LS_CLI_SUGGEST_H
#define LS_CLI_SUGGEST_H

/* words ends with NULL. Returns the nearest word when it is near enough to be meant, or NULL. */
const char *ls_suggest(const char *typed, const char *const *words);

#endif
