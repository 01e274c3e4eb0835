-- Writes and reads JSON: json.lua [ROUNDS]. String building, pattern matching, recursion.
local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t" }

local encode
local function encode_string(s) return '"' .. s:gsub('[%c"\\]', escapes) .. '"' end
local function encode_array(a, out)
        out[#out + 1] = "["
        for i, v in ipairs(a) do
                if i > 1 then out[#out + 1] = "," end
                encode(v, out)
        end
        out[#out + 1] = "]"
end
local function encode_object(o, out)
        local keys = {}
        for k in pairs(o) do keys[#keys + 1] = k end
        table.sort(keys)
        out[#out + 1] = "{"
        for i, k in ipairs(keys) do
                if i > 1 then out[#out + 1] = "," end
                out[#out + 1] = encode_string(k) .. ":"
                encode(o[k], out)
        end
        out[#out + 1] = "}"
end
function encode(v, out)
        local t = type(v)
        if t == "table" then
                if #v > 0 then encode_array(v, out) else encode_object(v, out) end
        elseif t == "string" then
                out[#out + 1] = encode_string(v)
        else
                out[#out + 1] = tostring(v)
        end
end

local decode
local back = { n = "\n", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }
local function skip(s, i) return (s:find("%S", i)) or #s + 1 end
local function decode_string(s, i)
        local j = i + 1
        while true do
                local k = s:find('["\\]', j)
                if not k then error("string without end at " .. i) end
                if s:byte(k) == 34 then return s:sub(i + 1, k - 1):gsub("\\(.)", back), k + 1 end
                j = k + 2
        end
end
local function decode_number(s, i)
        local _, j = s:find("^-?%d+%.?%d*[eE]?[-+]?%d*", i)
        return tonumber(s:sub(i, j)), j + 1
end
local function decode_array(s, i)
        local out = {}
        i = skip(s, i + 1)
        if s:sub(i, i) == "]" then return out, i + 1 end
        while true do
                local v
                v, i = decode(s, i)
                out[#out + 1] = v
                i = skip(s, i)
                local c = s:sub(i, i)
                if c == "]" then return out, i + 1 end
                if c ~= "," then error("no comma at " .. i) end
                i = skip(s, i + 1)
        end
end
local function decode_object(s, i)
        local out = {}
        i = skip(s, i + 1)
        if s:sub(i, i) == "}" then return out, i + 1 end
        while true do
                local k, v
                k, i = decode_string(s, i)
                i = skip(s, i)
                v, i = decode(s, skip(s, i + 1))
                out[k] = v
                i = skip(s, i)
                local c = s:sub(i, i)
                if c == "}" then return out, i + 1 end
                if c ~= "," then error("no comma at " .. i) end
                i = skip(s, i + 1)
        end
end
function decode(s, i)
        local c = s:sub(i, i)
        if c == "{" then return decode_object(s, i) end
        if c == "[" then return decode_array(s, i) end
        if c == '"' then return decode_string(s, i) end
        if s:sub(i, i + 3) == "true" then return true, i + 4 end
        if s:sub(i, i + 4) == "false" then return false, i + 5 end
        return decode_number(s, i)
end

local people = {}
for i = 1, 200 do
        people[i] = { name = 'person "' .. i .. '"', age = i % 90, tags = { "a" .. i, "b\n" .. i * 7, "c" },
                      address = { street = "street " .. i, number = i * 3.5, active = i % 2 == 0 } }
end
local text
for round = 1, tonumber(arg[1] or 300) do
        local out = {}
        encode(people, out)
        text = table.concat(out)
        people = decode(text, 1)
end
print("bytes", #text)
