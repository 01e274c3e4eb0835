-- Functions with every kind of name, each with work enough to be seen. Prints nothing.
local function work(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
proxy = { test = { Suite = {} } }
function proxy.test.Suite.run() return (work(20000)) + 1 end
function global_one() return (work(20000)) + 1 end
local function named_local() return (work(20000)) + 1 end
local Class = {}
Class.__index = Class
function Class:method() return (work(20000)) + 1 end
local object = setmetatable({}, Class)
local anonymous = { function() return (work(20000)) + 1 end }
local loaded = load("local w = ... return function() local x = 0 for i = 1, 20000 do x = x + i % 7 end return x end", "=(made at run time)")()
local noname = load("return function() local x = 0 for i = 1, 20000 do x = x + i % 5 end return x end")()
local Grid = {}
function Grid.inlined(x) return (x * 31 + 7) % 1000003 end

local stop = os.clock() + tonumber(arg and arg[1] or 1)
while os.clock() < stop do
        proxy.test.Suite.run()
        global_one()
        named_local()
        object:method()
        anonymous[1]()
        loaded()
        noname()
        local cell = 1
        for i = 1, 20000 do cell = Grid.inlined(cell) end       -- compiled after 56 times, and in no frame then
end
