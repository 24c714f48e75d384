# Solve times against the size, from the records of a run: a colour for each backend.
#
#   bilu-bench run --matrix poisson3d:20,poisson3d:40,poisson3d:60 --backend cpu,cpu-mt -o sizes.csv
#   gnuplot -e "file='sizes.csv'; out='sizes.svg'" scripts/plot.gnuplot
#
# Columns are found by their names, which docs/csv.md describes. Needs gnuplot 5.0 or newer.

if (!exists("file")) { print "give the file: gnuplot -e \"file='records.csv'\" scripts/plot.gnuplot"; exit status 2 }
if (!exists("out")) out = "plot.svg"

set datafile separator comma
set datafile columnheaders
set terminal svg size 720,480 font "sans-serif,12" background rgb "white"
set output out

set logscale xy
set xlabel "unknowns"
set ylabel "time of the solve (s)"
set key left top
set grid linecolor rgb "#D6D6D6"

# Okabe and Ito 2008; a row of another backend is no number and is passed over
backends = "cpu cpu-mt cuda cusparse"
colours = "#0072B2 #56B4E9 #D55E00 #009E73"
of(name, value) = strcol("backend") eq name ? value : NaN

set style data yerrorbars
plot for [i = 1:words(backends)] file \
    using (of(word(backends, i), column("n"))):(column("solve-s")):(column("solve-low-s")):(column("solve-high-s")) \
    linecolor rgb word(colours, i) linewidth 1.5 pointtype 5 + i pointsize 0.7 title word(backends, i)
