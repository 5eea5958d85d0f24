# Bars in groups around 1: up from it for more, down for less.
set datafile columnheaders
set autoscale yfix
set logscale y
set yrange [*:*]
set ytics add ("1" 1)
set style fill solid 0.9 noborder
set xtics scale 0
set offsets 0.6, 0.6, graph 0.08, graph 0.08
set key below center horizontal Left reverse maxcols 2
set arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 1.5 \
    linecolor rgb "#606060" front
plot for [i = 2:columns] data using \
    (middle($0, i)):(1):(left($0, i)):(right($0, i)): \
    (column(i) > 1 ? 1 : column(i)):(column(i) > 1 ? column(i) : 1) \
    with boxxyerror linestyle i - 1 title columnheader(i), \
    data using 0:(NaN):xtic(1) notitle, \
    for [i = 2:columns] data using (middle($0, i)):i: \
    (column(i) > 1 ? text(column(i)) : "") with labels font ",10" \
    offset 0, 0.6 notitle, \
    for [i = 2:columns] data using (middle($0, i)):i: \
    (column(i) > 1 ? "" : text(column(i))) with labels font ",10" \
    offset 0, -0.6 notitle
