/* The nearest of a list of words to a mistyped one: Damerau-Levenshtein distance. Used by cli/ and
 * report/. */
#include "cli/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define MAX_WORD 63     /* longer words are never suggested */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
        unsigned m = a < b ? a : b;

        return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that make b from a. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
        unsigned rows[3][MAX_WORD + 1];
        unsigned *before = rows[0], *prev = rows[1], *cur = rows[2];

        for (size_t j = 0; j <= nb; j++)
                prev[j] = (unsigned)j;
        for (size_t i = 1; i <= na; i++) {
                unsigned *spare = before;

                cur[0] = (unsigned)i;
                for (size_t j = 1; j <= nb; j++) {
                        unsigned differs = a[i - 1] != b[j - 1];

                        cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + differs);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                            before[j - 2] + 1 < cur[j])
                                cur[j] = before[j - 2] + 1;
                }
                before = prev;
                prev = cur;
                cur = spare;
        }
        return prev[nb];
}

const char *ls_suggest(const char *typed, const char *const *words)
{
        const char *best = NULL;
        unsigned best_distance = 0;
        size_t n = strlen(typed);

        if (n == 0 || n > MAX_WORD)
                return NULL;
        for (; *words; words++) {
                size_t len = strlen(*words);
                unsigned d;

                if (len > MAX_WORD)
                        continue;
                d = distance(typed, n, *words, len);
                if (len > n && n >= 3 && !strncmp(typed, *words, n))
                        d = 1;          /* an abbreviation */
                if (!best || d < best_distance) {
                        best = *words;
                        best_distance = d;
                }
        }
        return best && best_distance <= 1 + n / 4 ? best : NULL;
}

int ls_one_of(const char *command, const char *what, const char *text, const char *const *words,
              int *ret)
{
        const char *near;
        char all[256] = "";
        size_t n = 0;

        for (*ret = 0; words[*ret]; ++*ret)
                if (!strcmp(text, words[*ret]))
                        return 0;
        near = ls_suggest(text, words);
        if (near) {
                ls_error("%s: %s '%s' is not known; did you mean '%s'? (luasample %s --help lists "
                         "all)",
                         command, what, text, near, command);
                return -EINVAL;
        }
        for (int i = 0; words[i] && n < sizeof(all); i++)
                n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s",
                                      !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
        ls_error("%s: %s '%s' is not known: give %s", command, what, text, all);
        return -EINVAL;
}
