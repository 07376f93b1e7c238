# SPDX-License-Identifier: Apache-2.0
"""The trace-driven simulator of the published research, over flyball.sim."""
