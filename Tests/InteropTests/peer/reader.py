"""Reading of binary fields, all big-endian (section 1)."""


class Malformed(ValueError):
    """The bytes are not what the document says they should be."""


class Reader:
    """Takes fields off the front of some bytes; raises `Malformed` where they are cut short."""

    def __init__(self, data):
        self._data = data
        self._offset = 0

    def take(self, count):
        end = self._offset + count
        if end > len(self._data):
            raise Malformed("cut short")
        field = self._data[self._offset:end]
        self._offset = end
        return field

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def counted(self, length_size, at_most=None):
        """A length of `length_size` bytes and as many bytes."""
        length = self.number(length_size)
        if at_most is not None and length > at_most:
            raise Malformed(f"{length} bytes, at most {at_most}")
        return self.take(length)

    def text(self, at_most):
        """A length of one byte and UTF-8."""
        try:
            return self.counted(1, at_most).decode()
        except UnicodeDecodeError as error:
            raise Malformed("not UTF-8") from error

    def list_of(self, size, at_most):
        """A count of one byte and as many items of `size` bytes."""
        count = self.number(1)
        if count > at_most:
            raise Malformed(f"{count} items, at most {at_most}")
        return [self.take(size) for _ in range(count)]

    @property
    def is_at_end(self):
        return self._offset == len(self._data)

    def rest(self):
        return self.take(len(self._data) - self._offset)
