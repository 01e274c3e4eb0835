-- A small operating system: tasks with priorities pass packets through queues, in the manner of the Richards
-- benchmark: richards.lua [ROUNDS]. Method calls and tables of objects.
local Task = {}
Task.__index = Task

local IDLE, WORK, HANDLER, DEVICE = 1, 2, 3, 4

local function queue_put(queue, packet)
        packet.link = nil
        if not queue then return packet end
        local p = queue
        while p.link do p = p.link end
        p.link = packet
        return queue
end

local Scheduler = {}
Scheduler.__index = Scheduler

function Scheduler.new()
        return setmetatable({ tasks = {}, order = {}, queued = 0, held = 0 }, Scheduler)
end

function Scheduler:add(task)
        self.tasks[task.id] = task
        table.insert(self.order, task)
        table.sort(self.order, function(a, b) return a.priority > b.priority end)
end

function Scheduler:send(id, packet)
        local task = self.tasks[id]
        self.queued = self.queued + 1
        task.queue = queue_put(task.queue, packet)
        task.waiting = false
end

function Scheduler:pick()
        for _, task in ipairs(self.order) do
                if not task.held and not (task.waiting and not task.queue) then return task end
        end
end

function Scheduler:run()
        while true do
                local task = self:pick()
                if not task then return end
                task:step(self)
        end
end

function Task.new(id, kind, priority, step)
        return setmetatable({ id = id, kind = kind, priority = priority, run = step, waiting = kind ~= IDLE }, Task)
end

function Task:take()
        local p = self.queue
        if p then self.queue = p.link p.link = nil end
        return p
end

function Task:step(scheduler)
        return self.run(self, scheduler)
end

local function idle_step(self, scheduler)
        self.left = self.left - 1
        if self.left == 0 then
                self.held = true
                return
        end
        self.seed = (self.seed * 1103515245 + 12345) % 2147483648
        local target = self.seed % 2 == 0 and 5 or 6
        scheduler:send(target, { kind = "device", data = self.seed })
end

local function work_step(self, scheduler)
        local packet = self:take()
        if not packet then self.waiting = true return end
        self.turn = 7 - (self.turn or 3)
        packet.data = packet.data or {}
        for i = 1, 4 do
                self.letter = (self.letter or 0) % 26 + 1
                packet[i] = self.letter
        end
        packet.hops = (packet.hops or 0) + 1
        if packet.hops < 40 then scheduler:send(self.turn, packet) end
end

local function handler_step(self, scheduler)
        local packet = self:take()
        if not packet then self.waiting = true return end
        self.handled = (self.handled or 0) + 1
        if packet.kind == "work" then
                for i = 1, 4 do packet[i] = (packet[i] or 0) + 1 end
                scheduler:send(2, packet)
        end
end

local function device_step(self, scheduler)
        local packet = self:take()
        if not packet then self.waiting = true return end
        scheduler.held = scheduler.held + 1
        scheduler:send(self.id - 2, packet)
end

local function simulate(count)
        local s = Scheduler.new()
        local idle = Task.new(1, IDLE, 0, idle_step)
        idle.left, idle.seed = count, 1
        s:add(idle)
        s:add(Task.new(2, WORK, 1000, work_step))
        s:add(Task.new(3, HANDLER, 2000, handler_step))
        s:add(Task.new(4, HANDLER, 3000, handler_step))
        s:add(Task.new(5, DEVICE, 4000, device_step))
        s:add(Task.new(6, DEVICE, 5000, device_step))
        for i = 1, 3 do s:send(2, { kind = "work" }) end
        s:run()
        return s.queued, s.held
end

local queued, held
for i = 1, tonumber(arg[1] or 60) do queued, held = simulate(10000) end
print(("queued %d held %d"):format(queued, held))
