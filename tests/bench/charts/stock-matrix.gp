# 1 is what the application does without sqlock, on the same server at the same
# time.
set terminal svg size 1300,520 font "sans-serif,14" background "#ffffff"
set title "Deductions of one item, as multiples of FOR UPDATE\n{/*0.8 ".server."}"
set xlabel "callers: threads of one process, or processes; with order rows"
set ylabel "multiples of SELECT FOR UPDATE"
set logscale y
set xrange [-0.6:*]
set yrange [0.01:*]
set ytics add ("1" 1)
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set key outside right center Left reverse
set xtics scale 0
set arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 1.5 \
    linecolor rgb "#000000" front
ways = columns - 1
# Where the label of bar @i of a line is; the first line is the head.
place(line, i) = line < 1 ? NaN : \
    line - 1 + (i - 2 - (ways - 1) / 2.0) / (ways + 1)
plot for [i = 2:columns] data using i:xtic(1) linestyle i - 1 \
    title columnheader(i), \
    for [i = 2:columns] data using (place($0, i)):i: \
    (sprintf(column(i) < 9.95 ? "%.1f" : "%.0f", column(i))) \
    with labels font ",8" offset 0, 0.5 notitle
