# SPDX-License-Identifier: BSD-2-Clause
"""All programs of the list, by name; TIMED are those whose time says something."""

import languages
import servers
import stressng
import tools

TIMED = [each.name for each in (*languages.ALL, *tools.ALL, *servers.ALL)]
CLASSES = {
    each.name: each
    for each in (*languages.ALL, *tools.ALL, *servers.ALL, *stressng.ALL)
}
NAMES = list(CLASSES)


def make(name, folder, compiler):
    return CLASSES[name](folder, compiler)
