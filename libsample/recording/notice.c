/* See notice.h. */

#include "libsample/recording/notice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libsample/handler/ring_writer.h"
#include "libsample/thread.h"

void ls_agent_notice(const char *fmt, ...)
{
        struct ls_thread *t = ls_thread_self();
        struct ls_rec_notice rec = { 0 };
        char text[512], *body;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        if (!t || n <= 0)
                return;
        rec.len = (uint32_t)n < sizeof text ? (uint32_t)n : (uint32_t)sizeof text - 1;
        body = ls_ring_reserve(t->ring, LS_REC_NOTICE, sizeof rec + rec.len, LS_RESERVE_DEFINITION);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, text, rec.len);
        ls_ring_commit(t->ring, body);
}
