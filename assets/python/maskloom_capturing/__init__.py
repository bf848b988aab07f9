# SPDX-License-Identifier: MIT
"""The parts of maskloom_capture.py: the arguments of a call of attention, its exact statistics, and the growing file."""
