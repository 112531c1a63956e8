"""Images of a lab with charts that are not there yet, built from a checkout."""

import pathlib

from lib.lab.artifacts import pexes
from lib.lab.images import description, images
from lib.lab.pods import pod_images
from lib.lab.run import progress
from lib.lab.whole import chart_release, parts


def build(lab: parts.Lab, checkout: pathlib.Path, shown: progress.Progress) -> None:
    """Build the images that are missing, as `mooring lab image` does.

    Raises:
        LabError: a part is missing, or a program cannot be packaged.
    """
    folder = pathlib.Path(lab.record.images)
    names = pod_images.missing(folder, chart_release.components(lab))
    if not names:
        return
    programs = sorted({description.read(checkout, name).pex for name in names})
    pexes.bring(lab.where, checkout, checkout / "dist", shown, programs)
    source = images.ImageSource(
        checkout,
        {name: pexes.path(lab.where, name) for name in programs},
        images.commit_of(checkout),
        images.created_of(checkout),
    )
    images.build(lab.where, source, names, folder, shown)
