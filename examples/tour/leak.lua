-- A server in small: sessions are kept for as long as they last, and one thing of each request for good.
local sessions, seen = {}, {}

local function remember(request)
    seen[#seen + 1] = { id = request }
end

local function answer(request)
    local parts = {}
    for i = 1, 30 do parts[i] = { i, tostring(i + request) } end
    sessions[request % 1000] = parts
    remember(request)
    return #parts
end

for request = 1, tonumber(arg[1]) do answer(request) end
