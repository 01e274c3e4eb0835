/* What samples can be grouped by: function, line, VM state, ... One table; views know no kinds of
 * their own. */
#ifndef LS_REPORT_MODEL_KEYS_H
#define LS_REPORT_MODEL_KEYS_H

#include <stdint.h>

#include "report/model/grouping.h"

extern const struct ls_key ls_keys[];   /* ended by name NULL */
/* NULL = there is none. */
const struct ls_key *ls_key_find(const char *name, uint32_t len);

/* The key label:KEY of a label; NULL = it has no name that an option could have, or no memory. */
const struct ls_key *ls_label_key(const struct ls_profile *p, uint32_t label);

int ls_grouping_new(const struct ls_key *key, const struct ls_profile *p,
                    const struct ls_labels *labels, struct ls_grouping **ret);
void ls_grouping_free(struct ls_grouping *g);   /* takes NULL */

/* What a group is called; never NULL. */
const char *ls_group_text(const struct ls_grouping *g, uint32_t group);

/* The group of the leaf of a cell, or of the cell itself. By line, what is no Lua is charged to the
 * line that called it. */
uint32_t ls_group_of_cell(const struct ls_grouping *g, const struct ls_cell *c);

/* 0 when the ticks of the group are charged to those that called it, which are rows: it is none. */
int ls_group_pays(const struct ls_grouping *g, uint32_t group);

/* The stack that pays for each stack's ticks by line: that of the innermost Lua frame below
 * builtins, C and native functions; where no Lua called them, and for what is no function, the
 * stack itself. Array of n_stacks, to be freed; NULL = no memory. */
uint32_t *ls_paying_stacks(const struct ls_profile *p);

/* The path of a zone, outermost first: "AI;A*". To be freed; NULL = no memory. */
char *ls_zone_path(const struct ls_profile *p, uint32_t zone);

#endif
