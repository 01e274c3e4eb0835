-- A program for the golden tests: its lines are charged by make_traces.c.
local util = require "util"

local function fib(n)
	if n < 2 then return n end
	return fib(n - 1) + fib(n - 2)
end

local Item = {}

function Item:draw()
	for i = 1, 10 do
		util.plot(i)
	end
	return string.format("%d", self.id)
end

local function run()
	local t = {}
	for i = 1, 100 do
		t[i] = function() return i end
	end
	table.sort(t, function(a, b) return a() < b() end)
	fib(30)
	Item.draw { id = 1 }
end

run()
