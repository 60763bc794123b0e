---@meta
-- brim._meta: what C gives Lua, declared for editors, for help() and for the manual, a file for one
-- object or two. No code runs; help.lua reads the list below. Sizes are bytes, as integers or as
-- texts like "8191p". A local stands for a handle's class; its name is that of the C metatable.

require "brim._meta.core"
require "brim._meta.device"
require "brim._meta.drive"
require "brim._meta.edit"
require "brim._meta.fill"
require "brim._meta.layout"
require "brim._meta.plan"
require "brim._meta.run"
require "brim._meta.walk"
require "brim._meta.workload"
