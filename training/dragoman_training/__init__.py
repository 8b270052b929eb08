# SPDX-License-Identifier: MIT
"""Training recipes of Dragoman: gradient descent and what feeds it. Everything else is C."""
