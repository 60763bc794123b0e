-- Prints the generations of XFS tools that are here, the oldest first: VERSION MKFS REPAIR on a
-- line each. Called by clean.sh and run.
package.path = "./?.lua;" .. package.path
for _, o in ipairs(require("spec.oracles").xfs()) do
  print(("%s %s %s"):format(o.version, o.mkfs, o.repair))
end
