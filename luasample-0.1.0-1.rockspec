-- The module for programs that are not recorded: `luarocks make` in the sources. The profiler itself is built with meson.
package = "luasample"
version = "0.1.0-1"
source = { url = "." }
description = {
        summary = "Regions, marks and zones for the sampling profiler luasample; without a recording they do nothing",
        license = "MIT",
}
dependencies = { "lua >= 5.1, < 5.2" }
build = {
        type = "builtin",
        modules = { luasample = "libsample/luasample.lua" },
}
