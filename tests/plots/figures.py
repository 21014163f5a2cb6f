"""What tests of figures share: made-up timings, the texts of a figure, and saving one."""

from types import SimpleNamespace

from matplotlib.figure import Figure


def timing(median):
    return SimpleNamespace(median_ms=median, p20_ms=median * 0.9, p80_ms=median * 1.3)


def texts(figure: Figure) -> list[str]:
    """Every text of a figure that a reader sees."""
    found = [text.get_text() for axes in figure.axes for text in axes.texts]
    found += [axes.get_title(loc="left") for axes in figure.axes]
    found += [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    found += [text.get_text() for legend in legends for text in (*legend.get_texts(), legend.get_title())]
    found.append(figure.get_supxlabel())
    return [text for text in found if text]


def saved(figure: Figure, tmp_path) -> bytes:
    figure.savefig(tmp_path / "figure.png")
    content = (tmp_path / "figure.png").read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) < 120_000
    return content
