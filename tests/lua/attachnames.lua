-- Runs for ever in compiled code, in a field of a module and in a global function, 1 part to 1.
local spinning = {}
package.loaded.spinning = spinning
function spinning.field(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
function spin_global(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end

io.stdout:write("begin\n")
io.stdout:flush()
local field, global, sum = spinning.field, spin_global, 0
while true do sum = sum + field(5000) - global(5000) end
