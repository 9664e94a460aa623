"""The demo: landing zones over three regions, contention beside them, and what can go wrong.

`work` is what there is to do, `drill` what goes wrong meanwhile: a frozen worker, a lost region, a
region that is cut off. `report` holds what came of it against what is promised; every figure is
measured, and one that is not as it should be is named and ends the demo with exit code 1.
"""
