# 1 is what the application does without sqlock, on the same server at the same
# time: bars go up from it for more, and down for less.
set title "Deductions of one item, as multiples of FOR UPDATE\n{/*0.8 ".server."}"
set ylabel "multiples of SELECT FOR UPDATE"
load charts.'/ratios.gp'
