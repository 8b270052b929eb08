# SPDX-License-Identifier: MIT
"""Dragoman behind the interfaces of other packages."""
