"""The parts of maskloom_capture.py: what a call of attention holds, its exact statistics, and the file that grows meanwhile."""
