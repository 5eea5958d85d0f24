# The common style of all charts.  `data`, `columns` and `server` are set by
# chart.sh; the colours can be told apart by the colour-blind, and from a light
# and a dark ground.
set terminal svg size 900,520 font "sans-serif,14" background "#ffffff"
set datafile separator tab
set datafile missing "?"
set border 3 linecolor rgb "#606060"
set tics nomirror
set grid ytics linecolor rgb "#d8d8d8" linewidth 1
set style line 1 linecolor rgb "#808080" linewidth 2.5 pointtype 7 pointsize 0.6
set style line 2 linecolor rgb "#e69f00" linewidth 2.5 pointtype 5 pointsize 0.6
set style line 3 linecolor rgb "#56b4e9" linewidth 2.5 pointtype 9 pointsize 0.7
set style line 4 linecolor rgb "#009e73" linewidth 2.5 pointtype 11 pointsize 0.7
set style line 5 linecolor rgb "#cc79a7" linewidth 2.5 pointtype 13 pointsize 0.7
set style line 6 linecolor rgb "#0072b2" linewidth 2.5 pointtype 4 pointsize 0.6
set style line 7 linecolor rgb "#d55e00" linewidth 2.5 pointtype 6 pointsize 0.6
# Bars in groups: one for each line of the data, in it a bar for each column from
# the second on.  How wide a bar is, where it stands, and its value.
bar = 0.85 / (columns - 1)
middle(line, i) = line + (i - 2 - (columns - 2) / 2.0) * bar
left(line, i) = middle(line, i) - 0.46 * bar
right(line, i) = middle(line, i) + 0.46 * bar
text(value) = sprintf(value < 9.95 ? "%.1f" : "%.0f", value)
