# 1 is two UPDATEs, each committed, on the same server at the same time: bars go
# up from it for more, and down for less.
set title "Acquire and release, as multiples of two bare UPDATEs\n{/*0.8 ".server."}"
set ylabel "multiples of two UPDATEs"
load charts.'/ratios.gp'
