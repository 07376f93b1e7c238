# SPDX-License-Identifier: Apache-2.0
"""Whether the texts of an SVG picture lie within it, by an estimate of how wide their characters are."""
from xml.etree import ElementTree

import tap

SVG = "{http://www.w3.org/2000/svg}"
NARROW, WIDE = set("iIjl.,:;'|!()[]/ frt"), set("mwMW@%")
BEFORE = {"start": 0, "middle": 0.5, "end": 1}


def width_of(text, size):
    """Those of a wide font without serifs."""
    return size * sum(0.38 if char in NARROW else 0.98 if char in WIDE else 1 if ord(char) > 0x1000 else 0.75 if char.isupper() else 0.62
                      for char in text)


def shown(element):
    """What is seen, without the tip."""
    return (element.text or "") + "".join(child.tail or "" for child in element)


def check(picture):
    """A path, or the text of a picture. Returns its root."""
    root = ElementTree.fromstring(picture) if isinstance(picture, (str, bytes)) else ElementTree.parse(picture).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter(f"{SVG}text"):
        size, text = float(element.get("font-size")), shown(element)
        length = width_of(text, size * (1.08 if element.get("font-weight") else 1))
        left = float(element.get("x")) - length * BEFORE[element.get("text-anchor", "start")]
        tap.equal(left >= 0 and left + length <= width, True, f"'{text}' from {left:.0f} to {left + length:.0f} of {width:.0f} px")
        tap.equal(size <= float(element.get("y")) <= height, True, f"'{text}' at {element.get('y')} of {height:.0f} px")
    return root
