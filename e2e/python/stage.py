"""A connection, names that no other run uses, and the checks."""

import collections
import os
import time
import uuid

import pika
from pika.exceptions import ChannelClosedByBroker

URL = os.environ.get("DUEPOST_E2E_URL", "amqp://guest:guest@127.0.0.1:5672")
SLACK = int(os.environ.get("DUEPOST_E2E_SLACK_MS", "3000")) / 1000
PATIENCE = 30.0

Letter = collections.namedtuple("Letter", "method properties body arrived")


class Stage:
    """What a scheme plays on. What was declared through it is deleted at the end of a run."""

    def __init__(self, scheme):
        parameters = pika.URLParameters(URL)
        # A URL without a path means the default virtual host.
        parameters.virtual_host = "/"
        self.connection = pika.BlockingConnection(parameters)
        # Declarations and publishing, with confirms; consumers use channels of their own.
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()
        self.prefix = f"python.{scheme}.{uuid.uuid4().hex[:8]}."
        self.undo = []
        self.checks = 0

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        if fault is None:
            channel = self.connection.channel()
            for undo in self.undo:
                undo(channel)
        if self.connection.is_open:
            self.connection.close()

    def name(self, suffix):
        return self.prefix + suffix

    def exchange(self, suffix, kind, arguments=None):
        name = self.name(suffix)
        self.channel.exchange_declare(name, kind, durable=True, arguments=arguments)
        self.undo.append(lambda channel: channel.exchange_delete(name))
        return name

    def queue(self, suffix, **arguments):
        """Declares a durable queue; x_message_ttl=5 stands for the argument x-message-ttl."""
        name = self.name(suffix)
        table = {key.replace("_", "-"): value for key, value in arguments.items()}
        self.channel.queue_declare(name, durable=True, arguments=table)
        self.undo.append(lambda channel: channel.queue_delete(name))
        return name

    def bind(self, queue, exchange, key):
        self.channel.queue_bind(queue, exchange, key)

    def ready(self, queue):
        return self.channel.queue_declare(queue, passive=True).method.message_count

    def publish(self, exchange, key, body, mandatory=False, **properties):
        """Publishes a persistent message and returns when it is confirmed."""
        self.channel.basic_publish(
            exchange, key, body, pika.BasicProperties(delivery_mode=2, **properties), mandatory)

    def consume(self, queue, prefetch=0):
        return Inbox(self, queue, prefetch)

    def check(self, holds, claim):
        self.checks += 1
        if not holds:
            raise AssertionError(claim)

    def equal(self, got, want, what):
        self.check(got == want, f"{what}: got {got!r}, want {want!r}")

    def on_time(self, what, due, arrived):
        """Never early, and late by no more than a busy machine explains. Unix seconds."""
        late = arrived - due
        print(f"{what}: {late * 1000:.1f} ms after due", flush=True)
        self.check(0 <= late <= SLACK, f"{what} came {late * 1000:.1f} ms after it was due")

    def refused(self, code, what, act):
        """Runs an action that the broker must answer by closing the channel."""
        channel = self.connection.channel()
        try:
            act(channel)
            # A refused publish shows at the next method that has an answer.
            channel.basic_qos(prefetch_count=1)
        except ChannelClosedByBroker as closed:
            self.equal(closed.reply_code, code, f"{what} ({closed.reply_text})")
            return
        self.check(False, f"{what} was not refused")


class Inbox:
    """A consumer with manual acks that notes when each message came."""

    def __init__(self, stage, queue, prefetch):
        self.stage = stage
        self.channel = stage.connection.channel()
        self.channel.basic_qos(prefetch_count=prefetch)
        self.letters = collections.deque()
        self.tag = self.channel.basic_consume(queue, self._put)

    def _put(self, _channel, method, properties, body):
        self.letters.append(Letter(method, properties, body.decode(), time.time()))

    def within(self, seconds):
        """The next message, not yet settled, or None if none comes in time."""
        end = time.monotonic() + seconds
        while not self.letters and (left := end - time.monotonic()) > 0:
            self.stage.connection.process_data_events(time_limit=left)
        return self.letters.popleft() if self.letters else None

    def next(self):
        letter = self.within(PATIENCE)
        self.stage.check(letter is not None, f"no message within {PATIENCE} s")
        return letter

    def take(self):
        """The next message, acknowledged."""
        letter = self.next()
        self.channel.basic_ack(letter.method.delivery_tag)
        return letter

    def nothing(self, seconds, why):
        letter = self.within(seconds)
        self.stage.check(letter is None, f"{why}: got {letter and letter.body}")


def deaths(letter):
    """The entries of x-death, newest first, each reduced to what is checked."""
    entries = (letter.properties.headers or {}).get("x-death", [])
    return [
        death(e["queue"], e["reason"], e["count"], e["exchange"], *e["routing-keys"])
        for e in entries
    ]


def death(queue, reason, count, exchange, *keys):
    return (queue, reason, count, exchange, keys)
