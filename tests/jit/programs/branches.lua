-- Side traces: methods that branch on what they find, allocation in one branch.
local Counter = {}
Counter.__index = Counter
function Counter.new(v) return setmetatable({ v = v, n = 0 }, Counter) end
function Counter:up(d)
        self.v = (self.v + d) % 1009
        self.n = self.n + 1
end
function Counter:down(d)
        self.v = (self.v * 3 + d) % 1013
        self.v = (self.v * 5 + d) % 1019
        self.v = (self.v * 7 + d) % 1021
end
local function step(c, i)
        if c.v % 2 == 1 then
                c:up(i)
        else
                c:down(i)
        end
end
local function make(i)
        local p = { x = i, y = i }
        return p
end
local c, kept, stop = Counter.new(1), nil, os.clock() + tonumber(arg[1])
while os.clock() < stop do
        for i = 1, 20000 do
                step(c, i)
                if i % 7 == 0 then
                        kept = make(i)
                end
                if i % 5 < 2 then
                        c:up(kept and kept.x or 1)
                end
        end
end
