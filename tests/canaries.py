"""Values that are planted in private tables, and the search for them in what leaves a fit."""

import pickle
import struct

TEXT = "CANARYTEXT"
NUMBER = 98765.4321
WHOLE = 876543210987
DAY = "1999-09-17"


def traces(text_or_bytes) -> list[str]:
    """Which canaries occur, as text or as the bytes that a pickle holds them in."""
    found = text_or_bytes if isinstance(text_or_bytes, bytes) else str(text_or_bytes).encode()
    patterns = {
        TEXT: [TEXT.encode()],
        str(NUMBER): [str(NUMBER).encode(), struct.pack("<d", NUMBER), struct.pack(">d", NUMBER)],
        str(WHOLE): [
            str(WHOLE).encode(),
            struct.pack("<q", WHOLE),
            struct.pack("<d", float(WHOLE)),
            struct.pack(">d", float(WHOLE)),
            pickle.encode_long(WHOLE),
        ],
        DAY: [DAY.encode()],
    }
    return [name for name, forms in patterns.items() if any(form in found for form in forms)]
