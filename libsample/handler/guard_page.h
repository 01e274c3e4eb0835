/* Whether a page can be read. In a process that looks from outside record/watch/mirror.c says it.
 * */
#ifndef LS_LIBSAMPLE_HANDLER_GUARD_PAGE_H
#define LS_LIBSAMPLE_HANDLER_GUARD_PAGE_H

#include <stdint.h>

#include "libsample/handler/ring_writer.h"

/* 1 when the page of this number (its address / 4096) can be read. */
LS_HANDLER int ls_page_readable(uintptr_t page);

#endif
