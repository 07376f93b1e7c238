# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for lightning; see pytorch.py."""
