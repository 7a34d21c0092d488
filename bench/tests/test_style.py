"""Each rule of plots is kept by what style.py draws, and found broken where a figure breaks it."""

import os
import tempfile
import unittest

from report import rules, style

COST = style.Quantity("CPU per command", "µs")
HOSTS = style.Quantity("hosts", style.NUMBER)


def value(median):
    return style.Value(median, 0.9 * median, 1.1 * median)


def bars(rows=2, series=("sluice", "tgt"), quantity=COST, **more):
    return style.Bars("", quantity, tuple(f"row {i}" for i in range(rows)), {s: tuple(value(i + 1) for i in range(rows)) for s in series}, **more)


def lines(series=("sluice", "tgt"), x=HOSTS, y=COST, **more):
    return style.Lines("", x, y, {s: tuple((x, value(x + i)) for x in (1, 2, 4)) for i, s in enumerate(series)}, **more)


@unittest.skipUnless(style.possible(), "matplotlib is not installed (.ci/deps plots)")
class RulesTest(unittest.TestCase):
    def broken(self, figure, words):
        self.assertTrue([p for p in rules.problems(figure) if words in p], f"{words}: {rules.problems(figure)}")

    def test_bars_and_lines_in_one_or_many_panels_keep_every_rule(self):
        for panels in ([bars()], [bars(14, ("sluice",))], [bars(bound=style.Bound(9, "aim"))], [bars(), bars(3)], [lines()],
                       [lines(log_x=True)] * 3, [lines(bound=style.Bound(99, "aim"))], [lines(tuple("abcdef"))] * 2,
                       [lines(y=style.Quantity("switches", style.NUMBER))]):  # fmt: skip
            for shared in (True, False):
                with self.subTest(panels=panels, shared=shared):
                    self.assertEqual(rules.problems(style.draw("Cost", panels, shared=shared)), [])

    def test_a_long_title_is_wrapped_and_one_that_is_cut_is_found(self):
        figure = style.draw("A very long title. " * 12, [bars()])
        self.assertEqual(rules.problems(figure), [])
        figure.suptitle("A very long title. " * 12)
        self.broken(figure, "does not fit into the figure")

    def test_a_figure_without_a_title_is_found(self):
        self.broken(style.draw("", [bars()]), "no title")

    def test_a_seventh_series_is_found(self):
        self.broken(style.draw("Cost", [lines(tuple("abcdefg"))]), "7 series")
        self.broken(style.draw("Cost", [bars(1, tuple("abcdefg"))]), "7 series")

    def test_a_fifteenth_row_of_bars_is_found(self):
        self.broken(style.draw("Cost", [bars(15, ("sluice",))]), "15 rows")

    def test_a_legend_and_a_series_without_a_direct_label_are_found(self):
        for panel in (bars(), lines()):
            figure = style.draw("Cost", [panel])
            figure.axes[0].legend()
            self.broken(figure, "legend")
            for text in list(figure.axes[0].texts):
                text.remove()
            self.broken(figure, "the series tgt has no direct label")

    def test_values_that_do_not_start_at_zero_or_are_not_linear_are_found(self):
        for panel, which in ((bars(), "x"), (lines(), "y")):
            figure = style.draw("Cost", [panel])
            getattr(figure.axes[0], f"set_{which}lim")(0.5, 9)
            self.broken(figure, f"the values of the {which} axis do not start at 0")
            getattr(figure.axes[0], f"set_{which}scale")("log")
            self.broken(figure, f"the values of the {which} axis are not linear")

    def test_panels_of_one_scale_show_all_values_and_values_beyond_an_axis_are_found(self):
        large, small = lines(("large",)), lines(("small",))
        large = style.Lines("", large.x, large.y, {"large": ((1, style.Value(50, 40, 90)), (2, value(50)))})
        for order in ([large, small], [small, large]):
            self.assertEqual(rules.problems(style.draw("Cost", order)), [])
        for panel, which in ((bars(), "x"), (lines(), "y")):
            figure = style.draw("Cost", [panel])
            getattr(figure.axes[0], f"set_{which}lim")(0, 2)
            self.broken(figure, f"values are beyond the end of the {which} axis")

    def test_an_axis_without_a_unit_is_found(self):
        figure = style.draw("Cost", [lines()])
        figure.axes[0].set_ylabel("CPU per command")
        self.broken(figure, "the y axis has no label with a unit")
        figure.axes[0].set_xlabel("")
        self.broken(figure, "the x axis has no label with a unit")

    def test_fractions_of_what_is_counted_are_found(self):
        figure = style.draw("Hosts", [lines()])
        figure.axes[0].xaxis.set_major_locator(_locator(0.25))
        self.broken(figure, "a tick that is no integer")

    def test_labels_that_overlap_are_found(self):
        figure = style.draw("Cost", [lines()])
        for text in figure.axes[0].texts:
            text.xyann = (5, 0)
            text.xy = (4, 4)
        self.broken(figure, "overlap")


def _locator(step):
    from matplotlib import ticker

    return ticker.MultipleLocator(step)


@unittest.skipUnless(style.possible(), "matplotlib is not installed (.ci/deps plots)")
class SaveTest(unittest.TestCase):
    def test_the_same_figure_is_the_same_small_file_with_text_as_text(self):
        with tempfile.TemporaryDirectory() as directory:
            texts = []
            for name in ("a.svg", "b.svg"):
                path = os.path.join(directory, name)
                style.save(style.draw("Cost of a command", [bars(14)]), path)
                self.assertEqual(rules.problems_of_file(path), [])
                with open(path) as f:
                    texts.append(f.read())
        self.assertEqual(*texts)
        self.assertIn(">Cost of a command</text>", texts[0])
        self.assertNotIn("<dc:date>", texts[0])

    def test_a_large_file_is_found(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("x" * (rules.MOST_BYTES + 1))
            f.flush()
            self.assertEqual(len(rules.problems_of_file(f.name)), 1)


class TextTest(unittest.TestCase):
    def test_three_digits_count(self):
        for number, text in ((0, "0"), (0.0123, "0.012"), (0.5, "0.50"), (12.34, "12.3"), (1234.5, "1,234")):
            self.assertEqual(style.digits(number), text)

    def test_ticks_of_a_logarithmic_axis_keep_a_distance(self):
        self.assertEqual([x for x, _ in style.log_ticks([1, 16, 128, 1024, 2048, 4096], str)], [1, 16, 128, 1024])


if __name__ == "__main__":
    unittest.main()
