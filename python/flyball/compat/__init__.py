# SPDX-License-Identifier: Apache-2.0
"""Interfaces that other projects' users know, over Flyball."""
