-- Finalizers of userdata and of FFI objects are functions of their own on the stack, not time of the code that a
-- collection comes upon; also those that run while the VM closes.
package.path = arg[0]:match("^(.*/)") .. "?.lua;" .. package.path
local truth = require "truth"
local ffi = require "ffi"
local now, charge, vary = truth.now, truth.charge, truth.vary
local in_finalizers = 0

local function work(n)
        local x = 0
        for i = 1, n do x = x + i % 7 end
        return x
end
local function finalize_udata()
        local t = now()
        work(vary(300000))
        t = now() - t
        in_finalizers = in_finalizers + t
        charge(truth.total(finalize_udata), t)
end
local function finalize_cdata()
        local t = now()
        work(vary(600000))
        t = now() - t
        in_finalizers = in_finalizers + t
        charge(truth.total(finalize_cdata), t)
end
local function at_close()
        local t = now()
        work(vary(4e7))
        charge(truth.total(at_close), now() - t)
        truth.done()
end
local function collect()
        collectgarbage("collect")
end
local function proxy(finalizer)
        local p = newproxy(true)
        getmetatable(p).__gc = finalizer
        return p
end

while truth.more() do
        for i = 1, 3 do proxy(finalize_udata) end
        ffi.gc(ffi.new("int[2]"), finalize_cdata)
        local t, before = now(), in_finalizers
        collect()
        charge("leaf collectgarbage", now() - t - (in_finalizers - before))
        t = now()
        work(vary(400000))
        charge("tlines 50-50", now() - t)
end
kept_udata = proxy(at_close)
kept_cdata = ffi.gc(ffi.new("int[2]"), at_close)
