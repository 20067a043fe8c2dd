"""A mail server for the tests, on Debian's python3-aiosmtpd.

Prints the port that it listens on, then reads modes from its standard input, one a line, and answers each with `ok`:

    accept           takes every mail
    busy             answers 450 to every recipient
    refuse TEXT      answers 550 to recipients whose address contains TEXT, and takes the others
    hang             takes a mail's text and says nothing more until the mode changes
    lose             takes a mail and hangs up instead of saying so
    locked           lets nobody log in
    down             closes its port; the next other mode opens it again

Every mail that was taken is appended to the file that the first argument names, as a JSON line: its recipients, its message id,
and whether the server said that it was taken. A second argument is the user who has to log in, a third the password.
"""

import asyncio
import email
import json
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


class Handler:
    def __init__(self, taken):
        self.taken = taken
        self.mode = ["accept"]
        self.changed = asyncio.Event()

    def set(self, mode):
        self.mode = mode
        self.changed.set()
        self.changed = asyncio.Event()

    async def handle_RCPT(self, server, session, envelope, address, options):
        if self.mode[0] == "busy":
            return "450 4.2.1 try again later"
        if self.mode[0] == "refuse" and self.mode[1] in address:
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        while self.mode[0] == "hang":
            await self.changed.wait()
        message = email.message_from_bytes(envelope.content)
        # What is written to a connection that this side closes is dropped.
        is_lost = self.mode[0] == "lose" or server.transport is None or server.transport.is_closing()
        line = {"to": envelope.rcpt_tos, "id": message["Message-ID"], "answered": not is_lost}
        print(json.dumps(line), file=self.taken, flush=True)
        if self.mode[0] == "lose":
            server.transport.abort()
        return "250 OK"


async def main():
    handler = Handler(open(sys.argv[1], "a"))
    connections = set()
    login = sys.argv[2:]

    def authenticate(server, session, envelope, mechanism, given):
        expected = LoginPassword(*(text.encode() for text in login))
        # Not handled: the server is to answer by itself.
        return AuthResult(success=handler.mode[0] != "locked" and given == expected, handled=False)

    def connect():
        server = SMTP(
            handler,
            hostname="mail.example",
            enable_SMTPUTF8=False,
            auth_required=bool(login),
            auth_require_tls=False,
            authenticator=authenticate,
        )
        connections.add(server)
        return server

    loop = asyncio.get_running_loop()
    listener = await loop.create_server(connect, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    print(port, flush=True)

    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    # The end of the input is the end of the test.
    while line := (await reader.readline()).decode().split():
        if line[0] == "down":
            if listener:
                listener.close()
                listener = None
            # Not aborted, or the other side might lose an answer that is counted as given.
            for server in connections:
                if server.transport:
                    server.transport.close()
            connections.clear()
        elif listener is None:
            listener = await loop.create_server(connect, "127.0.0.1", port, reuse_address=True)
        handler.set(line)
        print("ok", flush=True)
    sys.exit(0)


asyncio.run(main())
