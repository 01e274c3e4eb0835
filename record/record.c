/* The command `luasample record`. */

#include "record/commands.h"
#include "record/loop.h"
#include "record/options.h"

static int record_run(int argc, const char **argv)
{
        struct ls_record_options o;
        int status = ls_record_options_parse(&ls_cmd_record, argc, argv, &o);

        if (status == LS_GO_ON)
                status = ls_loop_run(&o);
        ls_record_options_done(&o);
        return status;
}

const struct ls_command ls_cmd_record = {
        .name = "record",
        .summary =
                "write a trace of where the Lua code of a program, run or running, spends CPU time",
        .usage = "[OPTION...] [--] CMD [ARG...]|-p PID[,PID]",
        .options = ls_record_option_table,
        .run = record_run,
};
