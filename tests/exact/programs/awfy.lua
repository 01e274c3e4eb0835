-- One benchmark of are-we-fast-yet, NAME=SIZE, without its harness, which prints times.
local name, size = arg[1]:match("^(%w+)=(%d+)$")
assert(require(name):inner_benchmark_loop(tonumber(size)), "wrong result")
print(name)
