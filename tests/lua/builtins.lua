-- Time in functions that are not Lua, with callbacks into Lua so that the stack shows them: builtins.lua [SECONDS].
local function compare(a, b)
        local x = 0
        for i = 1, 50 do x = x + i % 7 end
        return a < b
end
local function replace(c)
        local x = 0
        for i = 1, 500 do x = x + i % 7 end
        return c
end
local ok, lpeg = pcall(require, "lpeg")
local pattern
if ok then
        pattern = lpeg.Cmt(lpeg.P(1), function(s, i)
                local x = 0
                for k = 1, 500 do x = x + k % 7 end
                return i
        end) ^ 0
end
local stop = os.clock() + tonumber(arg[1] or 1)
while os.clock() < stop do
        local t = {}
        for i = 1, 200 do t[i] = (i * 7919) % 211 end
        table.sort(t, compare);
        ("abcdefghij"):rep(3):gsub(".", replace)
        if ok then pattern:match(("x"):rep(30)) end
        for i = 1, 30 do pcall(replace, "x") end        -- of one call alone some recordings of a second have no tick
        for i = 1, 20 do package.loaders[2]("no.such.module") end       -- a C function that a list alone has
        for i = 1, ok and 100 or 0 do t[i] = pattern * pattern end      -- one that a metatable alone has
end
print(ok and "lpeg" or "no lpeg")
