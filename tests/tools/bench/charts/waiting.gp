# Held for 0.1 ms each time; a turn counts that goes to another client.
set title "One lock, many clients: how often a second it goes to another\n{/*0.8 ".server."}"
set ylabel "turns of another client a second"
set datafile columnheaders
set logscale y
set yrange [1:*]
set autoscale yfixmax
set offsets 0.6, 0.6, graph 0.08, 0
set style fill solid 0.9 noborder
set key below center horizontal Left reverse
set xtics scale 0
plot for [i = 2:columns] data using \
    (middle($0, i)):(1):(left($0, i)):(right($0, i)):(1):i \
    with boxxyerror linestyle i title columnheader(i), \
    data using 0:(NaN):xtic(1) notitle, \
    for [i = 2:columns] data using (middle($0, i)):i: \
    (sprintf("%.0f", column(i))) with labels font ",11" offset 0, 0.6 notitle
