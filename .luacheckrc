std = "lua54"
max_line_length = 100
include_files = {
  "lua/**/*.lua", "scripts/*.lua", "spec/**/*.lua", "examples/*.lua", "*.rockspec", ".luacheckrc",
}
exclude_files = { "build" }
files["spec"] = { std = "+busted" }
files["spec/**/*_spec.lua"] = { std = "+busted" }
-- Declarations without bodies: the arguments are the documentation.
files["lua/brim/_meta"] = { unused_args = false, ignore = { "211", "241" } }
files["*.rockspec"] = { std = "+rockspec" }
