# 1 is what the application does without sqlock, on the same server at the same
# time: bars go up from it for more, and down for less.
# Without order rows above, with them below: the lines of the data come so.
set terminal svg size 1100,860 font "sans-serif,14" background "#ffffff"
set datafile columnheaders
stats data using 2 nooutput
half = int(STATS_records + STATS_invalid) / 2
set ylabel "multiples of SELECT FOR UPDATE"
set datafile columnheaders
set autoscale yfix
set logscale y
set yrange [*:*]
set ytics add ("1" 1)
set style fill solid 0.9 noborder
set xtics scale 0
set offsets 0.6, 0.6, graph 0.1, graph 0.1
set key below center horizontal Left reverse
set arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 1.5 \
    linecolor rgb "#606060" front
set multiplot layout 2, 1
do for [part = 0:1] {
    set title sprintf("Deductions of one item, %s order rows, as multiples of FOR UPDATE\n{/*0.8 %s}", \
        part ? "with" : "without", server)
    first = part * half
    last = first + half - 1
    plot for [i = 2:columns] data every ::first::last using \
        (middle($0, i)):(1):(left($0, i)):(right($0, i)): \
        (column(i) > 1 ? 1 : column(i)):(column(i) > 1 ? column(i) : 1) \
        with boxxyerror linestyle i - 1 title columnheader(i), \
        data every ::first::last using 0:(NaN):xtic(1) notitle, \
        for [i = 2:columns] data every ::first::last using (middle($0, i)):i: \
        (column(i) > 1 ? text(column(i)) : "") with labels font ",10" \
        offset 0, 0.6 notitle, \
        for [i = 2:columns] data every ::first::last using (middle($0, i)):i: \
        (column(i) > 1 ? "" : text(column(i))) with labels font ",10" \
        offset 0, -0.6 notitle
}
unset multiplot
