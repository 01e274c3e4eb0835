/* The command luasample export: a trace in the format of another tool. The rest is report's
 * (report/report.c). */
#include "formats/export/export.h"
#include "report/commands.h"
#include "report/options/options.h"
#include "report/report.h"
#include "report/view/view.h"

#include <stdio.h>

static int list_formats(void)
{
        for (const struct ls_exporter *const *e = ls_exporters; *e; e++)
                printf("%-12s %-18s %s%s\n", (*e)->name, (*e)->suffix, (*e)->help,
                       (*e)->flags & LS_EXPORT_EXPERIMENTAL ? " (--experimental)" : "");
        return 0;
}

static int export_run(int argc, const char **argv)
{
        struct ls_report_options o;
        int status = ls_report_options_read(&ls_cmd_export, argc, argv, &o);

        if (status != LS_GO_ON)
                return status;
        return o.list ? list_formats() : ls_report_run(&o);
}

const struct ls_command ls_cmd_export = {
        .name = "export",
        .summary = "write a trace in the format of another tool",
        .usage = "[-i FILE] [--format NAME] [-o FILE] [OPTION...]",
        .options = ls_export_option_table,
        .run = export_run,
        .shows = 1,
};
