/* What is asked of a profile by name: see profile.h. */
#include "formats/profile.h"

static const struct ls_info *find_info(const struct ls_profile *p, const char *key)
{
        size_t len = strlen(key);

        for (uint32_t i = 0; i < p->n_infos; i++)
                if (p->infos[i].key.len == len && !memcmp(p->infos[i].key.s, key, len))
                        return &p->infos[i];
        return NULL;
}

uint64_t ls_profile_u64_of(const struct ls_profile *p, const char *key, uint64_t def)
{
        const struct ls_info *i = find_info(p, key);

        return i && i->is_u64 ? i->u64 : def;
}

uint64_t ls_profile_u64(const struct ls_profile *p, enum ls_info_key key, uint64_t def)
{
        return ls_profile_u64_of(p, ls_info_key(key), def);
}

struct ls_str ls_profile_str(const struct ls_profile *p, enum ls_info_key key)
{
        const struct ls_info *i = find_info(p, ls_info_key(key));

        return i && !i->is_u64 ? i->str : (struct ls_str){ "", 0 };
}
