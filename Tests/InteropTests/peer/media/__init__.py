"""Media (section 13).

Formats are in `streams`, `rtp`, `vp8`, `rtcp` and `files`; the rest sends and receives.
"""
