# Deductions per second of one hot item: a line for each number of threads, a
# column for each way to sell that ran with three of them at least.
[.[].results[] | select(.database == $database and (.processes | not))] as $all |
[["sale", "FOR UPDATE, no sqlock"], ["pessimistic", "pessimistic"],
 ["optimistic", "optimistic"], ["conditional", "conditional"],
 ["coalesced", "coalesced"]
 | . as [$case, $title] |
 {$case, $title,
  counts: [$all[] | select(.case == $case) | .clients] | unique} |
 select(.counts | length >= 3)] as $ways |
if $ways == [] then empty else
    ["callers"] + [$ways[].title],
    ([$ways[].counts[]] | unique[] as $count |
     [$count] + [$ways[].case as $case |
      first(($all[] | select(.clients == $count and .case == $case) |
             .ops_per_s), "?")])
end | @tsv
