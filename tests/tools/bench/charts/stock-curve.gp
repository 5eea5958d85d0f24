# Both scales are logarithmic: who loses nothing to more callers is a level
# line.
set title "Deductions of one item, by callers\n{/*0.8 ".server."}"
set xlabel "callers, threads of one process"
set ylabel "deductions per second"
set logscale x 2
set logscale y
set yrange [10:*]
set format x "%.0f"
set key outside right center Left reverse
plot for [i = 2:columns] data using 1:i with linespoints linestyle i - 1 \
    title columnheader(i)
