---@meta
-- brim._meta.edit: line editing, as C gives them to Lua.

local core = {}

---Begin line editing on the terminal. Options: history_path, prompt, and complete(line) -> list of
---texts, the byte where what they replace begins. Nil and an error where there is no terminal or
---no libedit.
---@param o? table
---@return userdata? edit
---@return brim.Error? err
function core.edit_open(o) end

---A line editor with history and completion.
local edit = {}

---Read a line: without its end, nil at the end of input, "" and "interrupted" after Ctrl-C.
---@param prompt? string
---@return string? line
---@return string? interrupted
function edit:readline(prompt) end

---Remember a line, in the history file at once.
---@param line string
---@return true
function edit:add_history(line) end

---Give the terminal back; any number of times.
---@return true
function edit:close() end
