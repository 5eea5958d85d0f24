# Held for 0.1 ms each time; a turn counts that goes to another client.
set title "One lock, many clients: turns a second\n{/*0.8 ".server."}"
set ylabel "turns of another client a second"
set logscale y
set xrange [-0.6:*]
set yrange [1:*]
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set key top right
set xtics scale 0
kinds = columns - 1
# Where the label of bar @i of a line is; the first line is the head.
place(line, i) = line < 1 ? NaN : \
    line - 1 + (i - 2 - (kinds - 1) / 2.0) / (kinds + 1)
plot for [i = 2:columns] data using i:xtic(1) linestyle i - 1 \
    title columnheader(i), \
    for [i = 2:columns] data using (place($0, i)):i:(sprintf("%.0f", column(i))) \
    with labels font ",10" offset 0, 0.5 notitle
