"""Scans relieved of what need not be done step by step."""
