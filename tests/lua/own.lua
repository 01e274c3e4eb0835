-- A program that begins its own recorder: own.lua FILE [WORD]. Twice FILE.1 and FILE.2; with WORD exit, once, and it ends
-- without stop. Calls that were made before the start do nothing, and those kept in locals go on to work.
local ls = require "luasample"
local zone_push, mark = ls.zone_push, ls.mark
local function loop(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function spin(ms)
        local e = os.clock() + ms / 1000
        repeat loop(20000) until os.clock() >= e
end
local function heavy() spin(180) end
local function light() spin(60) end
local function fails() ls.zone_push "left over" error("raised", 0) end

light()
mark "unseen"
zone_push "unseen"
print("before", ls.is_recording(), ls.stop())
for n = 1, arg[2] and 1 or 2 do
        print("start", ls.start{ name = "part " .. n, output = arg[1] .. "." .. n, options = { "-i", "1ms" } })
        print("again", ls.start{ output = arg[1] .. "." .. n })
        print("recording", ls.is_recording())
        mark("mark " .. n)
        ls.counter("part", n)
        ls.counter("part", n + 0.5)
        ls.label("who", "ann")
        ls.zone("outer", function() heavy() zone_push "inner" light() ls.zone_pop() end)
        print("error", pcall(ls.zone, "broken", fails))
        ls.label("who")
        light()
        if arg[2] == "exit" then os.exit(3) end
        print("stop", ls.stop())
        print("after", ls.is_recording(), ls.stop())
        zone_push "between"
        light()
        ls.zone_pop()
end
