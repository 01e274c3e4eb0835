/* Exporter "csv": a flat or split table with a line for each row, as RFC 4180 has it, for
 * spreadsheets and data frames. */
#include "formats/escape.h"
#include "formats/export/export.h"

static int put_line(void *ctx, const char *const *names, const char *const *values, unsigned n)
{
        FILE *out = ctx;

        for (unsigned i = 0; i < n; i++) {
                const char *text = values ? values[i] : names[i];

                if (i)
                        fputc_unlocked(',', out);
                ls_csv_text(out, text ? text : "");
        }
        fputs_unlocked("\r\n", out);
        return 0;
}

static int csv_write(FILE *out, const struct ls_export *in)
{
        return in->table(in, put_line, out);
}

const struct ls_exporter ls_export_csv = {
        .name = "csv",
        .suffix = ".csv",
        .help = "a table of functions, lines, ... (--by, --depth, --split), for spreadsheets",
        .flags = LS_EXPORT_TABLE,
        .write = csv_write,
};
