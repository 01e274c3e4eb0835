/* The table of exporters. */
#include "formats/export.h"

#include <stddef.h>

const struct ls_exporter *const ls_exporters[] = {
        &ls_export_callgrind,
        &ls_export_collapsed,
        &ls_export_speedscope,
        &ls_export_chrome,
        &ls_export_perf_script,
        NULL,
};
