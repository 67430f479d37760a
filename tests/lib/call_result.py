"""What system calls say, for programs of the tests."""

import errno


def result(call, *arguments):
    """ "ok", or the name of the errno."""
    try:
        call(*arguments)
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
