"""TLS to a program of the lab that shows a certificate of its own."""

import ssl


def unverified() -> ssl.SSLContext:
    """Return a context that accepts any certificate.

    Unlike `ssl.create_default_context` it does not read the authorities of the system,
    which takes 15 ms of the processor each time.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
