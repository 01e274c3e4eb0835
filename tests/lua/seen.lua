-- What the program sees of itself: arguments, environment, standard input, children's environment.
for i = 0, #arg do print("arg", i, i == 0 and "-" or arg[i]) end
for _, v in ipairs { "LUA_INIT", "LD_PRELOAD", "LUASAMPLE_AGENT_MEMORY", "LUA_PATH", "HOME" } do
        print("env", v, os.getenv(v))
end
io.stdout:flush()
os.execute("env | grep -v ^_= | sort")
print("stdin", io.read("*a"))
print("package.path", package.path)
print("package.loaded.luasample", package.loaded.luasample)
print("debug.gethook", debug.gethook())
local keys = {}
for k in pairs(debug.getregistry()) do if type(k) == "string" then keys[#keys + 1] = k end end
table.sort(keys)
print("registry", table.concat(keys, " "))
local x, stop = 0, os.clock() + 0.3
while os.clock() < stop do for i = 1, 1000 do x = x + i % 7 end end
io.stderr:write("to stderr\n")
os.exit(42)
