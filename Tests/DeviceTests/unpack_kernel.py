"""Extracts the uncompressed kernel, which boots much faster under emulation."""

import lzma
import sys

source, target = sys.argv[1:]
image = open(source, "rb").read()
start = image.index(b"\xfd7zXZ\x00")
with open(target, "wb") as plain:
    plain.write(lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(image[start:]))
