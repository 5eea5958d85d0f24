# Pairs of acquire and release, each client with a lock of its own, as multiples
# of two bare UPDATEs: a line for each number of clients, a column for each way.
[.[].results[] | select(.database == $database)] as $all |
[["floor", "UPDATEs against themselves: the noise"], ["pair", "sqlock"],
 ["pooled", "sqlock, default pool"],
 ["redis-always", "Redis, each change flushed"],
 ["redis-everysec", "Redis, flushed once a second"]
 | select(.[0] as $way | any($all[]; .case == $way))] as $ways |
if all($all[]; .case != "pair") then empty else
    ["clients"] + [$ways[] | .[1]],
    ([$all[] | select(.case == "pair") | [.processes, .clients]] | unique[] |
     . as [$processes, $count] |
     ["\($count)\(if $processes then " processes" else "" end)"] +
     [$ways[] | .[0] as $way |
      first(($all[] | select(.case == $way and .clients == $count and
                             .processes == $processes) | .ratio), "?")])
end | @tsv
