# Deductions of one hot item as multiples of FOR UPDATE: a line for each kind of
# callers that ran with and without order rows, first all of those without, then
# all of those with; a column for each way to sell.
[.[].results[] | select(.database == $database)] as $all |
["pessimistic", "optimistic", "conditional", "coalesced" |
 select(. as $way | any($all[]; .case == $way + "+order"))] as $ways |
[("", "+order") as $suffix |
 [$all[] | select(.case == "sale+order") | [.processes, .clients]] | unique[] |
 {$suffix, processes: .[0], clients: .[1]}] as $kinds |
if $ways == [] or ($kinds | length) < 4 then empty else
    ["callers"] + $ways,
    ($kinds[] as $kind |
     ["\($kind.clients) \(if $kind.processes then "process" else "thread" end
        )\(if $kind.clients == 1 then "" elif $kind.processes then "es"
        else "s" end)"] +
     [$ways[] as $way |
      first(($all[] | select(.case == $way + $kind.suffix and
                             .clients == $kind.clients and
                             .processes == $kind.processes) | .ratio), "?")])
end | @tsv
