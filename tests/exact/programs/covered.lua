-- Loads one module of two: cover/loaded.lua; cover/never.lua is never loaded. "--=" as in lines.lua.
package.path = arg[0]:match("^(.*/)") .. "?.lua"  --= 1
local m = require "cover.loaded"                  --= 1
for i = 1, 1000 do m.used(i) end                  --= 1000
loadstring("local x = 1")()                       --= 1
