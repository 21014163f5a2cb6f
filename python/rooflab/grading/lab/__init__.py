"""A lab: its cells, how its source becomes the notebook that students get, and how their notebook is put in order."""
