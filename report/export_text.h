/* Texts of what a cell of an export is of: see export_text.c. */
#ifndef LS_REPORT_EXPORT_TEXT_H
#define LS_REPORT_EXPORT_TEXT_H

#include "formats/export/export.h"
#include "report/export_job.h"

/* The groupings that give texts to ids, and the text. */
int ls_export_dims_new(struct ls_export_job *job);
void ls_export_dims_free(struct ls_export_job *job);
const char *ls_export_dim_text(const struct ls_export *in, unsigned dim, uint32_t id);

#endif
