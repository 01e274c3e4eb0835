/* Values of the daemon's JSON. Used by page.c and metrics.c. */
#ifndef LS_DAEMON_HTTP_JSON_H
#define LS_DAEMON_HTTP_JSON_H

#include <yajl/yajl_tree.h>

/* A member: "" and 0 where it is not there. */
static inline const char *ls_json_text(yajl_val v, const char *key)
{
        const char *path[] = { key, NULL };
        yajl_val found = yajl_tree_get(v, path, yajl_t_string);

        return found ? YAJL_GET_STRING(found) : "";
}

static inline long long ls_json_number(yajl_val v, const char *key)
{
        const char *path[] = { key, NULL };
        yajl_val found = yajl_tree_get(v, path, yajl_t_number);

        return found && YAJL_IS_INTEGER(found) ? YAJL_GET_INTEGER(found) : 0;
}

/* Its elements: *ret_n of them. */
static inline yajl_val *ls_json_array(yajl_val v, const char *key, size_t *ret_n)
{
        const char *path[] = { key, NULL };
        yajl_val found = yajl_tree_get(v, path, yajl_t_array);

        *ret_n = found ? YAJL_GET_ARRAY(found)->len : 0;
        return found ? YAJL_GET_ARRAY(found)->values : NULL;
}

static inline yajl_val ls_json_object(yajl_val v, const char *key)
{
        const char *path[] = { key, NULL };

        return yajl_tree_get(v, path, yajl_t_object);
}

#endif
