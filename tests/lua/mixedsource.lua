-- Hot code in a string chunk, in bytecode, in a file that is deleted, and in this file: for annotation.
local made = load("local n = ...\nlocal x = 0\nfor i = 1, n do x = x + i % 7 end\nreturn x\n")
local stripped = loadstring(string.dump(load("local n = ...\nlocal x = 0\nfor i = 1, n do x = x + i % 5 end\nreturn x\n", "=stripped"), true))
local name = os.tmpname()
local f = assert(io.open(name, "w"))
f:write("local n = ...\nlocal x = 0\nfor i = 1, n do x = x + i % 3 end\nreturn x\n")
f:close()
local gone = assert(loadfile(name))
os.remove(name)
local function here(n)
        local x = 0
        for i = 1, n do x = x + i % 11 end
        return x
end
local stop = os.clock() + tonumber(arg[1] or 1)
while os.clock() < stop do
        made(20000)
        stripped(20000)
        gone(20000)
        here(20000)
end
