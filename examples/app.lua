-- The application of nginx.conf: two routes, told apart in the recording by zones and labels, and counted.
local ok, luasample = pcall(require, "luasample")
if not ok then
        local function nothing() end
        luasample = { zone = function(_, fn, ...) return fn(...) end, label = nothing, counter = nothing }
end

local app, served = {}, 0

local function work(ms)
        local x, e = 0, os.clock() + ms / 1000
        repeat for i = 1, 1000 do x = x + i % 7 end until os.clock() >= e
        return x
end

local routes = {
        list = function() work(3) return "list\n" end,
        item = function() work(1) return "item\n" end,
}

function app.serve()
        local name = ngx.var.uri:match "%w+"
        local route = routes[name]
        if not route then return ngx.exit(404) end
        luasample.label("user", ngx.var.arg_user)
        served = served + 1
        luasample.counter("served", served)
        ngx.print(luasample.zone(name, route))
end

return app
