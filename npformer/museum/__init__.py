"""A museum of real bugs: layers and pairs that are wrong, beside the ones that are right.

::

    from npformer.museum import BUGS, INVARIANTS

    bug = BUGS["LayerNormWithoutGamma"]
    print(bug.doc)                              # who makes it, why it is wrong, what catches it
    layer = bug.build()                         # an ordinary layer, to be put into any model
    npformer.gradcheck(layer, *bug.inputs)      # GradcheckError
    INVARIANTS["gradient_of_layer_norm"](layer) # AssertionError; bug.right() passes

Nothing is patched, and nothing else in the package knows of the museum. Its tests hold each bug to
what its row in `BUGS` says, docs/museum.md shows them all, and whoever writes a layer of their own
can be told by the same invariants whether it has one of these.
"""

from npformer.museum.bug import REFEREES, Bug, Source, referees
from npformer.museum.invariants import INVARIANTS
from npformer.museum.rules import Files
from npformer.museum.table import BUGS, SEEN

__all__ = ["BUGS", "INVARIANTS", "REFEREES", "SEEN", "Bug", "Files", "Source", "referees"]
