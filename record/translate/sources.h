/* Sources of the recorded program: files, found and hashed, and texts of loaded chunks, put
 * together from pieces. Called by translate.c. */
#ifndef LS_RECORD_TRANSLATE_SOURCES_H
#define LS_RECORD_TRANSLATE_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "formats/trace/writer.h"
#include "formats/wire/ring.h"
#include "record/process/ids.h"

#define LS_TEXT_MAX (1u << 20)          /* of one source */
#define LS_TEXT_ALL_MAX (16u << 20)     /* of a recording */

struct ls_source_entry {                /* by the agent's id; name NULL = not defined */
        char *name;                     /* chunk name, not terminated */
        char *text;                     /* pieces so far */
        uint64_t name_hash;
        uint32_t name_len;
        uint32_t text_len;              /* announced */
        uint32_t received;
        uint32_t trace_id;              /* 0 = not yet in the trace */
        uint8_t complete, cut;
};

struct ls_source_table {                /* those of one ring */
        struct ls_source_entry *entries;
        uint32_t n;                     /* allocated entries, id 0 included */
};

struct ls_source_known;

struct ls_sources {                     /* of all rings */
        struct ls_trace_writer *writer;
        struct ls_worker *worker;       /* reads the files; may be replaced by another one */
        struct ls_ids *ids;             /* the process's; the caller's */
        const char *cwd;                /* the program's at its start; the caller's */
        int pid;                        /* its present one is looked at too; 0 = no process */
        int no_source;
        size_t text_bytes;              /* held or written */
        uint64_t written_bytes;         /* of source text in the trace */
        uint64_t text_cut;              /* sources whose text was cut, or did not come */
        uint8_t *has;                   /* by the trace's id: what text of it is in the trace */
        uint32_t n_has;
        struct ls_source_known *inherited;      /* chunks that the parent process had before it
                                                 * forked this one */
        struct ls_source_known *known;  /* chunks with a name of their own, by that name */
};

void ls_sources_init(struct ls_sources *s, struct ls_trace_writer *w, struct ls_worker *worker,
                     struct ls_ids *ids, const char *cwd, int pid, int no_source);
void ls_sources_done(struct ls_sources *s);
/* The process was forked by the one that from is of: a chunk whose text came in that one is known
 * by its name. */
void ls_sources_inherit(struct ls_sources *s, const struct ls_sources *from);
/* Forgets the ids of a ring. */
void ls_source_table_done(struct ls_sources *s, struct ls_source_table *t);

/* A SOURCE or TEXT record, copied and with its lengths checked by the caller. Returns 0, or
 * -EINVAL: makes no sense. */
int ls_sources_define(struct ls_sources *s, struct ls_source_table *t,
                      const struct ls_rec_source *rec, const char *name);
int ls_sources_text(struct ls_sources *s, struct ls_source_table *t, const struct ls_rec_text *rec,
                    const char *piece);

/* When a ring's thread or the recording ends: texts that were announced and did not all come are
 * counted as cut. */
void ls_sources_finish(struct ls_sources *s, struct ls_source_table *t);

/* 1 when the chunk has a name of its own, so that it came from no file: a ring that has not its
 * text cannot tell. */
int ls_sources_is_loaded(const struct ls_source_table *t, uint32_t source_id);

/* The trace's id of the source, which is put there at its first use: by then its text is known. 0 =
 * not defined. */
uint32_t ls_sources_trace_id(struct ls_sources *s, struct ls_source_table *t, uint32_t source_id);

#endif
