-- A recursive-descent parser and evaluator over a large generated program: parser.lua [ROUNDS]. Deep and various stacks.
local seed = 11
local function random(n)
        seed = (seed * 1103515245 + 12345) % 2147483648
        return math.floor(seed / 65536) % n + 1
end

local function expression(depth)
        local kind = depth <= 0 and 1 or random(7)
        if kind == 1 then return tostring(random(99)) end
        if kind == 2 then return "v" .. random(9) end
        if kind == 3 then return "(" .. expression(depth - 1) .. ")" end
        if kind == 4 then return "if " .. expression(depth - 2) .. " then " .. expression(depth - 1) .. " else " .. expression(depth - 2) .. " end" end
        if kind == 5 then return "-" .. expression(depth - 1) end
        return expression(depth - 1) .. ({ " + ", " * ", " - ", " < " })[random(4)] .. expression(depth - 2)
end

local Parser = {}
Parser.__index = Parser

function Parser:next()
        local s, i = self.text, self.text:find("%S", self.pos)
        if not i then self.token = nil return end
        local _, j = s:find("^%d+", i)
        if not j then _, j = s:find("^%a%w*", i) end
        j = j or i
        self.token, self.pos = s:sub(i, j), j + 1
end

function Parser:expect(word)
        if self.token ~= word then error(("expected %s, got %s"):format(word, tostring(self.token))) end
        self:next()
end

function Parser:primary()
        local t = self.token
        if t == "(" then
                self:next()
                local e = self:comparison()
                self:expect ")"
                return { "group", e }
        elseif t == "if" then
                self:next()
                local c = self:comparison()
                self:expect "then"
                local a = self:comparison()
                self:expect "else"
                local b = self:comparison()
                self:expect "end"
                return { "if", c, a, b }
        elseif t == "-" then
                self:next()
                return { "neg", (self:primary()) }
        end
        self:next()
        return tonumber(t) and { "num", tonumber(t) } or { "var", t }
end

function Parser:product()
        local e = self:primary()
        while self.token == "*" do
                self:next()
                e = { "*", e, (self:primary()) }
        end
        return e
end

function Parser:sum()
        local e = self:product()
        while self.token == "+" or self.token == "-" do
                local op = self.token
                self:next()
                e = { op, e, (self:product()) }
        end
        return e
end

function Parser:comparison()
        local e = self:sum()
        while self.token == "<" do
                self:next()
                e = { "<", e, (self:sum()) }
        end
        return e
end

local eval = {}
local function value(e) local v = eval[e[1]](e) return v end
function eval.num(e) return e[2] end
function eval.var(e) return #e[2] end
function eval.group(e) local v = value(e[2]) return v end
function eval.neg(e) local v = value(e[2]) return -v end
eval["if"] = function(e) local v = value(e[2]) > 0 and value(e[3]) or value(e[4]) return v end
eval["+"] = function(e) local v = value(e[2]) + value(e[3]) return v % 1e6 end
eval["-"] = function(e) local v = value(e[2]) - value(e[3]) return v % 1e6 end
eval["*"] = function(e) local v = value(e[2]) * value(e[3]) return v % 1e6 end
eval["<"] = function(e) return value(e[2]) < value(e[3]) and 1 or 0 end

local texts = {}
for i = 1, 60 do texts[i] = expression(24) end
local sum, bytes = 0, 0
for round = 1, tonumber(arg[1] or 20) do
        for i = 1, #texts do
                local p = setmetatable({ text = texts[i], pos = 1 }, Parser)
                p:next()
                sum = (sum + value(p:comparison())) % 1e6
                bytes = bytes + #texts[i]
        end
end
print("sum", sum, "bytes", bytes)
