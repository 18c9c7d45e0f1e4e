// SPDX-License-Identifier: GPL-2.0
/* A plot of a search: three panels above each other, with the levels as common axis. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "plot.h"

/* Sizes of the picture and of a panel, in pixels */
#define WIDTH		800
#define PANEL		180	/* height */
#define GAP		30	/* between panels */
#define LEFT		90	/* space for names and numbers */
#define RIGHT		20
#define TOP		40
#define BOTTOM		50
#define HEIGHT		(TOP + PANELS * PANEL + (PANELS - 1) * GAP + BOTTOM)
#define MOST_MARKS	60	/* points that are drawn as dots, too */

/* A value of a point, and its axis */
struct series {
	const char *name, *colour;
	size_t offset;		/* in struct plot_point */
	bool logarithm;
};

static const struct series panels[] = {
	{ "states", "#1b6ca8", offsetof(struct plot_point, states), true },
	{ "BDD nodes", "#b3541e", offsetof(struct plot_point, nodes), false },
	{ "time in s", "#3c7a3c", offsetof(struct plot_point, seconds), false },
};

#define PANELS	(sizeof(panels) / sizeof(panels[0]))

static const struct series levels = { "level", NULL, offsetof(struct plot_point, level), false };

/* The range of an axis, the distance of its marks, and where it is in the picture */
struct axis {
	double least, most, step;
	double from, to;	/* pixels of least and most */
};

static double value(const struct plot_point *point, const struct series *series)
{
	return *(const double *)((const char *)point + series->offset);
}

/* The smallest of 1, 2 and 5 times a power of ten that makes at most six steps of the range */
static double nice_step(double range)
{
	double step = pow(10, floor(log10(range / 6)));

	if (range / step > 30)
		return 10 * step;
	return range / step > 12 ? 5 * step : range / step > 6 ? 2 * step : step;
}

static struct axis make_axis(const struct plot *plot, const struct series *series, double from,
			     double to)
{
	struct axis axis = { .least = 0, .most = 0, .from = from, .to = to };
	unsigned int i;

	for (i = 0; i < plot->count; i++)
		axis.most = fmax(axis.most, value(&plot->point[i], series));
	if (!(axis.most > 0))
		axis.most = 1;
	axis.step = nice_step(axis.most);
	if (series->logarithm || series == &levels)
		axis.step = fmax(1, ceil(axis.step));
	if (series != &levels)
		axis.most = ceil(axis.most / axis.step) * axis.step;
	return axis;
}

static double place(const struct axis *axis, double value)
{
	return axis->from + (axis->to - axis->from) * (value - axis->least) /
			    (axis->most - axis->least);
}

/* The number at a mark of an axis */
static void draw_number(FILE *file, const struct series *series, double number)
{
	static const struct {
		double unit;
		const char *suffix;
	} units[] = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } };
	unsigned int i;

	if (series->logarithm) {
		fprintf(file, "10<tspan dy=\"-5\" font-size=\"9\">%.0f</tspan>", number);
		return;
	}
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (number >= units[i].unit) {
			fprintf(file, "%g%s", number / units[i].unit, units[i].suffix);
			return;
		}
	}
	fprintf(file, "%g", number);
}

/* Lines and numbers at the marks of both axes */
static void draw_marks(FILE *file, const struct axis *x, const struct axis *y,
		       const struct series *series, bool lowest)
{
	unsigned int i;
	double at;

	for (i = 0; i * y->step <= y->most * 1.0001; i++) {
		at = place(y, i * y->step);
		fprintf(file, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>", LEFT, at,
			WIDTH - RIGHT);
		fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 6, at + 4);
		draw_number(file, series, i * y->step);
		fprintf(file, "</text>\n");
	}
	for (i = 0; i * x->step <= x->most; i++) {
		at = place(x, i * x->step);
		fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/>", at, y->to, y->from);
		if (!lowest)
			continue;
		fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", at,
			y->from + 16);
		draw_number(file, &levels, i * x->step);
		fprintf(file, "</text>\n");
	}
}

static void draw_panel(FILE *file, const struct plot *plot, unsigned int index)
{
	const struct series *series = &panels[index];
	double top = TOP + index * (PANEL + GAP);
	struct axis x = make_axis(plot, &levels, LEFT, WIDTH - RIGHT);
	struct axis y = make_axis(plot, series, top + PANEL, top);
	const struct plot_point *p;
	unsigned int i;
	bool begins;	/* a line: the search of another order goes on at its level */

	draw_marks(file, &x, &y, series, index == PANELS - 1);
	fprintf(file, "<rect x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#333\"/>\n",
		LEFT, top, WIDTH - RIGHT - LEFT, PANEL);
	fprintf(file, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"middle\" transform=\"rotate(-90 %d %.0f)\">%s</text>\n",
		20, top + PANEL / 2, 20, top + PANEL / 2, series->name);
	fprintf(file, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"M%d %.1f",
		series->colour, LEFT, y.from);
	for (i = 0; i < plot->count; i++) {
		p = &plot->point[i];
		begins = i == 0 || p->level <= p[-1].level;
		fprintf(file, "%s%.1f %.1f", begins ? "M" : "L", place(&x, p->level),
			place(&y, value(p, series)));
	}
	fprintf(file, "\"/>\n");
	for (i = 0; i < plot->count && plot->count <= MOST_MARKS; i++) {
		p = &plot->point[i];
		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"%s\"/>\n",
			place(&x, p->level), place(&y, value(p, series)), series->colour);
	}
}

/* Text between tags; bytes that are not printable ASCII become question marks. */
static void draw_text(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", file);
		else if (*text == '<')
			fputs("&lt;", file);
		else if (*text == '>')
			fputs("&gt;", file);
		else
			fputc(*text >= ' ' && *text <= '~' ? *text : '?', file);
	}
}

static void draw(FILE *file, const struct plot *plot, const char *title)
{
	unsigned int i;

	fprintf(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" ",
		WIDTH, (int)HEIGHT);
	fprintf(file, "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n",
		WIDTH, (int)HEIGHT);
	fprintf(file, "<title>");
	draw_text(file, title);
	fprintf(file, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", WIDTH,
		(int)HEIGHT);
	fprintf(file, "<text x=\"%d\" y=\"24\" font-size=\"14\">", LEFT);
	draw_text(file, title);
	fprintf(file, "</text>\n");
	for (i = 0; i < PANELS; i++)
		draw_panel(file, plot, i);
	fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">level</text>\n</svg>\n",
		(LEFT + WIDTH - RIGHT) / 2, (int)HEIGHT - 12);
}

static void store(struct plot_point *point, uint64_t level, const mpz_t states, uint64_t nodes,
		  double seconds)
{
	double fraction;
	long exponent;

	fraction = mpz_get_d_2exp(&exponent, states);
	*point = (struct plot_point){
		.level = level, .nodes = nodes, .seconds = seconds,
		.states = fraction > 0 ? log10(fraction) + exponent * log10(2) : 0,
	};
}

void plot_add(struct plot *plot, uint64_t level, const mpz_t states, uint64_t nodes,
	      double seconds)
{
	unsigned int i;

	if (!plot->stride)
		plot->stride = 1;
	if (plot->seen++ % plot->stride)
		return;
	if (plot->count == PLOT_POINTS) {
		for (i = 0; i < PLOT_POINTS / 2; i++)
			plot->point[i] = plot->point[2 * i];
		plot->count = PLOT_POINTS / 2;
		plot->stride *= 2;
	}
	store(&plot->point[plot->count++], level, states, nodes, seconds);
}

void plot_end(struct plot *plot, uint64_t level, const mpz_t states, uint64_t nodes,
	      double seconds)
{
	if (plot->count && (plot->count == PLOT_POINTS ||
			    plot->point[plot->count - 1].level >= level))
		plot->count--;
	store(&plot->point[plot->count++], level, states, nodes, seconds);
}

int plot_write(const struct plot *plot, const char *path, const char *title)
{
	FILE *file = fopen(path, "we");
	int ret = 0;

	if (!file)
		return -errno;
	errno = 0;
	draw(file, plot, title);
	if (fflush(file) || ferror(file))
		ret = errno ? -errno : -EIO;
	if (fclose(file) && !ret)
		ret = -errno;
	return ret;
}
