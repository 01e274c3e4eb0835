/* The nearest of a list of words to a mistyped one. Used for commands, options and values of
 * options. */
#ifndef LS_CLI_SUGGEST_H
#define LS_CLI_SUGGEST_H

/* words ends with NULL. Returns the nearest word when it is near enough to be meant, or NULL. */
const char *ls_suggest(const char *typed, const char *const *words);

/* The place of text in words, which ends with NULL, in *ret. Returns 0, or -EINVAL after an error
 * that names command, what text is ("--sort", "request"), and the nearest word or all. */
int ls_one_of(const char *command, const char *what, const char *text, const char *const *words,
              int *ret);

#endif
