# SPDX-License-Identifier: Apache-2.0
"""The names of the public project Zeus, over Flyball: `zeus.monitor` is `flyball.compat.zeus.monitor`, and so on.

    from flyball.compat.zeus.monitor import ZeusMonitor

docs/howto/migrate_from_zeus.md has the table of names and what differs.
"""
