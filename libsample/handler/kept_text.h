/* Texts of chunks loaded under a name of their own, from the load (api/load_text.c, normal context,
 * any thread) to the first sample of one of their functions (sources.c, tick handler too). */
#ifndef LS_HANDLER_KEPT_TEXT_H
#define LS_HANDLER_KEPT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "libsample/handler/ring_writer.h"

/* Keeps a copy of the text of a chunk of this name. Normal context, any thread. */
void ls_kept_text_put(const char *name, const char *text, size_t len);

/* The text of the chunk of this name, or NULL: none is kept, or another thread is at work on the
 * table. Given once, to be freed with ls_pages_free(text, *ret_len). */
LS_HANDLER char *ls_kept_text_take(const char *name, size_t name_len, uint32_t *ret_len);

#endif
