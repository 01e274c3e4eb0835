"""Time of C code: functions of the host, given to the VM with lua_pushcfunction, have their own time, by the host's own
clock. The other states are in tests/truth. Imported by run.py."""
import threads
from support import check_near, share


def add_to(suite):
    for native in ("--no-native", "--native"):
        @suite.test("states.host-function." + native.lstrip("-"),
                    "a host's C functions, busy for 50 ms at a time, also around calls back into Lua",
                    native == "--no-native")
        def host_function(native=native):
            r, said = threads.host_vms("cfunction", native)
            total, rows = said["all"], r.rows("--by", "function")
            field = "self" if native == "--no-native" else "total"
            check_near("host_busy", share(rows, field, function="host_busy"), 100 * said["host_busy"] / total, 2)
            around = said["host_around"] + (said["callback"] if field == "total" else 0)
            check_near("host_around", share(rows, field, function="host_around"), 100 * around / total, 2)
            check_near("callback", share(rows, "total", function="callback"), 100 * said["callback"] / total, 2)
