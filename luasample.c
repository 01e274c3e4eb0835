/* luasample: main() and the table of commands. */
#include "cli/command.h"
#include "record/commands.h"
#include "report/commands.h"

#include <stddef.h>

const struct ls_command *const ls_commands[] = {
        &ls_cmd_record,
        &ls_cmd_report,
        &ls_cmd_export,
        &ls_cmd_tui,
        &ls_cmd_top,
        &ls_cmd_diff,
        &ls_cmd_merge,
        &ls_cmd_dump,
        &ls_cmd_info,
        &ls_cmd_stack,
        &ls_cmd_doctor,
        NULL,
};

int main(int argc, const char **argv)
{
        return ls_main(argc, argv);
}
