The prompt takes expressions and statements from a pipe, too, and shows values to people.

  $ printf '%s\n' '1 + 1' '"a", nil, 2.5' 'brim.PiB * 8191' | brim repl
  2
  "a"
  nil
  2.5
  9222246136947933184

Tables are sorted, sizes have units.

  $ echo '{ size_bytes = 8191 << 50, b = { 1, 2, { 3 } }, a = "x", wait_ns = 1500000 }' | brim repl
  {
    a = "x",
    b = { 1, 2, { 3 } },
    size_bytes = 9222246136947933184 (8191 PiB),
    wait_ns = 1500000 (1.5 ms)
  }
  $ printf '%s\n' 't = {}; t.t = t' 't' | brim repl
  { t = <cycle> }

Input may take several lines; a local lives on.

  $ printf '%s\n' 'local n = 0' 'for i = 1, 3 do' '  n = n + i' 'end' 'n' '=n * 2' | brim repl
  6
  12

Errors are one line, and the rest still runs; the status tells.

  $ printf '%s\n' 'error("boo")' 'x.y' 'for' '7' | brim repl
  error: boo
  error: attempt to index a nil value (global 'x')
  error: <name> expected near '7'
  [1]
  $ printf 'for i = 1, 2 do\n' | brim repl
  error: the input ends too early
  [1]
  $ printf 'return nil, brim.error.new { message = "no" }\n' | brim repl
  error: no

print shows tables, help explains.

  $ printf '%s\n' 'print({ 1, 2 }, "x")' 'help(brim.bytes.parse)' | brim repl
  { 1, 2 }	x
  brim.bytes.parse(text)
  
  Parse the text of a size; raises for anything that is none.
  @param text string
  @return integer n_bytes
