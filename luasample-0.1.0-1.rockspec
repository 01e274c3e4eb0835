-- The module for programs that were not started by `luasample record`: `luarocks make` in the sources. The profiler itself is
-- built with meson.
package = "luasample"
version = "0.1.0-1"
source = { url = "." }
description = {
        summary = "Regions, marks, zones, labels and counters for the sampling profiler luasample; start records this process",
        license = "MIT",
}
dependencies = { "lua >= 5.1, < 5.2" }
build = {
        type = "builtin",
        modules = { luasample = "libsample/api/luasample.lua", ["luasample.iprof"] = "libsample/api/iprof.lua",
                    ["luasample.openresty"] = "libsample/api/openresty.lua" },
}
