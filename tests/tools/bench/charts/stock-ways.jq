# Deductions of one hot item as multiples of FOR UPDATE: a line for each way to
# sell, a column for each kind of callers, with and without order rows.  Taken
# at the greatest numbers of threads and of processes that all ways ran with.
[.[].results[] | select(.database == $database)] as $all |
def ratio($way; $suffix; $processes; $count):
    first(($all[] | select(.case == $way + $suffix and .clients == $count and
                           .processes == $processes) | .ratio), "?");
["pessimistic", "optimistic", "conditional",
 "coalesced" | select(. as $way | any($all[]; .case == $way))] as $ways |
def most($processes):
    [$all[] | select(.processes == $processes)] as $these |
    [$these[].clients] | unique | map(select(. as $count |
     all($ways[]; . as $way |
         any($these[]; .case == $way and .clients == $count)))) | max;
[([false, "threads"], [true, "processes"]) as [$processes, $word] |
 most($processes) as $count | select($count != null) |
 ("", "+order") as $suffix |
 select(any($all[]; .case == "sale" + $suffix and .clients == $count and
                    .processes == $processes)) |
 {$processes, $count, $suffix, title:
  "\($count) \($word)\(if $suffix == "" then "" else ", with order rows" end)"}
] as $kinds |
if $kinds == [] then empty else
    ["way"] + [$kinds[].title],
    ($ways[] as $way |
     [$way] + [$kinds[] | ratio($way; .suffix; .processes; .count)])
end | @tsv
