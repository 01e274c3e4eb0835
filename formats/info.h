/* Keys of INFO records, by the rows of info.def. Used by what writes facts of a recording and by
 * what reads them: a key is spelled in the table alone. */
#ifndef LS_FORMATS_INFO_H
#define LS_FORMATS_INFO_H

enum ls_info_key {
#define LS_INFO(NAME, key, type, merged, help) LS_INFO_##NAME,
#include "formats/info.def"
#undef LS_INFO
        LS_INFO_KEYS
};

#define LS_BOOT_ID 36           /* characters of LS_INFO_BOOT */

static inline const char *ls_info_key(enum ls_info_key key)
{
        static const char *const keys[] = {
#define LS_INFO(NAME, key, type, merged, help) key,
#include "formats/info.def"
#undef LS_INFO
        };

        return keys[key];
}

#endif
