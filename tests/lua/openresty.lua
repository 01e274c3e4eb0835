-- luasample.openresty with a Kong and an APISIX that are as much of them as it looks at: openresty.lua MODULE FOLDER.
package.path = arg[2] .. "/?.lua;" .. package.path
local o = assert(loadfile(arg[1]))()
local function work(ms)
        local x, e = 0, os.clock() + ms / 1000
        repeat for i = 1, 1000 do x = x + i % 7 end until os.clock() >= e
end
local function handler(ms, ...)
        local given = { ... }
        return function(self, conf)
                work(ms)
                assert(conf == "conf")
                return unpack(given, 1, 3)
        end
end
ngx = { ctx = {}, timer = {}, }
function ngx.timer.at(delay, fn, ...) return fn(false, ...) end
ngx.timer.every = ngx.timer.at
local key_auth = { access = handler(60, 1, nil, 3), log = handler(30), VERSION = "1" }
kong = { db = { plugins = { get_handlers = function() return { { name = "key-auth", handler = key_auth } } end } } }
local limit = { name = "limit-req", rewrite = handler(60), priority = 1 }
package.preload["apisix.plugin"] = function() return { plugins = { limit } } end
o.kong()
o.kong()                                                -- twice is once
o.apisix()
o.timers()
ngx.ctx = { route = { name = "orders", id = "uuid" } }
local a, b, c = key_auth:access "conf"
assert(a == 1 and b == nil and c == 3)
key_auth:log "conf"
ngx.ctx = { api_ctx = { route_id = "7" } }
limit:rewrite "conf"
assert(not coroutine.resume(coroutine.create(limit.rewrite), limit, "other"))   -- an error goes on as it was
ngx.timer.at(0, function(premature, x) work(50) assert(premature == false and x == 5) end, 5)
io.write("recording ", tostring(require "luasample".is_recording()), "\n")
