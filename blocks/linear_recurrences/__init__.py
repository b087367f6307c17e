"""Mixers of a sequence whose state is of one size and linear in itself: selective scan, linear attention, gated delta rule, and
decaying sums and averages of channels.
"""
