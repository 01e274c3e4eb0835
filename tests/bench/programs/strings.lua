-- Words counted in a text that is made, cut, joined and replaced: strings.lua [ROUNDS]. Strings and hashing.
local syllables = { "ka", "lo", "mi", "ne", "ru", "sha", "to", "vi", "wen", "zu" }
local seed = 42
local function random(n)
        seed = (seed * 1103515245 + 12345) % 2147483648
        return math.floor(seed / 65536) % n + 1
end

local function make_word()
        local w = {}
        for i = 1, random(4) do w[i] = syllables[random(#syllables)] end
        return table.concat(w)
end

local function make_text(words)
        local t = {}
        for i = 1, words do t[i] = make_word() end
        return table.concat(t, " ")
end

local function count_words(text)
        local counts = {}
        for w in text:gmatch("%a+") do counts[w] = (counts[w] or 0) + 1 end
        return counts
end

local function top(counts, n)
        local list = {}
        for w, c in pairs(counts) do list[#list + 1] = { w, c } end
        table.sort(list, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
        local out = {}
        for i = 1, math.min(n, #list) do out[i] = ("%s=%d"):format(list[i][1], list[i][2]) end
        return table.concat(out, " ")
end

local function rewrite(text)
        return (text:gsub("%a+", function(w) return #w > 6 and w:upper() or w:reverse() end))
end

local line
for i = 1, tonumber(arg[1] or 60) do
        local text = make_text(20000)
        line = top(count_words(rewrite(text)), 5)
end
print(line)
