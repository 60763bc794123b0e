-- serve: a target, with an overlay if there is one, as a network block device at a unix socket.
local brim = require "brim"
local serve = require "brim.serve"

return brim.recipe {
  name = "serve",
  doc = "Serve an image, a file or a device at a unix socket (nbdkit), with an overlay over it.",
  details = "Runs in the foreground until Ctrl-C. An overlay takes what is written, the target\n"
    .. "stays as it is; without one an image is read-only.",
  args = {
    { "target", type = "path", required = true, doc = "an image, a file or a device" },
    { "--socket", type = "path", required = true, doc = "path of the unix socket to be made" },
    { "--overlay", type = "path", doc = "file that takes what is written; made when missing" },
    { "--readonly", type = "bool", doc = "nothing is written" },
    { "--socket-mode", type = "string", default = "0600", doc = "who may connect, octal" },
  },
  run = function(a, ctx)
    if ctx.dry_run then
      local look, err = serve.look(a.target, { readonly = true })
      return look and { text = ("would serve %s (%s)"):format(look.target,
        brim.bytes.format(look.size_bytes)) }, err
    end
    return serve.run(a.target, { socket = a.socket, overlay = a.overlay, readonly = a.readonly,
      socket_mode = a.socket_mode,
      ready = function(look, socket)
        ctx.log("serving %s (%s%s) at nbd+unix:///?socket=%s", look.target,
          brim.bytes.format(look.size_bytes), look.readonly and ", read-only" or "", socket)
      end })
  end,
}
