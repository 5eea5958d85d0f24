# How often a second a lock goes to another client: a line for each way to wait,
# a column for threads and one for processes, at the greatest number of each.
[.[].results[] | select(.database == $database and .turns_per_s > 0)] as $all |
def most($processes):
    [$all[] | select(.processes == $processes) | .clients] | max;
def turns($way; $processes; $count):
    first(($all[] | select(.case == $way and .clients == $count and
                           .processes == $processes) | .turns_per_s), "?");
[["row-queue", "row lock, FOR UPDATE"], ["handoff", "sqlock"],
 ["poller", "polling, 100 ms"], ["thread-queue", "thread mutex, UPDATE"]
 | select(.[0] as $way | any($all[]; .case == $way))] as $ways |
[[false, "threads"], [true, "processes"] | . as [$processes, $word] |
 most($processes) as $count | select($count != null) |
 {$processes, $count, title: "\($count) \($word)"}] as $kinds |
if $kinds == [] then empty else
    ["way"] + [$kinds[].title],
    ($ways[] as [$way, $title] |
     [$title] + [$kinds[] | turns($way; .processes; .count)])
end | @tsv
