-- Uses modules of Penlight a little, so that some of their lines are executed and others not. For luacov.py.
local List, Map, Set = require "pl.List", require "pl.Map", require "pl.Set"
local tablex, stringx, seq, pretty = require "pl.tablex", require "pl.stringx", require "pl.seq", require "pl.pretty"
local OrderedMap, Date, data, lexer = require "pl.OrderedMap", require "pl.Date", require "pl.data", require "pl.lexer"
local template, text, path, func = require "pl.template", require "pl.text", require "pl.path", require "pl.func"
local List2 = List { 5, 3, 1 }
for round = 1, 200 do
  local l = List(List2):sort():map(function(x) return x * 2 end):filter(function(x) return x > 2 end)
  assert(l:join(",") == "6,10")
  local m = OrderedMap { { b = 1 }, { a = 2 } }
  assert(tablex.deepcompare(tablex.map(function(x) return x + 1 end, { 1, 2 }), { 2, 3 }))
  assert(stringx.split("a b c")[3] == "c" and stringx.strip("  x ") == "x" and stringx.partition("a=b", "=") == "a")
  assert(pretty.write(pretty.read("{ 1, x = 'y', { z = true } }"), "") ~= "")
  assert(Set { 1, 2 } * Set { 2, 3 } == Set { 2 })
  assert(seq.sum(seq.list { 1, 2, 3 }) == 6)
  assert(path.normpath("/a/../b//c") == "/b/c" and path.extension("x.lua") == ".lua")
  for kind, value in lexer.lua("local x = 'a' .. 10 -- end") do assert(kind and value) end
  assert(template.substitute("# for i = 1, 2 do\n$(i)\n# end\n", { _escape = "#" }) == "1\n2\n")
  pcall(List.index, 1, 2)
  pcall(tablex.map, nil, nil)
end
print("done")
