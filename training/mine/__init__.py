# SPDX-License-Identifier: MIT
"""Parallel text from what Debian holds: `python3 -m mine --help`, README.md beside this file."""
